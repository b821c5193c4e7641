# SPDX-License-Identifier: BSD-3-Clause
"""A copy of a model that learns one newcomer, and forgets it again.

It is used where pivots of a tableau fail. Each visit is a full update, judge included.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np

from adiabat.errors import NotOptimalError
from adiabat.estimators.arguments.validation import as_csr
from adiabat.estimators.ledger import Ledger
from adiabat.estimators.what_if.copies import nameless, own_copy
from adiabat.typing import FloatArray


class Points:
    """Newcomers to a model, checked: their rows, and kernel values with themselves.

    Parameters
    ----------
    estimator : KernelMachine
    X, diagonal
        As a caller gave them.
    """

    def __init__(self, estimator: Any, X: Any, diagonal: Any = None) -> None:
        self.X = as_csr(estimator._check_at(X))
        self._estimator, self._diagonal = estimator, diagonal

    @cached_property
    def own(self) -> FloatArray:
        """Their k(x, x)."""
        model = self._estimator._model
        if model.kernel.name != "precomputed":
            return np.asarray(model.kernel.diagonal(self.X))
        return given_diagonal(self._diagonal, model.solver.samples.diagonal, len(self))

    def __len__(self) -> int:
        return int(self.X.shape[0])


def given_diagonal(diagonal: Any, held: FloatArray, n: int) -> FloatArray:
    """k(x, x) of rows under a given kernel: as given, or that of the samples if all have one."""
    if diagonal is None:
        if np.ptp(held) > 1e-12 * np.max(np.abs(held)):
            raise ValueError(
                "diagonal is missing: with kernel='precomputed' and values k(x, x) that differ, "
                "pass those of the rows of X"
            )
        return np.full(n, held.mean())
    own = np.asarray(diagonal, dtype=np.float64)
    if own.shape != (n,) or not np.all(np.isfinite(own) & (own >= 0.0)):
        raise ValueError(
            f"diagonal has shape {own.shape}; it must have a finite k(x, x) >= 0 for each of the "
            f"{n} rows of X"
        )
    return own


class Visits:
    """Newcomers to a copy of a model, one at a time; the copy is made when it is first needed."""

    def __init__(self, estimator: Any, points: Points) -> None:
        self._estimator, self._points = estimator, points
        self._view: Any = None

    @contextmanager
    def of(self, number: int, target: Any = None, **how: Any) -> Iterator[Any]:
        """The copy with a newcomer, which is its last sample and has the id `n`."""
        view = self._copy()
        row = self._points.X[number : number + 1]
        if view.kernel == "precomputed":
            row = np.append(row, self._points.own[number])[None, :]
        visitor = len(self._estimator._model)
        known = {} if target is None else {"y": [target]}
        view.update(row, ids=[visitor], **known, **how)
        try:
            yield view
        finally:
            try:
                view.forget([visitor])
            except NotOptimalError:
                self._view = None

    def _copy(self) -> Any:
        if self._view is None:
            view = nameless(own_copy(self._estimator, self._estimator))
            view.retain = None
            view._checked_parameters = (view.tol, view.solver, None)
            view._model.ledger = Ledger()
            view._model.ledger.append(list(range(len(view._model))))
            self._view = view
        return self._view
