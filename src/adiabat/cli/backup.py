# SPDX-License-Identifier: BSD-3-Clause
"""``adiabat backup``: the whole store as one file."""

from __future__ import annotations

from adiabat.cli.options import (
    AllowUnsigned,
    Force,
    Json,
    Model,
    Out,
    Reference,
    SigningKey,
    Wait,
    opened,
    require_free,
)
from adiabat.cli.output import show, working


def backup(
    model: Model,
    out: Out,
    reference: Reference = None,
    wait: Wait = 10.0,
    signing_key: SigningKey = None,
    allow_unsigned: AllowUnsigned = False,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Write the store to OUT, and the fact to the log: erasing does not reach the file."""
    with working(f"Writing {out}", as_json):
        require_free(out, force)
        done = opened(model, wait, signing_key, allow_unsigned).backup(out, reference=reference)
    show(
        {"out": out, **done},
        as_json,
        [
            f"Wrote {out} (log entry {done['entry']}).",
            f"Keep its head elsewhere: {done['hash']}",
            "It holds all rows: keep a list of what is erased from now on, for restore "
            "--erased-since.",
        ],
    )
