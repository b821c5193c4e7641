# SPDX-License-Identifier: BSD-3-Clause
"""The tasks a store can hold: one line each in `TASKS`.

Two kinds of estimator stand behind the same verbs. One keeps its rows and unlearns by id; the ids
it sees are the store's record numbers, so that no name of a customer is ever part of a model. The
other keeps no rows and unlearns from the rows themselves, which the store has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from adiabat.certificate import Certificate
from adiabat.estimators.svc import SVC

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Task:
    """How a store drives one estimator.

    Attributes
    ----------
    estimator : type
    target : {"class", "number"} or None
        What its labels are.
    keeps_rows : bool
        Whether the estimator holds its training rows.
    """

    estimator: Any
    target: str | None
    keeps_rows: bool = True

    def create(self, parameters: Mapping[str, Any]) -> Any:
        """A new estimator; ValueError if a parameter is unknown or out of range."""
        known = set(self.estimator().get_params())
        for name in parameters:
            if name not in known:
                raise ValueError(
                    f"{name}={parameters[name]!r} is no parameter of "
                    f"{self.estimator.__name__}; it has {', '.join(sorted(known))}"
                )
        model = self.estimator(**parameters)
        kernel = parameters.get("kernel", "rbf")
        if callable(kernel) or kernel == "precomputed":
            raise ValueError(f"kernel={kernel!r} has no features to store; use a named kernel")
        model._validate_params()
        return model

    def learn(self, model: Any, numbers: IntArray, X: Any, labels: Any, weights: Any) -> None:
        """Learn rows."""
        given = {} if weights is None else {"sample_weight": weights}
        if self.keeps_rows:
            given["ids"] = numbers
        if self.target is None:
            model.partial_fit(X, **given)
        else:
            model.partial_fit(X, labels, **given)

    def forget(self, model: Any, numbers: IntArray, X: Any, labels: Any, weights: Any) -> None:
        """Unlearn rows."""
        if self.keeps_rows:
            model.forget(numbers)
        elif self.target is None:
            model.forget(X)
        else:
            model.forget(X, labels)

    def held(self, model: Any) -> dict[str, Any]:
        """Parameters that the data settled once, for a refit to hold fixed too."""
        held = dict(model.certificate().held_fixed)
        known = model.get_params()
        return {name: value for name, value in held.items() if name in known}

    def revise(self, model: Any, numbers: IntArray, old: Rows, new: Rows) -> None:
        """Correct rows."""
        if self.keeps_rows:
            changed: dict[str, Any] = {}
            if new.X is not old.X:
                changed["X"] = new.X
            if self.target is not None:
                changed["y"] = new.labels
            model.revise(numbers, sample_weight=new.weights, **changed)
            return
        self.learn(model, numbers, new.X, new.labels, None)
        self.forget(model, numbers, old.X, old.labels, None)


@dataclass(frozen=True)
class Rows:
    """Training rows: features, labels, weights."""

    X: Any
    labels: Any
    weights: Any


#: What `adiabat init --task` accepts.
TASKS: Final[dict[str, Task]] = {
    "svc": Task(SVC, "class"),
}


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
    held = getattr(model, "_model", None)
    if held is None or not is_fitted(model) or not hasattr(held, "machines"):
        return None
    margin = error = rows = 0
    for _, machine in held.machines:
        between = np.zeros(len(machine.u), dtype=bool)
        between[machine.margin] = True
        margin += int(between.sum())
        error += int(np.sum(~between & (machine.u != 0.0)))
        rows += len(machine.u)
    return {"margin": margin, "error": error, "reserve": rows - margin - error}
