# SPDX-License-Identifier: BSD-3-Clause
"""Every kind of machine by its row of the table: samples to rows (t, lo, hi) and the sum d.

======== ======================== ================= =======================
kind     t                        box               d
======== ======================== ================= =======================
svc      +1 ; -1                  [0, Cw]; [-Cw, 0] 0, a machine each pair
svr      y - epsilon; y + epsilon [0, Cw]; [-Cw, 0] 0, both for each sample
one_class 0                       [0, w]            nu sum(w)
svdd     k(x, x) / 2              [0, Cw]           1
======== ======================== ================= =======================

Where C sum(w) < 1 the boxes of a sphere cannot hold a sum of 1, and 1 / sum(w) stands for C.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from .batch_qp import Matrix, Rows, Solution, Vector, solve
from .problems import gram_of

#: Kinds whose d is 0, so that a constant added to the kernel changes nothing but b.
SHIFT_FREE = ("svc", "svr")


def svr_rows(y: npt.ArrayLike, C: float, epsilon: float, weight: npt.ArrayLike) -> Rows:
    """Two rows a sample: the lower edge of the tube pulls up, the upper edge down."""
    y, cap = np.asarray(y, np.float64), C * np.asarray(weight, np.float64)
    zero = np.zeros_like(cap)
    pairs = [(y - epsilon, y + epsilon), (zero, -cap), (cap, zero)]
    t, lo, hi = (np.column_stack(pair).ravel() for pair in pairs)
    return Rows(t, lo, hi, 0.0)


def one_class_rows(nu: float, weight: npt.ArrayLike) -> Rows:
    """One row a sample; the sum grows with the samples."""
    weight = np.asarray(weight, np.float64)
    zero = np.zeros_like(weight)
    return Rows(zero, zero.copy(), weight.copy(), nu * float(weight.sum()))


def sphere_rows(own: npt.ArrayLike, C: float, weight: npt.ArrayLike) -> Rows:
    """One row a sample with k(x, x) = own; the least C that can hold a sum of 1, if C cannot."""
    own, weight = np.asarray(own, np.float64), np.asarray(weight, np.float64)
    mass = float(weight.sum())
    if mass == 0.0:
        return Rows(0.5 * own, np.zeros_like(own), np.zeros_like(own), 0.0)
    cap = max(C, 1.0 / mass) * weight
    return Rows(0.5 * own, np.zeros_like(own), cap, 1.0)


@dataclass(frozen=True)
class Task:
    """Problem (P) of one machine: which of the given samples its rows stand for, K and the rows."""

    key: Any
    sample: npt.NDArray[np.int64]
    K: Matrix
    rows: Rows

    def solve(self, **options: Any) -> Solution:
        """The optimum, by an interior point solver."""
        return solve(self.K, *self.rows, **options)


def tasks(kind: str, params: dict[str, Any], X: Any, y: Any, weight: Any) -> list[Task]:
    """The machines of an estimator of this kind on these samples."""
    if kind == "svc":
        classes = np.unique(y).tolist()
        return [_pair(params, X, y, weight, pair) for pair in combinations(classes, 2)]
    n = len(weight)
    sample = np.repeat(np.arange(n), 2 if kind == "svr" else 1)
    K = gram_of(params, X, X)
    if kind == "svr":
        rows = svr_rows(y, params["C"], params["epsilon"], weight)
    elif kind == "one_class":
        rows = one_class_rows(params["nu"], weight)
    else:
        rows = sphere_rows(np.diag(K), params["C"], weight)
    return [Task("all", sample, K[np.ix_(sample, sample)], rows)]


def _pair(params: dict[str, Any], X: Any, y: Any, weight: Any, pair: tuple[Any, Any]) -> Task:
    factors = params.get("class_weight") or {}
    sample = np.flatnonzero(np.isin(y, pair))
    positive = y[sample] == pair[1]
    cap = np.where(positive, factors.get(pair[1], 1.0), factors.get(pair[0], 1.0))
    cap = params["C"] * cap * weight[sample]
    t = np.where(positive, 1.0, -1.0)
    rows = Rows(t, np.where(positive, 0.0, -cap), np.where(positive, cap, 0.0), 0.0)
    return Task(pair, sample, gram_of(params, X[sample], X[sample]), rows)


def by_row(kind: str, u: Vector) -> Vector:
    """Weights by sample as weights by row: of the two rows of an SVR sample one has it all."""
    if kind != "svr":
        return u
    return np.column_stack([np.maximum(u, 0.0), np.minimum(u, 0.0)]).ravel()


def seen(kind: str, params: dict[str, Any], f: Vector, X: Any) -> Vector:
    """Decision values as a user sees them: f, or for a sphere R^2 - |phi(x) - a|^2 = 2f - k(x, x).

    From K u + b = k(x, x) / 2 on the margin, R^2 = 2b + u'Ku.
    """
    if kind != "svdd":
        return f
    own = np.array([gram_of(params, x[None, :], x[None, :])[0, 0] for x in X])
    return np.asarray(2.0 * f - own, dtype=np.float64)
