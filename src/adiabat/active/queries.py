# SPDX-License-Identifier: BSD-3-Clause
"""The two heuristics of LGKM06 §6.2, by decision values alone."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from adiabat.estimators.arguments.validation import n_rows
from adiabat.estimators.kernel import votes
from adiabat.estimators.svc import SVC
from adiabat.typing import FloatArray, IntArray


def near_boundary(scores: FloatArray) -> FloatArray:
    """How far each sample is from the boundary; with many classes, between its best two."""
    if scores.ndim == 1:
        return np.abs(scores)
    if scores.shape[1] == 1:  # a single class so far
        return np.abs(scores[:, 0])
    best = np.partition(scores, -2, axis=1)
    distance: FloatArray = best[:, -1] - best[:, -2]
    return distance


def largest_positive(scores: FloatArray) -> FloatArray:
    """How far each sample is from the most positive."""
    if scores.ndim == 2 and scores.shape[1] > 1:
        raise ValueError(
            f"strategy='largest_positive' needs one positive class, the model has "
            f"{scores.shape[1]} classes; use strategy='near_boundary'"
        )
    return -scores.reshape(len(scores))


#: Each strategy gives a sample a number; the least is asked first.
STRATEGIES: Final[dict[str, Callable[[FloatArray], FloatArray]]] = {
    "near_boundary": near_boundary,
    "largest_positive": largest_positive,
}


def query(model: Any, pool: Any, strategy: str = "near_boundary", n: int = 1) -> IntArray:
    """The samples of a pool that should be labelled next.

    Parameters
    ----------
    model : estimator
        A fitted estimator with a `decision_function`, such as :class:`adiabat.SVC`.
    pool : {array, data frame, sparse} of shape (n_pool, n_features)
        Samples without labels.
    strategy : {"near_boundary", "largest_positive"}, default="near_boundary"
        Those of least absolute decision value, from which the boundary is learned; or those of
        the largest decision value, which are likely of ``classes_[1]`` (LGKM06 §6.2).
    n : int, default=1
        How many.

    Returns
    -------
    ndarray of shape (n,)
        Their places in the pool, the first to be asked first; of equal ones the first in the pool.

    Examples
    --------
    >>> from adiabat import SVC
    >>> from adiabat.active import query
    >>> model = SVC(kernel="linear", C=10.0).fit([[0.0], [4.0]], ["no", "yes"])
    >>> query(model, [[0.5], [1.9], [3.5], [9.0]], n=2)
    array([1, 0])
    >>> query(model, [[0.5], [1.9], [3.5], [9.0]], strategy="largest_positive")
    array([3])
    """
    require_strategy(strategy)
    count = require_count(n, n_rows(pool))
    if not hasattr(model, "decision_function"):
        raise TypeError(f"model={model!r} has no decision_function; use a classifier such as SVC")
    return first_places(decision_values(model, pool), strategy, count)


def decision_values(model: Any, X: Any) -> FloatArray:
    """Decision values, one a class where there are more than two."""
    if not isinstance(model, SVC):
        return np.asarray(model.decision_function(X), dtype=np.float64)
    return class_values(model, model._decide(X))


def class_values(model: SVC, pairs: FloatArray) -> FloatArray:
    """Decision values by class of an SVC, from those of its pairs."""
    n_classes = len(model.classes_)
    return pairs[:, 0] if n_classes == 2 else votes.scores(pairs, n_classes)


def first_places(scores: FloatArray, strategy: str, n: int) -> IntArray:
    """Places of the n samples to be asked first."""
    return np.argsort(STRATEGIES[strategy](scores), kind="stable")[:n].astype(np.int64)


def require_strategy(strategy: Any) -> None:
    """Refuse what is no strategy."""
    if not isinstance(strategy, str) or strategy not in STRATEGIES:
        raise ValueError(f"strategy={strategy!r} must be one of {', '.join(map(repr, STRATEGIES))}")


def require_count(n: Any, n_pool: int) -> int:
    """How many samples are asked for; at least 1, and no more than there are."""
    try:
        count = operator.index(n)
    except TypeError:
        count = 0
    if isinstance(n, (bool, np.bool_)) or count < 1:
        raise ValueError(f"n={n!r} must be an integer >= 1")
    if count > n_pool:
        raise ValueError(
            f"n={count} is more than the {n_pool} samples of the pool; ask for at most {n_pool}"
        )
    return count
