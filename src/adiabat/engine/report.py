# SPDX-License-Identifier: BSD-3-Clause
"""What an update did, or could not reach."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

from adiabat.certificate import Certificate
from adiabat.engine.machine import Machine
from adiabat.errors import NotOptimalError
from adiabat.logs import Progress


@dataclass
class SolveInfo:
    """What the solvers did in one update, and who is told meanwhile how far it is."""

    rounds: int = 0
    breakpoints: int = 0
    fallbacks: int = 0
    methods: set[str] = field(default_factory=set)
    traces: dict[Hashable, list[Any]] = field(default_factory=dict)
    progress: Progress | None = None

    @property
    def solver(self) -> str:
        """The methods that ran, in one word."""
        return "+".join(sorted(self.methods)) or "none"

    def add(self, other: SolveInfo) -> None:
        """Count the work of another update as well."""
        self.rounds += other.rounds
        self.breakpoints += other.breakpoints
        self.fallbacks += other.fallbacks
        self.methods |= other.methods
        self.progress = other.progress
        for key, breakpoints in other.traces.items():
            self.traces.setdefault(key, []).extend(breakpoints)


@dataclass(frozen=True)
class UpdateReport:
    """What an update did, and the certificate of the model it left.

    Attributes
    ----------
    n_added, n_removed, n_revised : int
        Samples learned, unlearned and corrected.
    solver : str
        What ran: ``"exchange"``, ``"path"``, or ``"none"`` if nothing had to move.
    rounds : int
        Rounds of exchange, over all machines.
    breakpoints : int
        Breakpoints of the path, over all machines.
    fallbacks : int
        Machines for which the first method gave up and another finished.
    seconds : float
        Wall-clock time of the whole call, validation and certificate included.
    certificate : Certificate
        The certificate of the model after the update.
    trace : list or None
        With ``trace=True``, the breakpoints of the path, a list for each machine that moved;
        :func:`adiabat.analysis.trajectories` lays them out by id.

    Examples
    --------
    >>> from adiabat import SVC
    >>> X, y = [[-3.0], [-1.0], [1.0], [4.0]], [0, 0, 1, 1]
    >>> model = SVC(kernel="linear", C=10.0).fit(X, y)
    >>> report = model.update([[2.0]], [1], remove=[0])
    >>> report.n_added, report.n_removed, report.certificate.ok
    (1, 1, True)
    """

    n_added: int
    n_removed: int
    n_revised: int
    solver: str
    rounds: int
    breakpoints: int
    fallbacks: int
    seconds: float
    certificate: Certificate
    trace: Any = None

    def __str__(self) -> str:
        moved = ", ".join(
            f"{verb} {count}"
            for verb, count in (
                ("added", self.n_added),
                ("removed", self.n_removed),
                ("revised", self.n_revised),
            )
            if count
        )
        effort = f"{self.breakpoints} breakpoints" if self.breakpoints else f"{self.rounds} rounds"
        return (
            f"{moved or 'nothing changed'} in {1e3 * self.seconds:.1f} ms "
            f"({self.solver}, {effort}); {self.certificate}"
        )


def not_optimal(machine: Machine) -> NotOptimalError:
    """What could not be reached, at which sample, and what to do about it."""
    verdict = machine.verdict
    sample = None if verdict.worst < 0 else int(machine.at[verdict.worst])
    if verdict.residual > verdict.allowed:
        what = (
            f"a sample ends with residual {verdict.residual:.1e}, and "
            f"{verdict.allowed:.1e} is allowed"
        )
    elif verdict.gap > verdict.gap_allowed:
        what = (
            f"the relative duality gap ends at {verdict.gap:.1e}, and "
            f"{verdict.gap_allowed:.1e} is allowed"
        )
    else:
        what = f"the weights end {verdict.balance:.1e} from their sum, relative to their size"
    return NotOptimalError(
        f"the optimum cannot be reached in double precision: {what}; the model is as it was "
        "before. Scale the features, correct a value or weight that is far larger than the "
        "others, lower C, or raise tol.",
        sample=sample,
    )
