# SPDX-License-Identifier: BSD-3-Clause
"""What every entry of the log says: when, by which software, and of which model."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from typing import Any

from adiabat.store.digests import sha256
from adiabat.store.settings import Settings
from adiabat.store.tasks import certificate_fields, is_fitted, set_sizes


def seconds_behind(time: str, before: str) -> float:
    """By how much a time is earlier than that of the entry before; 0 if it is not."""
    return max(0.0, (datetime.fromisoformat(before) - datetime.fromisoformat(time)).total_seconds())


def entry_frame(settings: Settings, model: Any) -> dict[str, Any]:
    """What every entry says about the model it leaves."""
    fitted = is_fitted(model)
    certificate = model.last_update_.certificate if fitted else None
    return {
        "time": datetime.now(UTC).isoformat(timespec="microseconds"),
        "software": f"adiabat {_version()}",
        "settings": sha256(settings.to_json()),
        "sets": set_sizes(model),
        "certificate": {"before": None, "after": certificate_fields(certificate)},
    }


@cache
def _version() -> str:
    """The version installed; looking it up takes as long as a small update."""
    from importlib.metadata import version

    return version("adiabat")
