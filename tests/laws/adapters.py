# SPDX-License-Identifier: BSD-3-Clause
"""All nine estimators under the verbs by which the laws speak: samples go by id.

Most have these verbs themselves. Those that keep no rows are told the rows again, by an adapter
that remembers which row an id stands for.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from sklearn.base import clone

from adiabat import (
    LSSVC,
    LSSVR,
    SVC,
    SVDD,
    SVR,
    IncrementalPipeline,
    KernelLSSVC,
    KernelLSSVR,
    OneClassSVM,
)
from adiabat.feature_maps import Nystroem, Polynomial
from adiabat.preprocessing.scaler import StandardScaler

from laws.streams import Correct, Step, write_down
from oracles.operations import Add, Remove, Roster, Update
from oracles.problems import Problem

MACHINES: dict[str, tuple[Any, str]] = {
    "SVC": (SVC, "svc"),
    "SVR": (SVR, "svr"),
    "OneClassSVM": (OneClassSVM, "one_class"),
    "SVDD": (SVDD, "svdd"),
}
LEAST_SQUARES: dict[str, tuple[Any, str]] = {
    "LSSVC": (LSSVC, "svc"),
    "LSSVR": (LSSVR, "svr"),
    "KernelLSSVC": (KernelLSSVC, "svc"),
    "KernelLSSVR": (KernelLSSVR, "svr"),
}
NINE = (*MACHINES, *LEAST_SQUARES, "IncrementalPipeline")


def kind_of(name: str, inner: str = "SVC") -> str:
    """The kind of problem that an estimator solves; `inner` is the machine of a pipeline."""
    return {**MACHINES, **LEAST_SQUARES}[inner if name == "IncrementalPipeline" else name][1]


def adapted(name: str, params: dict[str, Any], width: int, inner: str = "SVC") -> Any:
    """One of the nine, unfitted, with the parameters of a machine of its kind.

    `width` is the number of features; for least squares 1 / C is rho.
    """
    if name in MACHINES:
        return MACHINES[name][0](**params)
    if name == "IncrementalPipeline":
        # a kernel of chi2 takes no negative features
        scaler = StandardScaler(with_mean=params["kernel"] != "chi2")
        return IncrementalPipeline(MACHINES[inner][0](**params), scaler)
    estimator, rho = LEAST_SQUARES[name][0], 1.0 / params["C"]
    kernel = {key: params[key] for key in ("kernel", "gamma", "degree", "coef0") if key in params}
    if name.startswith("Kernel"):
        return estimator(rho=rho, **kernel)
    return ByRows(estimator(rho=rho, feature_map=feature_map(kernel, width)))


def feature_map(params: dict[str, Any], width: int) -> Any:
    """The map that stands for a kernel where there are no kernels; None is the features."""
    if params["kernel"] == "poly":
        return Polynomial(params["degree"], params["gamma"], params["coef0"])
    if params["kernel"] in ("rbf", "laplacian"):
        landmarks = np.linspace(0.0, 1.0, 5 * width).reshape(width, 5).T
        return Nystroem(landmarks, params["kernel"], params["gamma"])
    return None


def of_problem(problem: Problem, solver: str) -> Any:
    """The estimator that a problem is for, by a solver where there is a choice."""
    name = problem.estimator or next(n for n, (_, kind) in MACHINES.items() if kind == problem.kind)
    inner = next(n for n, (_, kind) in MACHINES.items() if kind == problem.kind)
    params = problem.params if name in LEAST_SQUARES else {**problem.params, "solver": solver}
    return adapted(name, params, problem.X.shape[1], inner)


def machine_of(model: Any) -> Any:
    """What answers for a model: the machine of a pipeline, or the estimator itself."""
    if isinstance(model, ByRows):
        return model.model
    return model.estimator_ if hasattr(model, "estimator_") else model


def parameters_of(model: Any) -> dict[str, Any]:
    """The parameters that `retune` takes."""
    owner = model.estimator if isinstance(model, IncrementalPipeline) else model
    params: dict[str, Any] = owner.get_params()
    return params


def unlearned(model: Any) -> Any:
    """The same estimator without what it has learned."""
    return ByRows(clone(model.model)) if isinstance(model, ByRows) else clone(model)


def under_the_verbs(estimator: Any, model: Any) -> Any:
    """An estimator that stands for a model and holds its rows, under the verbs of the laws."""
    if not isinstance(model, ByRows):
        return estimator
    twin = ByRows(estimator)
    twin.held = copy.deepcopy(model.held)
    return twin


class ByRows:
    """An estimator that keeps no rows, under the verbs of those that do."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.held: Roster | None = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "model":
            raise AttributeError(name)
        return getattr(self.model, name)

    @property
    def ids_(self) -> Any:
        if self.held is None:
            raise AttributeError("ids_")
        return self.held.ids

    def fit(self, X: Any, y: Any, sample_weight: Any = None, ids: Any = None) -> ByRows:
        self.model.fit(X, y, sample_weight=sample_weight)
        self.held = _copied(X, y, sample_weight, ids)
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None, ids: Any = None) -> ByRows:
        self.model.partial_fit(X, y, sample_weight=sample_weight)
        coming = _copied(X, y, sample_weight, ids)
        if self.held is None:
            self.held = coming
        else:
            self._write(Add(coming.X, coming.y, coming.ids, coming.sample_weight))
        return self

    def forget(self, ids: Any) -> ByRows:
        X, y, weight = self._rows(ids)
        self.model.forget(X, y, sample_weight=weight)
        self._write(Remove(np.atleast_1d(ids)))
        return self

    def revise(self, ids: Any, X: Any = None, y: Any = None, sample_weight: Any = None) -> ByRows:
        old = self._rows(ids)
        new = [one if given is None else given
               for given, one in zip((X, y, sample_weight), old, strict=True)]  # fmt: skip
        self.model.revise(*old[:2], *new[:2], sample_weight_old=old[2], sample_weight_new=new[2])
        self._write(Correct(np.asarray(ids), X, y, sample_weight))
        return self

    def update(
        self, X: Any, y: Any, *, ids: Any = None, sample_weight: Any = None, remove: Any = ()
    ) -> Any:
        old_X, old_y, old_weight = self._rows(remove)
        report = self.model.update(
            X, y, sample_weight=sample_weight,
            remove_X=old_X, remove_y=old_y, remove_sample_weight=old_weight,
        )  # fmt: skip
        coming = _copied(X, y, sample_weight, ids)
        self._write(
            Update(coming.X, coming.y, coming.ids, coming.sample_weight, np.asarray(remove))
        )
        return report

    def _rows(self, ids: Any) -> tuple[Any, Any, Any]:
        assert self.held is not None
        place = {int(i): row for row, i in enumerate(self.held.ids)}
        rows = [place[int(i)] for i in np.atleast_1d(ids)]
        return self.held.X[rows], self.held.y[rows], self.held.sample_weight[rows]

    def _write(self, step: Step) -> None:
        assert self.held is not None
        write_down(self.held, step)


def _copied(X: Any, y: Any, weight: Any, ids: Any) -> Roster:
    X, y = np.array(X), np.array(y)
    weight = np.ones(len(y)) if weight is None else np.array(weight)
    return Roster(X, y, weight, np.arange(len(y)) if ids is None else np.array(ids))
