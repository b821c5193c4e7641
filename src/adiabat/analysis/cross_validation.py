# SPDX-License-Identifier: BSD-3-Clause
"""Exact cross-validation of a fitted model: each fold leaves it in one step, without a refit.

The results are those of fitting on the rest of each fold, with what the model holds held (gamma,
class weights): scikit-learn's functions of the same names give the same scores, to rounding, for an
estimator that has these as numbers. Here the work of a fold is the unlearning of it (KT09).
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, cast

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import check_scoring, get_scorer_names
from sklearn.model_selection import check_cv
from sklearn.utils.validation import check_is_fitted

from adiabat.analysis.folds import Folds, folds_of
from adiabat.estimators.what_if.workers import ask_each
from adiabat.typing import FloatArray, IntArray

Split = tuple[IntArray, IntArray]  # places of the training set and of the test set


def cross_validate(
    model: Any,
    X: Any = None,
    y: Any = None,
    *,
    groups: Any = None,
    scoring: Any = None,
    cv: Any = None,
    n_jobs: int | None = None,
    return_train_score: bool = False,
    return_estimator: bool = False,
    return_indices: bool = False,
    sample_weight: Any = None,
) -> dict[str, Any]:
    """Cross-validate a fitted model on its own samples, as scikit-learn's `cross_validate` does.

    Each fold is unlearned from the full model in one step, scored, and the model is as it was.

    Parameters
    ----------
    model : SVC, SVR, OneClassSVM, SVDD, or another fitted estimator of this package
        It is not changed.
    X, y : optional
        The samples of the model, in the order of `ids_`; needed where the model does not hold
        them. Models of one class may be given a y of +1 and -1 to be scored against.
    groups : array of shape (n_samples,), optional
        For splitters that need them.
    scoring : str, callable, list, tuple or dict, optional
        As in scikit-learn; by default the `score` of the model.
    cv : int, splitter or iterable of (train, test), default=None
        As in scikit-learn. What is not in a training set is unlearned for it.
    n_jobs : int or None, default=None
        Folds at a time, as in joblib; threads, unless :func:`joblib.parallel_config` says
        otherwise.
    return_train_score, return_estimator, return_indices : bool, default=False
        What else the result has.
    sample_weight : array of shape (n_samples,), optional
        The weights that X and y were learned with, of a model that holds none. Scores count every
        sample alike, as in scikit-learn.

    Returns
    -------
    dict
        `fit_time` (of unlearning), `score_time`, `test_score`, or `test_<name>` with several
        scorers; `train_score`, `estimator` and `indices` on demand.

    Examples
    --------
    >>> import adiabat
    >>> X = [[0.0], [0.2], [0.4], [2.0], [2.2], [2.4]]
    >>> model = adiabat.SVC(kernel="linear", C=10.0).fit(X, [0, 0, 0, 1, 1, 1])
    >>> adiabat.cross_validate(model, cv=3)["test_score"]
    array([1., 1., 1.])
    """
    folds = _folds(model, X, y, sample_weight)
    score = _scorer(model, scoring)
    splits = _splits(model, folds, cv, groups)
    wanted = (score, return_train_score, return_estimator)
    found = ask_each(_one_fold, (folds, *wanted), splits, n_jobs)
    out: dict[str, Any] = {
        name: np.array([fold[name] for fold in found]) for name in ("fit_time", "score_time")
    }
    if return_estimator:
        out["estimator"] = [fold["estimator"] for fold in found]
    if return_indices:
        out["indices"] = {
            "train": tuple(train for train, _ in splits),
            "test": tuple(test for _, test in splits),
        }
    for part in ("test", "train") if return_train_score else ("test",):
        for name in found[0][part]:
            out[f"{part}_{name}"] = np.array([fold[part][name] for fold in found])
    return out


def validation_curve(
    model: Any,
    param_name: str,
    param_range: Any,
    *,
    X: Any = None,
    y: Any = None,
    groups: Any = None,
    cv: Any = None,
    scoring: Any = None,
    n_jobs: int | None = None,
    sample_weight: Any = None,
) -> tuple[FloatArray, FloatArray]:
    """Scores along values of a parameter, as scikit-learn's `validation_curve` gives them.

    Each fold is unlearned once; the model without it then follows its optimum from value to value
    (`retune`). The model itself is not changed.

    Parameters
    ----------
    model, X, y, groups, cv, n_jobs, sample_weight
        As in `cross_validate`.
    param_name : str
        A parameter of the model, such as ``"C"``.
    param_range : sequence
        Its values.
    scoring : str or callable, optional
        One scorer; by default the `score` of the model.

    Returns
    -------
    train_scores : ndarray of shape (n_values, n_folds)
    test_scores : ndarray of shape (n_values, n_folds)

    Examples
    --------
    >>> import adiabat
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = adiabat.SVC(gamma=0.2).fit(X, y)
    >>> train, test = adiabat.validation_curve(model, "C", [0.1, 10.0], cv=5)
    >>> test.mean(axis=1).round(2).tolist()
    [0.94, 0.98]
    """
    folds = _folds(model, X, y, sample_weight)
    if not hasattr(model, "retune"):
        raise TypeError(f"{type(model).__name__} has no retune, which validation_curve needs")
    if param_name not in model.get_params():
        raise ValueError(
            f"param_name={param_name!r} is not a parameter of {type(model).__name__}; it has "
            f"{', '.join(sorted(model.get_params()))}"
        )
    values = list(param_range)
    if not values:
        raise ValueError("param_range is empty; give one value or more")
    if isinstance(scoring, (list, tuple, set, dict)):
        raise ValueError(f"scoring={scoring!r} has several scorers; validation_curve takes one")
    score = _scorer(model, scoring)
    splits = _splits(model, folds, cv, groups)
    held = (folds, score, param_name, values)
    found = np.array(ask_each(_one_curve, held, splits, n_jobs))  # folds, values, 2
    return found[:, :, 0].T.copy(), found[:, :, 1].T.copy()


def _one_fold(held: tuple[Folds, Any, bool, bool], split: Split) -> dict[str, Any]:
    (folds, score, with_train, keep), (train, test) = held, split
    started = time.perf_counter()
    view = folds.trained_on(train)
    fitted = time.perf_counter()
    out: dict[str, Any] = {"fit_time": fitted - started}
    out["test"] = _scores(score, view, folds, test, train)
    out["score_time"] = time.perf_counter() - fitted
    if with_train:
        out["train"] = _scores(score, view, folds, train, train)
    if keep:
        out["estimator"] = folds.independent(view)
    return out


def _one_curve(held: tuple[Folds, Any, str, list[Any]], split: Split) -> list[tuple[float, float]]:
    (folds, score, name, values), (train, test) = held, split
    view = folds.trained_on(train)
    curve = []
    for value in values:
        view.retune(**{name: value})
        both = [_scores(score, view, folds, places, train)["score"] for places in (train, test)]
        curve.append((both[0], both[1]))
    return curve


def _scores(
    score: Any, view: Any, folds: Folds, places: IntArray, train: IntArray
) -> dict[str, float]:
    """Scores by name; one scorer alone is called "score"."""
    X = folds.rows(places, train)
    given = score(view, X) if folds.y is None else score(view, X, folds.y[places])
    named = given if isinstance(given, dict) else {"score": given}
    for name, value in named.items():
        if not np.isscalar(value) and np.ndim(value) > 0:
            raise ValueError(f"scoring must give a number, and {name} gave {value!r}")
    return {name: float(cast(Any, value)) for name, value in named.items()}


def _folds(model: Any, X: Any, y: Any, sample_weight: Any) -> Folds:
    check_is_fitted(model)
    return folds_of(model, X, y, sample_weight)


def _splits(model: Any, folds: Folds, cv: Any, groups: Any) -> list[Split]:
    """Training and test places of each fold, checked."""
    if groups is not None and len(groups) != folds.n:
        raise ValueError(
            f"groups has {len(groups)} labels, the model has {folds.n} samples; give one label for "
            "each of ids_, in that order"
        )
    splitter = check_cv(cv, folds.y, classifier=is_classifier(model))
    splits = []
    for train, test in splitter.split(folds.X, folds.y, groups):
        sets = [_places(part, folds.n) for part in (train, test)]
        if len(sets[0]) == 0 or len(np.unique(sets[0])) < len(sets[0]):
            raise ValueError(
                f"cv={cv!r} gives a training set that is empty or has a sample twice; each sample "
                "may be in it once, and there must be one"
            )
        splits.append((np.sort(sets[0]), sets[1]))
    if not splits:
        raise ValueError(f"cv={cv!r} gives no folds; give one (train, test) or more")
    return splits


def _places(part: Any, n: int) -> IntArray:
    places = np.asarray(part)
    if places.dtype == bool:
        if len(places) != n:
            raise ValueError(f"cv gives a mask of {len(places)} for {n} samples")
        return np.flatnonzero(places)
    places = places.astype(np.int64)
    if len(places) and (places.min() < -n or places.max() >= n):
        raise ValueError(f"cv gives places up to {places.max()}, the model has {n} samples")
    return np.where(places < 0, places + n, places)


def _scorer(model: Any, scoring: Any) -> Any:
    """The scorer; a clear error where there is none."""
    if scoring is None and not hasattr(model, "score"):
        raise ValueError(
            f"scoring=None asks for the score of {type(model).__name__}, which has none; name a "
            "scorer of scikit-learn, or pass a callable scorer(model, X, y)"
        )
    if callable(scoring):
        return scoring
    if isinstance(scoring, Mapping):
        scoring = dict(scoring)
    if isinstance(scoring, str) and scoring not in get_scorer_names():
        near = get_close_matches(scoring, get_scorer_names(), 1)
        raise ValueError(
            f"scoring={scoring!r} is not a scorer"
            + (f"; did you mean {near[0]!r}?" if near else ";")
            + " sklearn.metrics.get_scorer_names() lists those with a name"
        )
    try:
        return check_scoring(model, scoring)
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(
            f"scoring={scoring!r} is not a scorer: {error} "
            "sklearn.metrics.get_scorer_names() lists those with a name."
        ) from error
