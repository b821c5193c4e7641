# SPDX-License-Identifier: BSD-3-Clause
"""Errors and traces of the engine, which knows positions, in the ids that users know."""

from __future__ import annotations

from typing import Any

import numpy as np

from adiabat.engine.report import SolveInfo
from adiabat.engine.trace import RowNames, Trace
from adiabat.errors import NotOptimalError
from adiabat.formulations import Formulation
from adiabat.typing import IntArray


def named_by_id(error: NotOptimalError, position: IntArray, ids: list[Any]) -> NotOptimalError:
    """The same error, naming the sample by its id instead of its position."""
    at = np.flatnonzero(position == (-1 if error.sample is None else error.sample))
    if len(at) == 0:
        return NotOptimalError(str(error), error.certificate)
    name = ids[int(at[0])]
    text = str(error).replace("a sample ends", f"the sample {name!r} ends", 1)
    return NotOptimalError(text, error.certificate, name)


def name_traces(info: SolveInfo, formulation: Formulation, named: dict[Any, RowNames]) -> None:
    """Say whose rows the traces are about."""
    for key, rows in named.items():
        if key in info.traces:
            name = formulation.name_machine(key)
            info.traces[key] = Trace(info.traces[key], name, rows)
