# SPDX-License-Identifier: BSD-3-Clause
"""All nine estimators behind the same verbs, each with its truth.

A subject is a model and the rows that it should hold. Samples go by id, also those of estimators
that keep no rows; decision values are one column, in the units of f; `truth` is the optimum on the
rows that it should hold, to hundreds of digits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
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
from adiabat.estimators.kernel.evidence import judged_afresh
from adiabat.feature_maps import Nystroem, Polynomial
from adiabat.kernels import make_kernel
from adiabat.preprocessing.scaler import StandardScaler

from laws.streams import Correct, write_down
from oracles.exact_models import Truth, least_squares_truth, machine_truth
from oracles.exact_numbers import exact, gram, product
from oracles.operations import Add, Remove, Roster, Update
from oracles.problems import Problem, gram_of

Vector = npt.NDArray[np.float64]


class Subject:
    """A model and the rows that it should hold."""

    def __init__(self, model: Any, kind: str) -> None:
        self.model, self.kind = model, kind
        self.roster: Roster | None = None

    # -- verbs -----------------------------------------------------------------------------------

    def fit(self, rows: Roster) -> Subject:
        self.model.fit(*self._given(rows), sample_weight=rows.sample_weight, ids=rows.ids)
        self.roster = _copied(rows)
        return self

    def learn(self, rows: Roster) -> Subject:
        """`partial_fit`."""
        self.model.partial_fit(*self._given(rows), sample_weight=rows.sample_weight, ids=rows.ids)
        if self.roster is None:
            self.roster = _copied(rows)
        else:
            write_down(self.roster, Add(rows.X, rows.y, rows.ids, rows.sample_weight))
        return self

    def forget(self, ids: Any) -> Subject:
        self.model.forget(ids)
        write_down(self.held_rows, Remove(np.asarray(ids)))
        return self

    def revise(self, ids: Any, y: Any) -> Subject:
        """Other targets; those of a kind without targets are let be."""
        if self.supervised:
            self.model.revise(ids, y=y)
            write_down(self.held_rows, Correct(np.asarray(ids), y=y))
        return self

    def update(self, rows: Roster, remove: Any) -> Subject:
        X, *y = self._given(rows)
        self.model.update(
            X, *y, ids=rows.ids, sample_weight=rows.sample_weight, remove=np.asarray(remove)
        )
        write_down(
            self.held_rows, Update(rows.X, rows.y, rows.ids, rows.sample_weight, np.asarray(remove))
        )
        return self

    # -- what it says ----------------------------------------------------------------------------

    @property
    def supervised(self) -> bool:
        return self.kind not in ("one_class", "svdd")

    @property
    def reported(self) -> Any:
        """The certificate of the last update."""
        return self.model.last_update_.certificate

    def certificate(self) -> Any:
        """The certificate, made afresh."""
        return self.model.certificate()

    def f_errors(self, certificate: Any) -> Vector:
        """How far f may be off, row by row: no more than the certificate's `f_error`."""
        machine = getattr(self.model, "estimator_", self.model)
        errors: Vector = judged_afresh(machine._model)[1].max(axis=1)
        assert np.max(errors, initial=0.0) == certificate.f_error
        return errors

    def decide(self, X: Any) -> Vector:
        """f, or f - k(x, x) / 2 of a sphere."""
        decide = "predict" if self.kind == "svr" else "decision_function"
        values: Vector = np.asarray(getattr(self.model, decide)(X), dtype=np.float64)
        return 0.5 * values if self.kind == "svdd" else values

    def state(self) -> tuple[Any, ...]:
        """What a user can see of it, to the last bit."""
        X = self.held_rows.X
        return self.decide(X).tolist(), self.model.predict(X).tolist(), str(self.model.last_update_)

    def roundings(self, X: Any) -> Vector:
        """What the rounding of f at rows is relative to: sum_j |k(x, x_j) u_j| + |b|."""
        machine = getattr(self.model, "estimator_", self.model)
        params = self.parameters()
        held, points = self.features(self.held_rows.X), self.features(X)
        K = np.abs(gram_of(params, points, held[machine.support_]))
        size: Vector = K @ np.abs(machine.dual_coef_[0]) + np.abs(machine.intercept_[0])
        if self.kind == "svdd":
            size = size + np.array([gram_of(params, x[None], x[None])[0, 0] for x in points])
        return size

    # -- the truth -------------------------------------------------------------------------------

    def truths(self) -> list[Truth]:
        """The optima that a model may be: for the kernel, and for its rounded values."""
        rows = self.held_rows
        params, X = self.parameters(), self.features(rows.X)
        given = params, X, rows.y, rows.sample_weight
        found = [machine_truth(self.kind, *given)]
        kernel = make_kernel(
            params["kernel"], gamma=params.get("gamma", 1.0), degree=params.get("degree", 3),
            coef0=params.get("coef0", 0.0), X=X, shift_free=self.kind in ("svc", "svr"),
        )  # fmt: skip
        K = kernel.block(X, X)
        try:
            found.append(machine_truth(self.kind, *given, K))
        except ArithmeticError:
            # rounded values that are not semidefinite have no optimum: f is known to 128 roundings
            found.append(replace(found[0], size=32.0 * found[0].size))
        return found

    def parameters(self) -> dict[str, Any]:
        machine = getattr(self.model, "estimator_", self.model)
        names = {"svc": ("C",), "svr": ("C", "epsilon"), "one_class": ("nu",), "svdd": ("C",)}
        values = {name: getattr(machine, name) for name in (*names[self.kind], "kernel")}
        if machine.kernel == "poly":
            values |= {"degree": machine.degree, "coef0": machine.coef0}
        return values if machine.kernel == "linear" else {**values, "gamma": machine.gamma_}

    def features(self, X: Any) -> Any:
        """What the machine itself sees of rows."""
        return self.model.scaler_.transform(X) if hasattr(self.model, "scaler_") else X

    def _given(self, rows: Roster) -> tuple[Any, ...]:
        return (rows.X, rows.y) if self.supervised else (rows.X,)

    @property
    def held_rows(self) -> Roster:
        assert self.roster is not None
        return self.roster


