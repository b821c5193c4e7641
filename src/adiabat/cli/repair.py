# SPDX-License-Identifier: BSD-3-Clause
"""``adiabat repair``: a model that does not hold, fitted again from its rows."""

from __future__ import annotations

from adiabat.cli.options import AllowUnsigned, Json, Model, Reference, SigningKey, Wait, opened
from adiabat.cli.outcomes import outcome_lines
from adiabat.cli.output import show, working


def repair(
    model: Model,
    reference: Reference = None,
    wait: Wait = 10.0,
    signing_key: SigningKey = None,
    allow_unsigned: AllowUnsigned = False,
    as_json: Json = False,
) -> None:
    """Fit the model again from its rows, where it is damaged or not the optimum."""
    with working("Repairing", as_json):
        done = opened(model, wait, signing_key, allow_unsigned).repair(reference=reference)
    show(done.to_dict(), as_json, outcome_lines(done))
