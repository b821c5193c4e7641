# SPDX-License-Identifier: BSD-3-Clause
"""Which transformers can stand in front of a model that unlearns, and how they follow its rows.

A transformer can if it is ours, or takes nothing from the rows, or is made of such: a `Pipeline`, a
`ColumnTransformer`. What has `forget` follows single rows; the others are fitted anew to all rows,
which comes to the same, since nothing that ours have learned depends on what came and went.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import sklearn.compose
import sklearn.preprocessing
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

#: Ours, by the name of scikit-learn's.
OURS: Final = (
    "ColumnTransformer", "MinMaxScaler", "OneHotEncoder", "RobustScaler", "SimpleImputer",
    "StandardScaler",
)  # fmt: skip
#: Of scikit-learn; `fit` takes from the rows how many columns there are, and nothing else.
_STATELESS: Final = (
    sklearn.preprocessing.PolynomialFeatures,
    sklearn.preprocessing.FunctionTransformer,
)
_WORDS: Final = ("passthrough", "drop", None)


def require_unlearnable(transformer: Any) -> None:
    """Refuse a transformer that would remember rows that are forgotten."""
    for name, part in _leaves(transformer):
        if hasattr(part, "forget") or _is_stateless(part):
            continue
        kind = type(part).__name__
        if kind in OURS:
            remedy = f"use adiabat.{kind}, which does"
        elif isinstance(part, Pipeline):
            remedy = "name its steps"
        else:
            remedy = f"use one of adiabat's: {', '.join(OURS)}"
        where = f"{name}={kind}(...)" if name else f"{kind}(...)"
        raise TypeError(
            f"{where} of {type(part).__module__.partition('.')[0]} cannot unlearn rows: what it "
            f"took from them would stay; {remedy}"
        )


def _leaves(transformer: Any, name: str = "") -> list[tuple[str, Any]]:
    """(name, transformer) of all that are not made of others."""
    if isinstance(transformer, Pipeline):
        parts = transformer.steps
    elif isinstance(transformer, sklearn.compose.ColumnTransformer) and hasattr(
        transformer, "forget"
    ):
        parts = [part[:2] for part in transformer.transformers]
        parts.append(("remainder", transformer.remainder))
    else:
        return [] if transformer in _WORDS else [(name, transformer)]
    return [leaf for key, part in parts for leaf in _leaves(part, key)]


def _is_stateless(transformer: Any) -> bool:
    return isinstance(transformer, _STATELESS) or (
        hasattr(transformer, "transform") and not get_tags(transformer).requires_fit
    )


def can_forget(transformer: Any) -> bool:
    """Whether single rows can be taken out of it: no step follows from what others learned."""
    if isinstance(transformer, Pipeline):
        return False
    if isinstance(transformer, sklearn.compose.ColumnTransformer):
        return all(can_forget(part[1]) for part in transformer.transformers)
    return transformer in _WORDS or hasattr(transformer, "forget") or _is_stateless(transformer)


def fit_to(transformer: Any, X: Any, weight: Any) -> Any:
    """A transformer fitted to rows; weights, unless None, go to those parts that take them."""
    if isinstance(transformer, Pipeline):
        steps = []
        for place, (name, step) in enumerate(transformer.steps):
            fitted = step if step in _WORDS else fit_to(clone(step), X, weight)
            if step not in _WORDS and place < len(transformer.steps) - 1:
                X = fitted.transform(X)
            steps.append((name, fitted))
        return Pipeline(steps)
    weighted = weight is not None and has_fit_parameter(transformer, "sample_weight")
    return transformer.fit(X, sample_weight=weight) if weighted else transformer.fit(X)


def followed(transformer: Any, came: Any, came_weight: Any, gone: Any, gone_weight: Any) -> Any:
    """A transformer as it is once rows have come and gone; it stays as it is itself."""
    twin = copied(transformer)
    for verb, rows, weight in (
        ("partial_fit", came, came_weight),
        ("forget", gone, gone_weight),
    ):
        if rows.shape[0] and hasattr(twin, "forget"):
            weighted = weight is not None and has_fit_parameter(twin, "sample_weight")
            getattr(twin, verb)(rows, **({"sample_weight": weight} if weighted else {}))
    return twin


def copied(transformer: Any) -> Any:
    """A copy that learns apart from the first."""
    return transformer._copy() if hasattr(transformer, "_copy") else transformer


def at_positions(transformer: Any, X: Any) -> Any:
    """A clone in which columns that are named or chosen by a function stand as numbers."""
    fresh = clone(transformer)
    if isinstance(fresh, Pipeline) and fresh.steps and fresh.steps[0][1] not in _WORDS:
        (name, first), *others = fresh.steps
        return Pipeline([(name, at_positions(first, X)), *others])
    return fresh._at_positions(X) if hasattr(fresh, "_at_positions") else fresh


def is_fitted(transformer: Any) -> bool:
    """Whether it holds rows, or needs none."""
    return bool(getattr(transformer, "__sklearn_is_fitted__", lambda: True)())


def learned(transformer: Any) -> dict[str, Any]:
    """What it has learned, by name; parts of it under their own names."""
    if isinstance(transformer, Pipeline):
        return {name: learned(step) for name, step in transformer.steps if step not in _WORDS}
    if isinstance(transformer, sklearn.compose.ColumnTransformer):
        return {
            "sparse_output_": transformer.sparse_output_,
            **{name: learned(part) for name, part, _ in transformer.transformers_
               if part not in _WORDS},
        }  # fmt: skip
    return {
        name: learned(value) if hasattr(value, "fit") else value
        for name, value in vars(transformer).items()
        if name.endswith("_") and not name.startswith("_") and name not in _COUNTS
    }


# They count rows, and decide nothing.
_COUNTS: Final = ("n_samples_seen_", "feature_names_in_")


def same(a: Any, b: Any) -> bool:
    """Whether two of what `learned` gives are equal to the last bit."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[name], b[name]) for name in a)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        if a.shape != b.shape or a.dtype != b.dtype:
            return False
        return bool(np.all((a == b) | ((a != a) & (b != b))))
    return bool(a == b) or bool(a is b) or bool(a != a and b != b)