class KernelLeastSquares(Subject):
    """Of the machines whose dual is a linear system."""

    def f_errors(self, certificate: Any) -> Vector:
        return np.full(len(self.held_rows.ids), certificate.f_error)

    def parameters(self) -> dict[str, Any]:
        model = self.model
        if model.kernel == "linear":
            return {"kernel": model.kernel}
        own = {name: getattr(model, name) for name in ("kernel", "degree", "coef0")}
        return {**own, "gamma": model.gamma_}

    def roundings(self, X: Any) -> Vector:
        K = np.abs(gram_of(self.parameters(), X, self.held_rows.X))
        size: Vector = K @ np.abs(self.model.dual_coef_[0]) + np.abs(self.model.intercept_[0])
        return size

    def truths(self) -> list[Truth]:
        rows, model = self.held_rows, self.model
        params = self.parameters()
        targets = _columns(self.kind, rows.y)
        return [
            least_squares_truth(
                lambda: gram(params, rows.X, rows.X), targets, rows.sample_weight, model.rho
            )
        ]


class LeastSquares(Subject):
    """Of the machines that keep no rows: they are told the rows themselves."""

    def fit(self, rows: Roster) -> Subject:
        self.model.fit(rows.X, rows.y, sample_weight=rows.sample_weight)
        self.roster = _copied(rows)
        return self

    def learn(self, rows: Roster) -> Subject:
        self.model.partial_fit(rows.X, rows.y, sample_weight=rows.sample_weight)
        if self.roster is None:
            self.roster = _copied(rows)
        else:
            write_down(self.roster, Add(rows.X, rows.y, rows.ids, rows.sample_weight))
        return self

    def forget(self, ids: Any) -> Subject:
        X, y, weight = self._rows(ids)
        self.model.forget(X, y, sample_weight=weight)
        write_down(self.held_rows, Remove(np.asarray(ids)))
        return self

    def revise(self, ids: Any, y: Any) -> Subject:
        X, old, weight = self._rows(ids)
        self.model.revise(X, old, X, y, sample_weight_old=weight, sample_weight_new=weight)
        write_down(self.held_rows, Correct(np.asarray(ids), y=y))
        return self

    def update(self, rows: Roster, remove: Any) -> Subject:
        X, y, weight = self._rows(remove)
        self.model.update(
            rows.X, rows.y, sample_weight=rows.sample_weight,
            remove_X=X, remove_y=y, remove_sample_weight=weight,
        )  # fmt: skip
        write_down(
            self.held_rows, Update(rows.X, rows.y, rows.ids, rows.sample_weight, np.asarray(remove))
        )
        return self

    def f_errors(self, certificate: Any) -> Vector:
        return np.full(len(self.held_rows.ids), certificate.f_error)

    def features(self, X: Any) -> Any:
        mapping = self.model.feature_map
        return X if mapping is None else clone(mapping).fit(X).transform(X)

    def roundings(self, X: Any) -> Vector:
        w, b = np.ravel(self.model.coef_), np.ravel(self.model.intercept_)
        size: Vector = np.abs(self.features(X)) @ np.abs(w) + np.abs(b[0])
        return size

    def truths(self) -> list[Truth]:
        rows, model = self.held_rows, self.model
        features = self.features(rows.X)

        def values() -> Any:
            phi = exact(features)
            return product(phi, phi.T.copy())

        targets = _columns(self.kind, rows.y)
        return [least_squares_truth(values, targets, rows.sample_weight, model.rho)]

    def _rows(self, ids: Any) -> tuple[Any, Any, Any]:
        held = self.held_rows
        place = {int(i): row for row, i in enumerate(held.ids)}
        rows = [place[int(i)] for i in ids]
        return held.X[rows], held.y[rows], held.sample_weight[rows]


