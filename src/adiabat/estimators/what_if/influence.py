# SPDX-License-Identifier: BSD-3-Clause
"""What each sample is worth: the change of a validation loss when it goes, exactly.

The optimum does not depend on a sample without weight, which costs nothing, unless the sum of
weights, a box or b depends on it. Every other one is removed as in leave-one-out, and f at the
validation points follows from the weights that changed. Where the model has other machines or boxes
without a sample, it is removed from a shared copy, and the points are decided anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from sklearn.base import is_classifier
from sklearn.utils.validation import check_array

from adiabat.engine.threads import blas_held
from adiabat.estimators.arguments.labels import exact_labels, label_places
from adiabat.estimators.arguments.validation import as_csr
from adiabat.estimators.kernel.model import Model
from adiabat.estimators.what_if.copies import copy_removing, shared_copy
from adiabat.estimators.what_if.groups import shaped_as
from adiabat.estimators.what_if.point_kernel import PointKernel
from adiabat.estimators.what_if.removals import remove_each, weighty_units
from adiabat.estimators.what_if.results import Influence
from adiabat.estimators.what_if.workers import ask_each
from adiabat.typing import FloatArray, IntArray

# Kernel values of validation points with samples, at most, that are kept at once (512 MB).
MOST_ENTRIES = 1 << 26
Loss = Callable[[npt.NDArray[Any], FloatArray], float]


def influence(
    estimator: Any, X_val: Any, y_val: Any, loss: str | Loss | None, n_jobs: int | None
) -> Influence:
    """Remove every sample that matters in turn; see `KernelMachine.influence`."""
    model: Model = estimator._model
    if len(model) < 2:
        raise ValueError("influence needs a model of two samples or more; this one has one")
    y, score = prepared(estimator, X_val, y_val, loss)
    X = _points(estimator, X_val)
    matters = who_matters(model)
    apart = [place for place in matters if not is_simple(model, place)]
    simple = sorted(set(matters) - set(apart))
    if X.shape[0] * max(len(model), len(simple) * len(model.machines)) > MOST_ENTRIES:
        apart, simple = matters, []

    scale = _Scale(estimator, X, y, score)
    found = changes_of_loss(model, apart, _loss_after_removal, scale, n_jobs)
    view = shared_copy(estimator)
    for place, moved in _values_after_removal(estimator, simple, scale.known, n_jobs):
        view._decide = lambda _, moved=moved: moved
        found.change[place] = float(score(y, decision(estimator, view, X))) - found.loss
    return replace(found, n_removals=len(matters))


class _Scale:
    """What a removal is weighed with: the model, the points and the loss."""

    def __init__(self, estimator: Any, X: Any, y: npt.NDArray[Any], score: Any) -> None:
        self.estimator, self.X, self.y, self.score = estimator, X, y, score
        self.known = PointKernel(estimator._model, X)

    def __reduce__(self) -> tuple[Any, ...]:
        return _Scale, (self.estimator, self.X, self.y, self.score)


def _loss_after_removal(scale: _Scale, gone: list[int]) -> float:
    estimator = scale.estimator
    view = copy_removing(estimator, np.array(gone, dtype=np.int64))
    view._decide = lambda _: scale.known.decide(view._model)
    return float(scale.score(scale.y, decision(estimator, view, scale.X)))


def is_simple(model: Model, place: int) -> bool:
    """Whether there are the same machines without a sample, and others keep their rows."""
    formulation: Any = model.formulation
    others = np.arange(len(model)) != place
    target, weight = model.target[others], model.weight[others]
    return (
        bool(np.any(weight))
        and list(formulation.machines(target)) == list(formulation.machines(model.target))
        and not formulation.resolve(target, weight).reshapes(formulation)
    )


def _values_after_removal(
    estimator: Any, places: list[int], known: PointKernel, n_jobs: int | None
) -> Iterator[tuple[int, FloatArray]]:
    """Each place, and decision values of all machines at the points without the sample there."""
    model: Model = estimator._model
    if not places:
        return
    units = [unit for unit in weighty_units(model) if unit[1] in set(places)]
    if not model.formulation.shift_free:  # the sum of weights moves, whoever goes
        units = [(column, place) for column in range(len(model.machines)) for place in places]
    removals = remove_each(estimator, units, n_jobs, None, points=known.by_position(model))
    values, moved = known.decide(model), dict[int, FloatArray]()
    for (column, place), removal in zip(units, removals, strict=True):
        assert removal.elsewhere is not None
        moved.setdefault(place, values.copy())[:, column] += removal.elsewhere
    yield from moved.items()


def changes_of_loss(
    model: Model,
    places: list[int],
    loss_after_removal: Callable[[Any, list[int]], float],
    held: Any,
    n_jobs: int | None,
) -> Influence:
    """What becomes of the loss without each of these samples; without the others it stays."""
    with blas_held():
        start = loss_after_removal(held, [])
        found = ask_each(loss_after_removal, held, [[place] for place in places], n_jobs)
    change = np.zeros(len(model))
    change[places] = np.array(found) - start
    return Influence(model.ledger.ids, change, start, len(places))


def _points(estimator: Any, X_val: Any) -> Any:
    if estimator.kernel != "precomputed":
        return as_csr(estimator._check_rows(X_val))
    X = check_array(X_val, dtype=np.float64, input_name="X_val")
    if X.shape[1] != len(estimator._model):
        raise ValueError(
            f"X_val has {X.shape[1]} columns; with kernel='precomputed' it has "
            f"{len(estimator._model)}: kernel values against the samples of ids_, in that order"
        )
    return X


def who_matters(model: Model) -> list[int]:
    """Places of the samples whose going may change the optimum of the others."""
    formulation: Any = model.formulation
    carrying = {place for _, place in weighty_units(model)}
    keys = list(formulation.machines(model.target))
    totals = [formulation.total(key, model.target, model.weight) for key in keys]
    others = np.ones(len(model), dtype=bool)
    found = []
    for place in range(len(model)):
        if place not in carrying:
            others[place] = False
            target, weight = model.target[others], model.weight[others]
            same = (
                list(formulation.machines(target)) == keys
                and not formulation.resolve(target, weight).reshapes(formulation)
                and [formulation.total(key, target, weight) for key in keys] == totals
            )
            others[place] = True
            if same:
                continue
        found.append(place)
    return found


def decision(estimator: Any, view: Any, X: Any) -> FloatArray:
    """What a loss is of: decision values of another model, in the shape of the estimator's own."""
    if is_classifier(estimator):
        return shaped_as(estimator.classes_, view, X)
    if estimator._supervised:
        return np.asarray(view.predict(X))
    return np.asarray(view.decision_function(X))


