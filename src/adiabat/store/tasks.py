# SPDX-License-Identifier: BSD-3-Clause
"""The tasks a store can hold: one line each in `TASKS`.

Two kinds of estimator stand behind the same verbs. One keeps its rows and unlearns by id; the ids
it sees are the store's record numbers, so that no name of a customer is ever part of a model. The
other keeps no rows and unlearns from the rows themselves, which the store has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

import numpy as np

from adiabat.certificate import Certificate
from adiabat.errors import NotLearnedError, StoreDamagedError
from adiabat.estimators.kernel.partition import sample_sets
from adiabat.store.settings import Settings
from adiabat.typing import IntArray


@dataclass(frozen=True)
class Task:
    """How a store drives one estimator.

    Attributes
    ----------
    home : str
        Module of the estimator, which is imported when it is needed: to predict from a store that
        is there, it is not.
    name : str
        Of the estimator's class.
    target : {"class", "number"} or None
        What its labels are.
    keeps_rows : bool
        Whether the estimator holds its training rows.
    has_sets : bool
        Whether its rows are in the MARGIN, ERROR or RESERVE set.
    """

    home: str
    name: str
    target: str | None
    keeps_rows: bool = True
    has_sets: bool = True

    @property
    def estimator(self) -> Any:
        """The class of the estimator."""
        return getattr(import_module(self.home), self.name)

    def create(
        self, parameters: Mapping[str, Any], scale: str | None = None, transformer: Any = None
    ) -> Any:
        """A new estimator, behind transformers if asked; ValueError if a parameter is not valid."""
        given = dict(parameters)
        if not self.keeps_rows:
            given = _with_feature_map(given)
        known = set(self.estimator().get_params())
        for name in given:
            if name not in known:
                extra = () if self.keeps_rows else ("kernel", *_MAP_PARAMETERS)
                raise ValueError(
                    f"{name}={given[name]!r} is no parameter of {self.name}; it has "
                    f"{', '.join(sorted({*known, *extra} - {'feature_map'}))}"
                )
        model = self.estimator(**given)
        kernel = given.get("kernel", "rbf")
        if callable(kernel) or kernel == "precomputed":
            raise ValueError(f"kernel={kernel!r} has no features to store; use a named kernel")
        if given.get("C") == np.inf:
            raise ValueError("C=inf: a store holds numbers that JSON has; use a finite C")
        if given.get("retain") is not None:
            raise ValueError(f"retain={given['retain']!r}: a store keeps every row; leave it out")
        model._validate_params()
        if not scale:
            return model
        if scale not in ("exact", "held"):
            raise ValueError(f"scale={scale!r} must be 'exact' or 'held'")
        if not self.keeps_rows:
            return _with_scaling(model, scale, transformer)
        if not self.has_sets:
            raise ValueError(
                f"scale={scale!r} is not for {self.name}, whose rows cannot be "
                "scaled anew; use lssvc or lssvr, or another task, or scale the file"
            )
        from adiabat.estimators.incremental_pipeline import IncrementalPipeline

        return IncrementalPipeline(model, transformer, mode=scale)

    def learn(self, model: Any, numbers: IntArray, X: Any, labels: Any, weights: Any) -> None:
        """Learn rows."""
        given = _weighted(weights)
        if self.keeps_rows:
            given["ids"] = numbers
        targets = () if self.target is None else (labels,)
        model.partial_fit(X, *targets, **given)

    def forget(self, model: Any, numbers: IntArray, rows: Rows) -> None:
        """Unlearn rows."""
        if self.keeps_rows:
            model.forget(numbers)
            return
        if rows.labels is None:
            raise StoreDamagedError("rows of the store have no label; restore it from a copy")
        with _of_its_rows():
            model.forget(rows.X, rows.labels, **_weighted(rows.weights))

    def revise(self, model: Any, numbers: IntArray, old: Rows, new: Rows) -> None:
        """Correct rows."""
        if not self.keeps_rows:
            with _of_its_rows():
                model.revise(
                    old.X, old.labels, new.X, new.labels,
                    sample_weight_old=old.weights, sample_weight_new=new.weights,
                )  # fmt: skip
            return
        changed: dict[str, Any] = {}
        if new.X is not old.X:
            changed["X"] = new.X
        if self.target is not None:
            changed["y"] = new.labels
        model.revise(numbers, sample_weight=new.weights, **changed)

    def require_own(self, model: Any, rows: Rows) -> None:
        """Refuse a model that keeps no rows and was not taught these."""
        if not self.keeps_rows:
            from adiabat.estimators.least_squares.analysis import own_rows

            weights = None if np.all(rows.weights == 1.0) else rows.weights
            try:
                own_rows(model, rows.X, rows.labels, weights)
            except ValueError as error:
                raise _of_other_rows(error) from error

    def held(self, model: Any) -> dict[str, Any]:
        """Parameters resolved from data once, for a refit to keep fixed too."""
        if not self.keeps_rows:
            return {}
        if getattr(model, "mode", None) == "exact":
            return {}  # what is taken from the rows is taken again with every change
        known = machine(model).get_params()
        held = model.certificate().held_fixed
        return {name: value for name, value in held.items() if name in known}


def new_model(settings: Settings, parameters: Mapping[str, Any] | None = None) -> Any:
    """An estimator of a store's settings that has learned nothing; other parameters, if given."""
    task = TASKS[settings.task]
    parameters = settings.parameters if parameters is None else parameters
    if settings.impute is None:
        return task.create(parameters, settings.scale)
    return task.create(parameters, settings.scale or "exact", _columns_of(settings))


