# SPDX-License-Identifier: BSD-3-Clause
"""Copies of an estimator to try something out on; the estimator is not changed.

A shared copy uses the kernel columns of the original. It can forget, predict, score, certify and be
retuned, but takes no samples in. An own copy shares nothing and can do all that the original can.
"""

from __future__ import annotations

import time
from copy import deepcopy
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import is_classifier

from adiabat.estimators.arguments.validation import as_csr
from adiabat.estimators.kernel.change import SampleChange
from adiabat.estimators.kernel.model import Model
from adiabat.estimators.kernel.transaction import Transaction
from adiabat.formulations.labels import label_array
from adiabat.typing import IntArray


def copy_removing(estimator: Any, places: IntArray) -> Any:
    """A shared copy with the samples at some places of `ids_` removed, in one step (KT09)."""
    started = time.perf_counter()
    view = shared_copy(estimator)
    change = SampleChange(removed=places)
    with Transaction(view) as step:
        view._apply(step, view._model, change, started, n_removed=len(places))
    return view


def shared_copy(estimator: Any) -> Any:
    """A copy that shares kernel columns. Updating it does not affect the original."""
    view = nameless(estimator)
    view._model = _forked(estimator._model)
    return view


def nameless(estimator: Any) -> Any:
    """The same estimator without names of features, for rows that come as arrays."""
    view = object.__new__(type(estimator))
    view.__dict__.update(estimator.__dict__)
    view.__dict__.pop("feature_names_in_", None)
    return view


def own_copy(view: Any, estimator: Any) -> Any:
    """A copy of a view that shares nothing, with the names of features of the original."""
    twin = deepcopy(view)
    if hasattr(estimator, "feature_names_in_"):
        twin.feature_names_in_ = estimator.feature_names_in_.copy()
    return twin


def _forked(model: Model) -> Model:
    fork = Model(model.kernel, model.solver.tol, model.formulation, model.ledger.copy())
    fork.solver = model.solver.fork()
    fork.position, fork.target = model.position.copy(), model.target.copy()
    fork.weight, fork.version = model.weight.copy(), model.version
    return fork


def own_rows(estimator: Any) -> Any:
    """What the model was taught, in the order of `ids_`: features, or the kernel matrix."""
    model: Model = estimator._model
    if model.kernel.name == "precomputed":
        return model.given_kernel()
    return as_csr(model.features(np.arange(len(model))))


def own_targets(estimator: Any) -> npt.NDArray[Any] | None:
    """Labels or numbers, in the order of `ids_`; None where there are none."""
    model: Model = estimator._model
    if not estimator._supervised:
        return None
    if is_classifier(estimator):
        formulation: Any = model.formulation
        codes = formulation.codes(model.target)
        labels = label_array([formulation.label[code] for code in codes])
        order = np.argsort(codes)
        return np.asarray(labels[order[np.searchsorted(np.asarray(codes)[order], model.target)]])
    return model.target.copy()


def rows_for(view: Any, estimator: Any, places: IntArray) -> Any:
    """Samples of the estimator as the view wants to be asked about them."""
    model: Model = estimator._model
    if model.kernel.name != "precomputed":
        return as_csr(model.features(places))
    data = model.solver.samples.data
    return data[np.ix_(model.position[places], view._model.position)]
