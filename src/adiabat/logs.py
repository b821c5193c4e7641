# SPDX-License-Identifier: BSD-3-Clause
"""Loggers under ``adiabat``: what was done, how many rows, how long; never ids, labels or features.

They are silent until an application turns them on, with a level and a handler for the logger
``adiabat``; on the command line ``adiabat --verbose`` does.
"""

from __future__ import annotations

import logging
import sys
from functools import cache
from typing import Any


@cache
def logger(area: str) -> logging.Logger:
    """The logger of one area of the package."""
    return logging.getLogger(f"adiabat.{area}")


def show(level: int = logging.INFO) -> None:
    """Have all loggers of the package write to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(name)s: %(message)s", "%H:%M:%S"))
    package = logging.getLogger("adiabat")
    package.handlers[:] = [handler]
    package.setLevel(level)


def log_update(name: str, n: int, report: Any) -> None:
    """One line about an update of an estimator."""
    log = logger("estimators")
    if not log.isEnabledFor(logging.INFO):
        return
    log.info(
        "%s: %d added, %d removed, %d revised, %d samples; %s, %d rounds, %.4f s, residual %.1e",
        name, report.n_added, report.n_removed, report.n_revised, n, report.solver,
        report.rounds, report.seconds, report.certificate.residual,
    )  # fmt: skip


logging.getLogger("adiabat").addHandler(logging.NullHandler())