def _columns_of(settings: Settings) -> Any:
    """What is done to the columns of rows that are kept as they came."""
    from sklearn.pipeline import make_pipeline

    from adiabat.preprocessing.columns import ColumnTransformer
    from adiabat.preprocessing.encoder import OneHotEncoder
    from adiabat.preprocessing.imputer import SimpleImputer
    from adiabat.preprocessing.scaler import StandardScaler

    columns = settings.features or []
    numbers = [j for j, column in enumerate(columns) if column["kind"] == "number"]
    words = [j for j, column in enumerate(columns) if column["kind"] == "category"]
    filled: Any = SimpleImputer(strategy=settings.impute, keep_empty_features=True)
    if settings.scale is not None:
        filled = make_pipeline(filled, StandardScaler())
    encoded = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return ColumnTransformer([("numbers", filled, numbers), ("words", encoded, words)])


@dataclass(frozen=True)
class Rows:
    """Training rows: features, labels, weights."""

    X: Any
    labels: Any
    weights: Any


_OF: Final = "adiabat.estimators."
#: What `adiabat init --task` accepts.
TASKS: Final[dict[str, Task]] = {
    "svc": Task(_OF + "svc", "SVC", "class"),
    "svr": Task(_OF + "svr", "SVR", "number"),
    "one-class": Task(_OF + "one_class_svm", "OneClassSVM", None),
    "svdd": Task(_OF + "svdd", "SVDD", None),
    "lssvc": Task(_OF + "lssvc", "LSSVC", "class", keeps_rows=False, has_sets=False),
    "lssvr": Task(_OF + "lssvr", "LSSVR", "number", keeps_rows=False, has_sets=False),
    "kernel-lssvc": Task(_OF + "kernel_lssvm", "KernelLSSVC", "class", has_sets=False),
    "kernel-lssvr": Task(_OF + "kernel_lssvm", "KernelLSSVR", "number", has_sets=False),
}


# Estimators in closed form take a kernel as a map of the features; rbf by random Fourier features.
_MAPS: Final = {"poly": "Polynomial", "rbf": "RandomFourier"}
_MAP_PARAMETERS: Final = ("gamma", "degree", "coef0", "n_components", "seed")