def _columns(kind: str, y: Any) -> Vector:
    if kind == "svr":
        return np.asarray(y, dtype=np.float64)
    return np.where(np.asarray(y) == np.unique(y)[-1], 1.0, -1.0)


def _copied(rows: Roster) -> Roster:
    return Roster(rows.X.copy(), rows.y.copy(), rows.sample_weight.copy(), rows.ids.copy())


# ---------------------------------------------------------------------------------------------
# The nine


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


def subject(name: str, params: dict[str, Any], width: int, inner: str = "SVC") -> Subject:
    """An unfitted subject: one of the nine, with the parameters of a machine of its kind.

    `width` is the number of features; for least squares 1 / C is rho.
    """
    kind = kind_of(name, inner)
    if name in MACHINES:
        return Subject(MACHINES[name][0](**params), kind)
    if name == "IncrementalPipeline":
        # a kernel of chi2 takes no negative features
        scaler = StandardScaler(with_mean=params["kernel"] != "chi2")
        return Subject(IncrementalPipeline(MACHINES[inner][0](**params), scaler), kind)
    estimator, rho = LEAST_SQUARES[name][0], 1.0 / params["C"]
    kernel = {key: params[key] for key in ("kernel", "gamma", "degree", "coef0") if key in params}
    if name.startswith("Kernel"):
        return KernelLeastSquares(estimator(rho=rho, **kernel), kind)
    return LeastSquares(estimator(rho=rho, feature_map=feature_map(kernel, width)), kind)


def feature_map(params: dict[str, Any], width: int) -> Any:
    """The map that stands for a kernel where there are no kernels; None is the features."""
    if params["kernel"] == "poly":
        return Polynomial(params["degree"], params["gamma"], params["coef0"])
    if params["kernel"] in ("rbf", "laplacian"):
        landmarks = np.linspace(0.0, 1.0, 5 * width).reshape(width, 5).T
        return Nystroem(landmarks, params["kernel"], params["gamma"])
    return None


def subject_of(name: str, problem: Problem, inner: str = "SVC") -> Subject:
    """An unfitted subject for a problem of its kind."""
    assert problem.kind == kind_of(name, inner)
    return subject(name, problem.params, problem.X.shape[1], inner)


# ---------------------------------------------------------------------------------------------
# The verdict


@dataclass(frozen=True)
class Verdict:
    """What is wrong with a model, if anything; `off` and `allowed` are those of the worst row."""

    fault: str
    off: float
    allowed: float
    f_error: float | None = None
    detail: str = ""

    @property
    def ok(self) -> bool:
        return not self.fault


def judge(model: Subject) -> Verdict:
    """Certificates of a model that was handed out, and its f against the truth."""
    reported, afresh = model.reported, model.certificate()
    off, allowed = distance(model, afresh)
    detail = f"update: {reported}; certificate(): {afresh}"
    f_error = getattr(afresh, "f_error", None)
    figures = off, allowed, f_error
    if bool(reported.ok) != bool(afresh.ok):
        return Verdict("the update and certificate() disagree", *figures, detail)
    if not afresh.ok:
        return Verdict("certificate() is not ok", *figures, detail)
    if off > allowed:
        return Verdict("f is off by more than f_error", *figures, detail)
    return Verdict("", *figures)


def distance(model: Subject, certificate: Any) -> tuple[float, float]:
    """At the worst row: how far f is from the nearer truth, and how far it may be.

    Each row is held to its own bound, of which `f_error` is the largest.
    """
    values = model.decide(model.held_rows.X)
    own = model.f_errors(certificate)
    pairs = []
    for truth in model.truths():
        off = truth.off(values)
        # predictions are rounded after the certificate was made
        allowed = own + truth.rounding(4.0)
        if not model.supervised:  # what may be 0 is given as 0 (`zero_but_for_rounding`)
            allowed = np.where(values == 0.0, own + truth.rounding(256.0), allowed)
        worst = int(np.argmax(off / allowed))
        pairs.append((float(off[worst]), float(allowed[worst])))
    return min(pairs, key=lambda pair: pair[0] / pair[1])