# -- losses: of class numbers (or numbers) and decision values -----------------------------------


def _margins(y: IntArray, decision: FloatArray) -> FloatArray:
    """By how much the decision values speak for the right class."""
    if decision.ndim == 1:
        return np.where(y == 1, decision, -decision)
    at = np.arange(len(y))
    rest = decision.copy()
    rest[at, y] = -np.inf
    return np.asarray(decision[at, y] - rest.max(axis=1))


def _hinge(y: IntArray, decision: FloatArray) -> float:
    return float(np.mean(np.maximum(0.0, 1.0 - _margins(y, decision))))


def _zero_one(y: IntArray, decision: FloatArray) -> float:
    chosen = decision > 0.0 if decision.ndim == 1 else np.argmax(decision, axis=1)
    return float(np.mean(chosen != y))


def _outside(y: IntArray, decision: FloatArray) -> float:
    return float(np.mean((decision >= 0.0) != (y == 1)))


def _squared(y: FloatArray, decision: FloatArray) -> float:
    return float(np.mean((y - decision) ** 2))


def _absolute(y: FloatArray, decision: FloatArray) -> float:
    return float(np.mean(np.abs(y - decision)))


_OF_CLASSES: Final[dict[str, Any]] = {"hinge": _hinge, "zero_one": _zero_one}
_OF_ONE_CLASS: Final[dict[str, Any]] = {"hinge": _hinge, "zero_one": _outside}
_OF_NUMBERS: Final[dict[str, Any]] = {"squared": _squared, "absolute": _absolute}


def prepared(
    estimator: Any, X_val: Any, y_val: Any, loss: str | Loss | None
) -> tuple[npt.NDArray[Any], Any]:
    """Targets as the loss wants them, and the loss."""
    y = np.asarray(exact_labels(y_val) if is_classifier(estimator) else y_val)
    n = X_val.shape[0] if hasattr(X_val, "shape") else len(X_val)
    if y.shape != (n,):
        raise ValueError(f"y_val has shape {y.shape}, X_val has {n} rows; give one target for each")
    if callable(loss):
        return y, loss
    known = _OF_NUMBERS if estimator._supervised else _OF_ONE_CLASS
    known = _OF_CLASSES if is_classifier(estimator) else known
    name = next(iter(known)) if loss is None else loss
    if name not in known:
        raise ValueError(
            f"loss={loss!r} is not a loss for {type(estimator).__name__}; use one of "
            f"{', '.join(map(repr, known))}, or a function of (y_val, decision values)"
        )
    if is_classifier(estimator):
        if estimator.decision_function_shape == "ovo" and len(estimator.classes_) > 2:
            raise ValueError(
                f"loss={name!r} is of classes, and decision_function_shape='ovo' decides pairs; "
                "set it to 'ovr', or pass a function of (y_val, decision values)"
            )
        codes = label_places(y, estimator.classes_)
        if (codes < 0).any():
            raise ValueError(
                f"y_val has the label {np.unique(y[codes < 0]).tolist()[0]!r}, which the model has "
                f"not learned; it knows {estimator.classes_.tolist()}"
            )
        return codes, known[name]
    if not estimator._supervised:
        if not np.all(np.isin(y, (-1, 1))):
            raise ValueError("y_val must be +1 (inside) or -1 (outside) for each row of X_val")
        return (y == 1).astype(np.int64), known[name]
    return y.astype(np.float64), known[name]
