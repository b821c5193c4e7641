# SPDX-License-Identifier: BSD-3-Clause
"""What a kernel least-squares machine holds: its samples in the order of learning, and the machine.

A change makes a new model. Samples of weight zero are kept, but are not part of the machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from adiabat._core.kernel_values import multiply
from adiabat.engine.memory import require_matrices
from adiabat.engine.threads import pool_for
from adiabat.estimators.arguments.validation import as_csr
from adiabat.estimators.files.reading import OF_SAMPLES
from adiabat.estimators.ledger import Ledger
from adiabat.kernels import Kernel
from adiabat.lssvm.accuracy import UNIT
from adiabat.lssvm.auxiliary import IndefiniteMatrix
from adiabat.lssvm.dual import DualMachine, LeftOut, Values
from adiabat.lssvm.moments import NotConverged
from adiabat.typing import FloatArray, IntArray

_BLOCK: Final = 2048  # rows decided together
_HUGE: Final = 1e6  # k(x, x) of a sample beside that of the others, from which it is named
_FEW: Final = 8  # roundings of a kernel value besides those of the sum over the features


@dataclass(frozen=True)
class Problem:
    """What is asked of the machine; `aims` turns all targets into columns of numbers."""

    rho: float
    intercept: bool
    tol: float
    aims: Callable[[npt.NDArray[Any]], FloatArray]


@dataclass(frozen=True)
class KernelModel:
    """Samples, and the machine on those that have weight: `heavy`, in the machine's order."""

    X: Any
    y: npt.NDArray[Any]
    weight: FloatArray
    ledger: Ledger
    kernel: Kernel
    heavy: IntArray
    machine: DualMachine

    def __len__(self) -> int:
        return len(self.weight)

    @classmethod
    def built(
        cls,
        X: Any,
        y: npt.NDArray[Any],
        weight: FloatArray,
        ledger: Ledger,
        kernel: Kernel,
        problem: Problem,
        heavy: IntArray | None = None,
    ) -> KernelModel:
        """From scratch; `heavy` if the machine's order is known already."""
        heavy = np.flatnonzero(weight > 0.0) if heavy is None else heavy
        _require_room(len(heavy))
        values = _known(kernel, X, heavy)
        with _naming(ledger, heavy, np.diagonal(values.K)):
            machine = DualMachine.built(
                values, problem.rho / weight[heavy], problem.aims(y)[heavy], problem.intercept,
                problem.tol,
            )  # fmt: skip
        return cls(X, y, weight, ledger, kernel, heavy, machine)

    def moved(
        self,
        stays: IntArray,
        ledger: Ledger,
        y: npt.NDArray[Any],
        weight: FloatArray,
        X_new: Any,
        problem: Problem,
    ) -> KernelModel:
        """The model after samples were removed, and others added at the end."""
        X = self._kept(stays, X_new)
        was = np.full(len(weight), -1, dtype=np.int64)
        was[: len(stays)] = self._places()[stays]
        return self._rearranged(X, y, weight, ledger, was, problem)

    def corrected(
        self,
        places: IntArray,
        X_new: Any,
        y: npt.NDArray[Any],
        weight: FloatArray,
        problem: Problem,
    ) -> KernelModel:
        """The model with other features, targets or weights of some samples."""
        X = self.X
        was = self._places()
        was[places[weight[places] != self.weight[places]]] = -1
        if X_new is not None:
            X = X.tolil() if sp.issparse(X) else X.copy()
            X[places] = X_new.toarray() if sp.issparse(X_new) else X_new
            X = as_csr(X)
            was[places] = -1
        return self._rearranged(X, y, weight, self.ledger, was, problem)

    def under(self, kernel: Kernel, problem: Problem) -> KernelModel:
        """The same samples under another kernel, or another problem."""
        if not kernel.equals(self.kernel):
            return KernelModel.built(
                self.X, self.y, self.weight, self.ledger, kernel, problem, self.heavy
            )
        d, aims = problem.rho / self.weight[self.heavy], problem.aims(self.y)[self.heavy]
        machine = self.machine
        if problem.tol == machine.tol and np.array_equal(d, machine.d):
            return self
        machine = DualMachine.built(machine.values, d, aims, problem.intercept, problem.tol)
        return replace(self, machine=machine)

    def known(self) -> Values:
        """Kernel values of the machine, from the features or as they were given."""
        return _known(self.kernel, self.X, self.heavy)

    def decide(self, X: Any) -> FloatArray:
        """Outputs at some rows, a block at a time."""
        outputs = np.tile(self.machine.bias, (X.shape[0], 1))
        if len(self.machine) and self.kernel.name == "precomputed":
            outputs += multiply(X[:, self.heavy], self.machine.alpha)
        elif self.machine.w is not None:
            for start in range(0, X.shape[0], _BLOCK):
                part = slice(start, start + _BLOCK)
                outputs[part] += multiply(_features(self.kernel, X[part]), self.machine.w)
        elif len(self.machine):
            rows = self.X[self.heavy]
            with pool_for(X.shape[0] * len(self.heavy) * X.shape[1]):
                for start in range(0, X.shape[0], _BLOCK):
                    part = slice(start, start + _BLOCK)
                    outputs[part] += multiply(self.kernel.block(X[part], rows), self.machine.alpha)
        return outputs

    def left_out(self) -> LeftOut:
        """For each sample, the outputs of the model without it."""
        outputs = np.zeros((len(self), self.machine.aims.shape[1]))
        errors = np.zeros_like(outputs)
        if len(self.heavy):
            found = self.machine.leave_one_out()
            outputs[self.heavy], errors[self.heavy] = found.outputs, found.f_error
        light = np.flatnonzero(self.weight == 0.0)
        if len(light):  # the model does not know them
            outputs[light] = self.decide(self.X[light])
            errors[light] = np.nan
        return LeftOut(outputs, errors)

    def _kept(self, stays: IntArray, X_new: Any) -> Any:
        """The samples that stay, with the new ones after them; of a given kernel, its values.

        Those of new samples come against all samples so far, and then among themselves.
        """
        if self.kernel.name != "precomputed":
            return self.X[stays] if X_new is None else _stacked(self.X[stays], X_new)
        if X_new is None:
            return self.X[np.ix_(stays, stays)]
        columns = np.concatenate([stays, np.arange(len(self), X_new.shape[1])])
        above = np.hstack([self.X[np.ix_(stays, stays)], X_new[:, stays].T])
        return np.vstack([above, X_new[:, columns]])

    def _places(self) -> IntArray:
        """Where each sample is in the machine; -1 where it is not."""
        places = np.full(len(self), -1, dtype=np.int64)
        places[self.heavy] = np.arange(len(self.heavy))
        return places

    def _rearranged(
        self,
        X: Any,
        y: npt.NDArray[Any],
        weight: FloatArray,
        ledger: Ledger,
        was: IntArray,
        problem: Problem,
    ) -> KernelModel:
        """Carry a change out on the machine; `was` is where a sample was in it, -1 if new."""
        heavy = np.flatnonzero(weight > 0.0)
        staying, coming = heavy[was[heavy] >= 0], heavy[was[heavy] < 0]
        # in the machine's own order, so that it can leave in place what does not move
        staying = staying[np.argsort(was[staying])]
        order = np.concatenate([staying, coming])
        if len(coming):
            _require_room(len(order))
        cross = _values(self.kernel, X, coming, staying)
        new = _known(self.kernel, X, coming)
        own = np.diagonal(self.machine.values.K)[was[staying]]
        with _naming(ledger, order, np.concatenate([own, np.diagonal(new.K)])):
            machine = replace(self.machine, tol=problem.tol).changed(
                was[staying], cross, new, problem.rho / weight[coming], problem.aims(y)[order]
            )
        return KernelModel(X, y, weight, ledger, self.kernel, order, machine)


