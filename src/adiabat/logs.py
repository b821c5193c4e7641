# SPDX-License-Identifier: BSD-3-Clause
"""Loggers under ``adiabat``: what was done, how many rows, how long; never ids, labels or features.

They are silent until an application turns them on, with a level and a handler for the logger
``adiabat``; on the command line ``adiabat --verbose`` does. Work that takes more than a second says
meanwhile how far it is (`Progress`).
"""

from __future__ import annotations

import logging
import sys
import time
from functools import cache
from typing import Any, Final

#: Seconds of work before its first line, and between two lines.
INTERVAL: Final = 1.0
#: The logger of these lines, below ``adiabat``.
PROGRESS: Final = "progress"


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


class Progress:
    """Says how far work is: to the logger ``adiabat.progress``, and to standard output if asked.

    Whoever does the work asks in each round whether a line is due. Work that takes less than a
    second says nothing.
    """

    def __init__(self, name: str, started: float, prints: bool) -> None:
        self._name, self._prints = name, prints
        self._next = started + INTERVAL
        self._told = False

    def is_due(self) -> bool:
        """Whether a second has passed since the last line, or since the start."""
        return time.perf_counter() >= self._next

    def tell(self, sentence: str) -> None:
        """Say where the work is, now."""
        self._next, self._told = time.perf_counter() + INTERVAL, True
        logger(PROGRESS).info("%s: %s", self._name, sentence)
        if self._prints:
            print(f"{self._name}: {sentence}", flush=True)

    def end(self, line: str) -> None:
        """Print what the work came to, if it has said where it was."""
        if self._prints and self._told:
            print(line, flush=True)


def listen(name: str, started: float, verbose: Any) -> Progress | None:
    """How work of an estimator says how far it is, from its start on; None if nobody listens."""
    if verbose or logger(PROGRESS).isEnabledFor(logging.INFO):
        return Progress(name, started, bool(verbose))
    return None


def log_update(name: str, n: int, report: Any, progress: Progress | None = None) -> None:
    """One line about an update of an estimator."""
    log = logger("estimators")
    if progress is None and not log.isEnabledFor(logging.INFO):
        return
    line = (
        f"{name}: {report.n_added} added, {report.n_removed} removed, {report.n_revised} revised, "
        f"{n} samples; {report.solver}, {report.rounds} rounds, {report.seconds:.4f} s, "
        f"residual {report.certificate.residual:.1e}"
    )
    log.info("%s", line)
    if progress is not None:
        progress.end(line)


logging.getLogger("adiabat").addHandler(logging.NullHandler())
