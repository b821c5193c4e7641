# SPDX-License-Identifier: BSD-3-Clause
"""What a partition is asked: who is there, some rows to start from, and who disagrees.

A row outside the model carries no weight. It agrees if its residual is on the right side of 0:

    t - f <= 0  where its weight could only grow,   f - t <= 0  where it could only fall

(CP01 (2)). Then the optimum of the rows inside is the optimum of all. A row that disagrees is a
violator, and the worst of them are sent to the model.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from sklearn.base import clone, is_classifier

from adiabat._core.kernel_values import multiply
from adiabat.certificate import EPSILON, ROUNDINGS
from adiabat.engine.threads import pool_for
from adiabat.estimators.arguments.validation import as_csr, check_weights
from adiabat.formulations import Formulation
from adiabat.kernels import Kernel
from adiabat.preprocessing.moments import Moments
from adiabat.typing import FloatArray, IntArray

# Kernel values at once (64 MB).
_BLOCK_ENTRIES: Final = 1 << 23


@dataclass(frozen=True)
class Part:
    """The rows of one partition, and its number, by which errors name it."""

    X: Any
    y: Any
    sample_weight: Any = None
    number: int = 0

    def __sizeof__(self) -> int:
        # Dask asks for it, and writes to disk what does not fit in memory
        return 64 + sum(_nbytes(each) for each in (self.X, self.y, self.sample_weight))


@dataclass(frozen=True)
class Rows:
    """Checked rows on their way to the model, by their places in the partition."""

    places: IntArray
    X: Any
    y: npt.NDArray[Any]
    weight: FloatArray


@dataclass(frozen=True)
class Survey:
    """Who is in a partition: rows, columns, the weight of each label, sums for gamma."""

    n: int
    n_features: int = 0
    names: npt.NDArray[Any] | None = None
    labels: tuple[Any, ...] = ()
    counts: tuple[int, ...] = ()
    weights: tuple[float, ...] = ()
    entries: Moments | None = None


@dataclass(frozen=True)
class Decider:
    """A model as the partitions need it: support vectors, weights, b, and what rows aim at."""

    kernel: Kernel
    vectors: Any
    weights: FloatArray
    biases: FloatArray
    formulation: Formulation
    keys: tuple[Any, ...]
    code_of: dict[Any, int] | None  # None for numbers
    tol: float
    unit: FloatArray  # what tol is measured in, of a typical row of each machine


@dataclass(frozen=True)
class Look:
    """What a partition says of a model: its violators, and how the worst row stands."""

    rows: Rows | None
    n_violators: int
    n_seen: int
    ratio: float = 0.0  # of the worst row, violation relative to what is allowed
    residual: float = 0.0
    allowed: float = 0.0
    rounding: float = 0.0
    worst: int = -1  # its place
    gap: tuple[float, ...] = ()  # what the rows could gain at most, by machine


def survey(part: Part, like: Any, entries: bool | None) -> Survey:
    """Check a partition; `entries`: whether gamma wants the variance of its entries.

    None for a partition that is known already.
    """
    with named(part):
        if entries is None or length(part.X) == 0:
            return Survey(0)
        twin, X, y, weight = _checked(part, like)
        names = getattr(twin, "feature_names_in_", None)
        moments = None
        if entries:
            moments = Moments(1)
            values = X.toarray() if hasattr(X, "toarray") else X
            moments.change(values.reshape(-1, 1), np.repeat(weight, X.shape[1]), 1)
        if not is_classifier(like):
            return Survey(X.shape[0], X.shape[1], names, entries=moments)
        labels, inverse = np.unique(y, return_inverse=True)
        counts = np.bincount(inverse[weight > 0.0], minlength=len(labels))
        by_label = np.bincount(inverse, weight)
        return Survey(
            X.shape[0], X.shape[1], names, tuple(labels.tolist()), tuple(counts.tolist()),
            tuple(by_label.tolist()), moments,
        )  # fmt: skip


def seeds(part: Part, like: Any, wanted: tuple[dict[Any, int] | int, IntArray]) -> Rows | None:
    """Rows to start from, evenly over the partition: so many of each label, or in all.

    The second of `wanted` are places that are not asked for.
    """
    with named(part):
        number, excluded = wanted
        if length(part.X) == 0:
            return None
        _, X, y, weight = _checked(part, like)
        free = weight > 0.0
        free[excluded] = False
        chosen = []
        for label, n in number.items() if isinstance(number, dict) else [(None, number)]:
            own = np.flatnonzero(free if label is None else free & (y == label))
            chosen.append(
                own[np.unique(np.linspace(0, len(own) - 1, min(n, len(own))).astype(int))]
            )
        places = np.sort(np.concatenate(chosen)) if chosen else np.empty(0, np.int64)
        return Rows(places, X[places], y[places], weight[places])


def look(part: Part, asked: tuple[Any, Decider], own: tuple[IntArray, int]) -> Look:
    """Compare all rows of a partition with a model; send the worst that disagree.

    `own` are the places that the model holds or has forgotten, and how many rows to send at most.
    """
    like, decider = asked
    excluded, most = own
    with named(part):
        if length(part.X) == 0:
            return Look(None, 0, 0, gap=(0.0,) * len(decider.keys))
        _, X, y, weight = _checked(part, like)
        outside = np.ones(X.shape[0], dtype=bool)
        outside[excluded] = False
        places = np.flatnonzero(outside)
        f, sizes = _decided(decider, X[places])
        score, found = np.zeros(len(places)), _Worst()
        gaps = []
        target = _coded(decider, y[places])
        for column, key in enumerate(decider.keys):
            rows = decider.formulation.rows(key, target, weight[places], np.ones(len(places)))
            at = rows.sample
            r = f[at, column] - rows.t
            violation = np.where(rows.hi > 0.0, -r, np.where(rows.lo < 0.0, r, 0.0))
            violation = np.maximum(violation, 0.0)
            terms = sizes[at, column]  # of the row alone, which is stricter than the judge
            rounding = ROUNDINGS * EPSILON * (terms + abs(decider.biases[column]) + np.abs(rows.t))
            allowed = decider.tol * np.maximum(np.abs(rows.t), decider.unit[column]) + rounding
            found.compare(violation, allowed, rounding, places[at])
            np.maximum.at(score, at, np.where(violation > rounding, violation, 0.0))
            gaps.append(float(violation @ np.maximum(rows.hi, -rows.lo)))
        violators = np.flatnonzero(score)
        chosen = violators[np.argsort(-score[violators], kind="stable")[:most]]
        chosen = places[np.sort(chosen)]
        rows_sent = Rows(chosen, X[chosen], y[chosen], weight[chosen]) if len(chosen) else None
        return Look(rows_sent, len(violators), len(places), *found.row, gap=tuple(gaps))


class _Worst:
    """The row that is worst for what it is allowed, of all machines."""

    def __init__(self) -> None:
        self.row: tuple[float, float, float, float, int] = (0.0, 0.0, 0.0, 0.0, -1)

    def compare(
        self, violation: FloatArray, allowed: FloatArray, rounding: FloatArray, places: IntArray
    ) -> None:
        if len(violation):
            k = int(np.argmax(violation / allowed))
            ratio = float(violation[k] / allowed[k])
            if ratio > self.row[0]:
                self.row = (
                    ratio, float(violation[k]), float(allowed[k]), float(rounding[k]),
                    int(places[k]),
                )  # fmt: skip


def _coded(decider: Decider, y: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if decider.code_of is None:
        return y
    labels, inverse = np.unique(y, return_inverse=True)
    codes = np.array([decider.code_of.get(label, -1) for label in labels.tolist()], np.int64)
    return codes[inverse]


def _decided(decider: Decider, X: Any) -> tuple[FloatArray, FloatArray]:
    """Decision values of every machine, and |K||u|, the sizes of their terms."""
    n, s = X.shape[0], decider.weights.shape[0]
    f = np.tile(decider.biases, (n, 1))
    sizes = np.zeros_like(f)
    step = max(1, _BLOCK_ENTRIES // max(1, s))
    with pool_for(n * s * X.shape[1]):
        for start in range(0, n if s else 0, step):
            part = slice(start, start + step)
            K = decider.kernel.block(X[part], decider.vectors)
            f[part] += multiply(K, decider.weights)
            sizes[part] = multiply(np.abs(K, out=K), np.abs(decider.weights))
    return f, sizes


def _checked(part: Part, like: Any) -> tuple[Any, Any, npt.NDArray[Any], FloatArray]:
    twin = clone(like)
    require_pairs(part)
    X, y = twin._check_batch(part.X, part.y, reset=True)
    return twin, as_csr(X), y, check_weights(part.sample_weight, X.shape[0])


def _nbytes(X: Any) -> int:
    if X is None:
        return 0
    if hasattr(X, "indptr"):
        return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)
    if hasattr(X, "memory_usage"):
        return int(np.sum(X.memory_usage(deep=False)))
    return int(getattr(X, "nbytes", 0))


def require_pairs(part: Part) -> None:
    """Refuse a partition with more rows than targets, or fewer."""
    n, m = length(part.X), length(part.y)
    if n != m:
        raise ValueError(f"X has {n} rows and y {m}; cut both in the same places")


def length(X: Any) -> int:
    """How many rows there are."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


@contextmanager
def named(part: Part) -> Iterator[None]:
    """Errors name the partition."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise type(error)(f"partition {part.number}: {error}") from error
