# SPDX-License-Identifier: BSD-3-Clause
"""What a fitted estimator holds: samples by id, and the machines solved on them.

Per-sample arrays here are in the order of learning (`ids_`); `position` says where each sample is
in the solver, which moves samples about as others leave.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from adiabat._core.kernel_values import multiply
from adiabat._core.room import Leaving, Room
from adiabat._core.rows import nonzero
from adiabat.engine.machine import Machine
from adiabat.engine.solver import Solver
from adiabat.engine.threads import pool_for
from adiabat.estimators.ledger import Ledger
from adiabat.formulations import Formulation
from adiabat.formulations.base import Key
from adiabat.kernels import Kernel
from adiabat.typing import FloatArray, IntArray

# Kernel values are recomputed for at most this many entries at a time: 8 MB, in the cache.
BLOCK_ENTRIES = 1 << 20

#: Arrays of a model with an entry for each sample.
BY_SAMPLE = ("target", "weight", "position")


class Model:
    """Samples, their targets and weights, and the solver that follows their optimum."""

    def __init__(
        self, kernel: Kernel, tol: float, formulation: Formulation, ledger: Ledger
    ) -> None:
        self.solver = Solver(kernel, tol)
        self.formulation = formulation
        self.ledger = ledger
        self.position = np.empty(0, dtype=np.int64)
        self.target: npt.NDArray[Any] = np.empty(0, dtype=formulation.target_type)
        self.weight = np.empty(0)
        self.version = 0  # changes carried out
        self.notes: dict[Any, float] = {}  # of a policy, by id
        self.calibration: Any = None  # curves from f to probabilities; gone with every change
        self._room = Room()
        self.keys: list[Key] = []  # of the machines, for the targets `keys_of`
        self.keys_of: npt.NDArray[Any] | None = None

    def __len__(self) -> int:
        return len(self.position)

    @property
    def kernel(self) -> Kernel:
        """The kernel, its parameters resolved."""
        return self.solver.samples.kernel

    @property
    def tol(self) -> float:
        """What the model is judged by, from the next change on at the latest."""
        return self.solver.tol

    @tol.setter
    def tol(self, tol: float) -> None:
        self.solver.require(tol)

    @property
    def is_judged(self) -> bool:
        """Whether the verdicts on all machines are by the tolerance now in force."""
        return self.solver.tol == self.solver.judged_by

    @property
    def machines(self) -> list[tuple[Key, Machine]]:
        """The machines, in the order of the formulation."""
        held: dict[Any, Machine] = self.solver.machines
        if self.keys_of is not self.target:  # which is another with every change
            self.keys, self.keys_of = self.formulation.machines(self.target), self.target
        return [(key, held[key]) for key in self.keys]

    def exchange(
        self, gone: IntArray, target: npt.NDArray[Any], weight: FloatArray, position: IntArray
    ) -> None:
        """Samples at places (ascending) go, and others come at the end, in the same arrays.

        These are the model's own: nobody else keeps one of them beyond a change.
        """
        if len(position):
            self._room.extend_all(self, BY_SAMPLE, (target, weight, position))
        if len(gone):
            Leaving(gone, len(self), False).close(self, BY_SAMPLE)

    def in_order(self, machine: Machine) -> tuple[IntArray, IntArray]:
        """(order, margin): rows in the order in which the formulation gives them for all samples,
        and the MARGIN rows by their places in it.
        """
        learned = np.empty(self.solver.samples.n, dtype=np.int64)
        learned[self.position] = np.arange(len(self))
        order = np.argsort(learned[machine.at], kind="stable")
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        return order, place[machine.margin]

    # -- what was learned ------------------------------------------------------------------------

    def support(self) -> IntArray:
        """Places (in the order of learning) of the samples that carry weight."""
        return np.flatnonzero(self._carrying()[self.position])

    def _carrying(self) -> npt.NDArray[np.bool_]:
        """Which samples, by position, carry weight: the rows of one may cancel each other."""
        n = self.solver.samples.n
        carries = np.zeros(n, dtype=bool)
        for _, machine in self.machines:
            if machine.weighty is None or machine.has_pairs:
                carries |= np.bincount(machine.at, machine.u, minlength=n) != 0.0
            else:
                carries[machine.at[machine.weighty]] = True
        return carries

    def n_support(self) -> int:
        """How many samples carry weight."""
        machines = list(self.solver.machines.values())
        if len(machines) == 1 and machines[0].n == len(self):  # a row for each sample
            weighty = machines[0].weighty
            return nonzero(machines[0].u) if weighty is None else len(weighty)
        return int(self._carrying().sum())

    def weights(self, places: npt.NDArray[np.integer[Any]]) -> FloatArray:
        """Signed weights u of samples, (len(places), machines)."""
        out = np.zeros((len(places), len(self.machines)))
        for column, (_, machine) in enumerate(self.machines):
            total = np.zeros(self.solver.samples.n)
            np.add.at(total, machine.at, machine.u)
            out[:, column] = total[self.position[places]]
        return out

    def biases(self) -> FloatArray:
        """Biases b, one a machine."""
        return np.array([machine.b for _, machine in self.machines])

    def intercepts(self) -> FloatArray:
        """Biases for a linear kernel that measures from zero: w (x - o) + b = w x + (b - w o)."""
        if self.kernel.name != "linear" or self.kernel.origin is None:
            return self.biases()
        places = self.support()
        w = np.asarray(self.features(places).T @ self.weights(places))
        return np.asarray(self.biases() - self.kernel.origin @ w)

    def features(self, places: npt.NDArray[np.integer[Any]]) -> Any:
        """Feature rows of samples."""
        return self.solver.samples.rows(self.position[places])

    def given_kernel(self) -> FloatArray:
        """The kernel matrix that was given, in the order of learning."""
        kernel: FloatArray = self.solver.samples.data[np.ix_(self.position, self.position)]
        return kernel

    def zero_but_for_rounding(
        self, column: int, values: FloatArray, X: Any, own: FloatArray, t: Any = 0.0, few: int = 1
    ) -> npt.NDArray[np.bool_]:
        """Which values f - t of a machine at rows X are 0 but for `few` times the rounding of f.

        `own` are k(x, x). A bound on the rounding clears most rows; for the others it is computed.
        """
        machine = self.machines[column][1]
        zero = np.abs(values) <= few * machine.noise(self.solver.tol, own, t)
        doubtful = np.flatnonzero(zero)
        if len(doubtful):
            sizes = self._weigh(X[doubtful], sizes=True)[:, column]
            targets = t if np.ndim(t) == 0 else t[doubtful]
            noise = machine.noise(self.solver.tol, own[doubtful], targets, sizes)
            zero[doubtful] = np.abs(values[doubtful]) <= few * noise
        return zero

    def decide(self, X: Any) -> FloatArray:
        """Decision values at new rows, (len(X), machines).

        For a given kernel X has the kernel values against all samples in the order of learning.
        """
        return self._weigh(X) + self.biases()

    def _weigh(self, X: Any, sizes: bool = False) -> FloatArray:
        """Decision values less b at new rows, or the sizes of the terms they are the sums of."""
        places = self.support()
        weights = self.weights(places)
        if sizes:
            np.abs(weights, out=weights)
        out = np.zeros((X.shape[0], weights.shape[1]))
        step = max(1, BLOCK_ENTRIES // max(1, len(places)))
        with pool_for(X.shape[0] * len(places) * X.shape[1]):
            for start in range(0, X.shape[0] if len(places) else 0, step):
                values = self._kernel_values(X[start : start + step], places)
                out[start : start + step] = multiply(np.abs(values) if sizes else values, weights)
        return out

    def _kernel_values(self, X: Any, places: npt.NDArray[np.integer[Any]]) -> FloatArray:
        """Kernel values of new rows against samples."""
        if self.kernel.name == "precomputed":
            values: FloatArray = X[:, places]
            return values
        if self.kernel.function is not None:
            return self.kernel.block(X, self.features(places))
        samples = self.solver.samples
        return self.kernel.block(X, samples.view(self.position[places], X.shape[0]))