def _with_feature_map(parameters: dict[str, Any]) -> dict[str, Any]:
    """Parameters in which a kernel by name has become a feature map."""
    kernel = parameters.pop("kernel", "linear")
    if kernel == "linear":
        return parameters
    if kernel not in _MAPS:
        raise ValueError(f"kernel={kernel!r} has no feature map; use linear, poly or rbf")
    kind = getattr(import_module("adiabat.feature_maps"), _MAPS[kernel])
    known = kind().get_params()
    chosen = {name: parameters.pop(name) for name in _MAP_PARAMETERS if name in parameters}
    for name, value in chosen.items():
        if name not in known or isinstance(value, str):
            raise ValueError(
                f"{name}={value!r} is none of the numbers that kernel={kernel!r} takes here: "
                f"{', '.join(known)}"
            )
    return {**parameters, "feature_map": kind(**chosen)}


def _with_scaling(model: Any, scale: str, transformer: Any) -> Any:
    """A model in closed form whose transformers follow the rows."""
    if scale == "held":
        raise ValueError(
            f"scale={scale!r} is not for {type(model).__name__}, whose scaling follows the rows at "
            "little cost; use scale='exact'"
        )
    if model.feature_map is not None:
        raise ValueError(
            f"a model that keeps no rows cannot apply {type(model.feature_map).__name__} to rows "
            "that are scaled or filled anew; use kernel='linear', or task svc or svr, or scale the "
            "file"
        )
    from adiabat.preprocessing.scaler import StandardScaler

    return model.set_params(feature_map=StandardScaler() if transformer is None else transformer)


@contextmanager
def _of_its_rows() -> Iterator[None]:
    """What cannot be unlearned though it is in the table: the model was not taught the table."""
    try:
        yield
    except NotLearnedError as error:
        raise _of_other_rows(error) from error


def _of_other_rows(error: Exception) -> StoreDamagedError:
    return StoreDamagedError(
        f"the model is not of the rows in the table ({error}); adiabat repair, or Store.repair(), "
        "fits it again from them"
    )


def _weighted(weights: Any) -> dict[str, Any]:
    """Weights as an argument; rows without a weight of their own have weight 1."""
    return {} if weights is None or np.all(weights == 1.0) else {"sample_weight": weights}


def machine(model: Any) -> Any:
    """The estimator itself, without the scaler in front of it."""
    return getattr(model, "estimator_", getattr(model, "estimator", model))


def is_fitted(model: Any) -> bool:
    """Whether the estimator has learned anything."""
    return bool(model.__sklearn_is_fitted__())


def certificate_fields(certificate: Certificate | None) -> dict[str, Any] | None:
    """A certificate as plain JSON."""
    if certificate is None:
        return None
    return {
        "residual": float(certificate.residual),
        "gap": float(certificate.gap),
        "n_samples": int(certificate.n_samples),
        "n_support": int(certificate.n_support),
        "tol": float(certificate.tol),
        "ok": bool(certificate.ok),
        "held_fixed": {str(name): plain(value) for name, value in certificate.held_fixed.items()},
    }


def plain(value: Any) -> Any:
    """A value as plain JSON, keys as text."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        return value.item()
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def set_sizes(model: Any) -> dict[str, int] | None:
    """Rows of all machines in the MARGIN, ERROR and RESERVE sets; None without such sets."""
    held = getattr(machine(model), "_model", None)
    if held is None or not is_fitted(model) or not hasattr(held, "machines"):
        return None
    margin = error = rows = 0
    for _, found in held.machines:
        between = np.zeros(len(found.u), dtype=bool)
        between[found.margin] = True
        margin += int(between.sum())
        error += int(np.sum(~between & (found.u != 0.0)))
        rows += len(found.u)
    return {"margin": margin, "error": error, "reserve": rows - margin - error}


def sets_by_id(model: Any) -> dict[int, str]:
    """The set of each row, by the number that the store has for it; {} without such sets."""
    held = machine(model)
    if not is_fitted(model) or not hasattr(held._model, "machines"):
        return {}
    return dict(zip(held.ids_.tolist(), sample_sets(held._model).tolist(), strict=True))
