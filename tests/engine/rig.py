# SPDX-License-Identifier: BSD-3-Clause
"""A two-class problem on the engine alone: samples by name, one machine, no estimator."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from adiabat.engine.interrupts import deferred_interrupts
from adiabat.engine.machine import Machine
from adiabat.engine.report import SolveInfo
from adiabat.engine.row_change import RowChange
from adiabat.engine.solver import Solver
from adiabat.formulations.c_svc import CSVC
from adiabat.kernels import Kernel, make_kernel

from oracles import batch_qp
from oracles.problems import Problem

PAIR = (0, 1)
EPSILON = float(np.finfo(np.float64).eps)


def kernel_for(params: dict[str, Any], X: npt.NDArray[np.float64]) -> Kernel:
    """The kernel that the parameters of a problem stand for."""
    given = {"gamma": 1.0, "degree": 3, "coef0": 0.0} | params
    return make_kernel(
        given["kernel"], gamma=given["gamma"], degree=given["degree"], coef0=given["coef0"], X=X
    )


class Rig:
    """Samples named 0, 1, 2, ... in the order in which they come, and their machine."""

    def __init__(self, kernel: Kernel, C: float, tol: float = 1e-9) -> None:
        self.solver = Solver(kernel, tol)
        self.formulation = CSVC(C, {0: -1, 1: 1})
        self.X: npt.NDArray[np.float64] | None = None  # by name
        self.y = np.empty(0)
        self.weight = np.empty(0)
        self.position = np.empty(0, dtype=np.int64)  # by name, -1 for those who left

    @classmethod
    def of(cls, problem: Problem) -> Rig:
        """An empty rig for the rows of a problem."""
        return cls(kernel_for(problem.params, problem.X), problem.params["C"])

    @property
    def machine(self) -> Machine:
        return self.solver.machines[PAIR]

    @property
    def names(self) -> npt.NDArray[np.int64]:
        """Who is there."""
        return np.flatnonzero(self.position >= 0)

    def names_of_rows(self) -> npt.NDArray[np.int64]:
        """The name behind every row of the machine; right before a commit as well as after it."""
        name = np.full(self.solver.samples.n, -1)
        name[self.position[self.names]] = self.names
        return np.asarray(name[self.machine.at])

    def change(
        self,
        X: Any = None,
        y: npt.ArrayLike = (),
        weight: npt.ArrayLike | None = None,
        remove: Iterable[int] = (),
        method: str = "auto",
        trace: bool = False,
    ) -> SolveInfo:
        """Some samples come, others go; all of it or nothing."""
        labels = np.asarray(y, dtype=np.float64)
        force = np.ones(len(labels)) if weight is None else np.asarray(weight, dtype=np.float64)
        gone = np.array(list(remove), dtype=np.int64)
        first = len(self.y)

        with self.solver.changing() as step:
            new = step.add(X)
            step.solve({PAIR: self.row_change(new, labels, force, gone)}, method, trace)
            with deferred_interrupts():
                where = np.arange(self.solver.samples.n)
                old, now = step.commit(self.position[gone])
                where[old] = now
                self.y = np.concatenate([self.y, labels])
                self.weight = np.concatenate([self.weight, force])
                if X is not None:
                    self.X = X.copy() if self.X is None else np.vstack([self.X, X])
                position = np.concatenate([self.position, new])
                there = position >= 0
                position[there] = where[position[there]]
                position[gone] = -1
                assert len(position) == first + len(labels)
                self.position = position
        return step.info

    def row_change(
        self,
        new: npt.NDArray[np.int64],
        labels: npt.NDArray[np.float64],
        force: npt.NDArray[np.float64],
        gone: npt.NDArray[np.int64],
    ) -> RowChange:
        """The rows of the new samples, and those of the samples that go."""
        rows = self.formulation.rows(
            PAIR, (labels > 0).astype(np.int64), force, np.ones(len(force))
        )
        held = self.solver.machines.get(PAIR)
        stale = [] if held is None else np.flatnonzero(np.isin(held.at, self.position[gone]))
        return RowChange(
            remove=np.asarray(stale, dtype=np.int64),
            add_at=new[rows.sample],
            add_t=rows.t,
            add_lo=rows.lo,
            add_hi=rows.hi,
            d=0.0,
        )

    # -- what came of it -------------------------------------------------------------------------

    def kernel_matrix(self) -> npt.NDArray[np.float64]:
        """K over the rows of the machine, every value computed anew."""
        samples, at = self.solver.samples, self.machine.at
        return samples.block(at, at)

    def violation(self) -> float:
        """The oracle's opinion of the machine's u and b."""
        m = self.machine
        return batch_qp.kkt_violation(self.kernel_matrix(), m.t, m.lo, m.hi, m.d, m.u, m.b)

    def rounding(self) -> float:
        """What one rounding of f is worth."""
        m = self.machine
        largest = float(self.solver.samples.diagonal.max(initial=0.0))
        return EPSILON * (largest * float(np.abs(m.u).sum()) + abs(m.b) + 1.0)

    def objective(self) -> float:
        m = self.machine
        return batch_qp.objective(self.kernel_matrix(), m.t, m.u)

    def oracle(self) -> batch_qp.Solution:
        """The optimum of the machine's rows from scratch."""
        m = self.machine
        return batch_qp.solve(self.kernel_matrix(), m.t, m.lo, m.hi, m.d)
