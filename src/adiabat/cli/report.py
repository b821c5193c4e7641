# SPDX-License-Identifier: BSD-3-Clause
"""``adiabat report``: a page about the model."""

from __future__ import annotations

from adiabat.cli.options import (
    AllowUnsigned,
    Force,
    HoldScaling,
    Json,
    Model,
    Out,
    Reference,
    SigningKey,
    Wait,
    opened,
    require_free,
)
from adiabat.cli.output import advance, show, working


def report(
    model: Model,
    out: Out,
    hold_scaling: HoldScaling = False,
    reference: Reference = None,
    wait: Wait = 10.0,
    signing_key: SigningKey = None,
    allow_unsigned: AllowUnsigned = False,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Write a page (HTML) about the model to OUT, and the fact to the log: it names ids."""
    with working(f"Writing {out}", as_json):
        require_free(out, force)
        done = opened(model, wait, signing_key, allow_unsigned).report(
            out, reference=reference, hold_scaling=hold_scaling, n_jobs=-1, progress=advance
        )
    show({"out": out, **done}, as_json, [f"Wrote {out} (log entry {done['entry']})."])