@contextmanager
def _naming(ledger: Ledger, rows: IntArray, own: FloatArray) -> Iterator[None]:
    """Let a failure say which sample is much larger than the others, if one is."""
    try:
        yield
    except (IndefiniteMatrix, NotConverged) as error:
        if len(own) == 0 or not own.max() > _HUGE * np.median(own):
            raise
        row = int(np.argmax(own))
        raise type(error)(
            f"{error}; the sample {ledger.ids.tolist()[rows[row]]!r} has k(x, x) = {own[row]:.2g}, "
            f"others about {np.median(own):.2g}: correct it, or leave it out"
        ) from error


def _require_room(n: int) -> None:
    remedy = "fewer rows, SVC or SVR, LSSVC or LSSVR with a feature map, or more memory"
    require_matrices(
        n, OF_SAMPLES, f"Holding a kernel matrix of {n} samples and its inverse", remedy
    )


def _known(kernel: Kernel, X: Any, rows: IntArray) -> Values:
    """Kernel values among samples, and how well they are known."""
    K = _values(kernel, X, rows, rows)
    if kernel.name == "precomputed":
        return Values(K)
    if kernel.name == "linear" and not sp.issparse(X):
        return Values(K, 0.0, _features(kernel, X[rows]))
    terms = int(np.diff(X.indptr).max(initial=0)) if sp.issparse(X) else X.shape[1]
    degree = max(1, kernel.degree) if kernel.name == "poly" else 1
    return Values(K, degree * (terms + _FEW) * UNIT)


def _features(kernel: Kernel, X: Any) -> FloatArray:
    """What a linear kernel multiplies, dense."""
    return np.ascontiguousarray(kernel.features(X.toarray() if sp.issparse(X) else X))


def _values(kernel: Kernel, X: Any, rows: IntArray, columns: IntArray) -> FloatArray:
    if kernel.name == "precomputed":
        return np.asarray(X[np.ix_(rows, columns)])
    if len(rows) == 0 or len(columns) == 0:
        return np.zeros((len(rows), len(columns)))
    own = X[rows]
    return kernel.block(own, own if rows is columns else X[columns])


def _stacked(above: Any, below: Any) -> Any:
    if sp.issparse(above) or sp.issparse(below):
        return sp.csr_array(sp.vstack([sp.csr_array(above), sp.csr_array(below)]))
    return np.vstack([above, below])
