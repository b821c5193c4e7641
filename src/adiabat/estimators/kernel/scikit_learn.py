# SPDX-License-Identifier: BSD-3-Clause
"""Export to plain scikit-learn: the one place that sets another library's fitted attributes."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import chi2_kernel, laplacian_kernel
from sklearn.svm import SVC as PlainSVC
from sklearn.svm import SVR as PlainSVR
from sklearn.svm import OneClassSVM as PlainOneClassSVM

from adiabat.estimators.what_if.copies import nameless
from adiabat.typing import FloatArray

# Doublings of one rounding, after which rows that differ are not on the boundary.
_STEPS = 16
_FUNCTIONS = {"laplacian": laplacian_kernel, "chi2": chi2_kernel}


def plain_svc(model: Any) -> PlainSVC:
    """A fitted `sklearn.svm.SVC` with the decision function of an adiabat `SVC`."""
    if len(model.classes_) < 2:
        raise ValueError(
            "to_sklearn needs two classes, the model has "
            f"{len(model.classes_)}; scikit-learn's SVC knows no constant predictor"
        )
    plain = PlainSVC(
        C=model.C,
        **_kernel_parameters(model),
        class_weight=model.class_weight,
        decision_function_shape=model.decision_function_shape,
        break_ties=len(model.classes_) > 2 and model.decision_function_shape == "ovr",
    )
    held = model._model
    codes = held.formulation.codes(held.target)
    plain.classes_ = model.classes_.copy()
    plain.class_weight_ = np.array([held.formulation.class_weight.get(code, 1.0) for code in codes])
    # LIBSVM's own sign differs with two classes
    sign = -1.0 if len(codes) == 2 else 1.0
    _fill(plain, model, model.dual_coef_, model.intercept_, sign)
    plain._n_support = np.array(model.n_support_)
    return plain


def plain_svr(model: Any) -> PlainSVR:
    """A fitted `sklearn.svm.SVR` with the predictions of an adiabat `SVR`."""
    plain = PlainSVR(C=model.C, epsilon=model.epsilon, **_kernel_parameters(model))
    _fill(plain, model, model.dual_coef_, model.intercept_)
    return plain


def plain_one_class(model: Any) -> PlainOneClassSVM:
    """A fitted `sklearn.svm.OneClassSVM` with the decision function of an adiabat one."""
    plain = PlainOneClassSVM(nu=model.nu, **_kernel_parameters(model))
    _fill(plain, model, model.dual_coef_, model.intercept_)
    _take_boundary_in(plain, model)
    return plain


def plain_sphere(model: Any) -> PlainOneClassSVM:
    """A fitted `sklearn.svm.OneClassSVM` with the decision function of an adiabat `SVDD`.

    R^2 - |phi(x) - a|^2 = 2 (Ku)(x) + 2 b - k(x, x), which is of that form for constant k(x, x).
    """
    own = model._model.solver.samples.diagonal
    constant = model.kernel in ("rbf", "laplacian", "chi2") or (
        model.kernel == "precomputed" and np.ptp(own) <= 1e-12 * np.max(np.abs(own))
    )
    if not constant:
        raise ValueError(
            f"to_sklearn: with kernel={model.kernel!r} k(x, x) differs from row to row, and "
            "scikit-learn has no such machine; use kernel='rbf', or keep the SVDD"
        )
    nu = min(1.0, 1.0 / (model.C * len(model.ids_)))
    plain = PlainOneClassSVM(nu=nu, **_kernel_parameters(model))
    _fill(plain, model, 2.0 * model.dual_coef_, 2.0 * model.intercept_ - own.mean())
    _take_boundary_in(plain, model)
    return plain


def _take_boundary_in(plain: Any, model: Any) -> None:
    """Raise the intercept of a one-class machine by rounding, so that verdicts agree.

    Samples on the boundary count as inside here. LIBSVM goes by the sign of the last bit. The
    least decision value of a sample inside becomes the least number above 0 that LIBSVM sees.
    """
    rows = model._held_points()
    inside = nameless(model).predict(rows) > 0
    names = plain.__dict__.pop("feature_names_in_", None)
    before = plain._intercept_
    step = np.spacing(max(1.0, float(np.abs(plain._dual_coef_).sum())))
    for tried in range(_STEPS):
        plain._intercept_ = before + (step * 2.0**tried if tried else 0.0)
        if ((plain.predict(rows) > 0) == inside).all():
            break
    else:
        plain._intercept_ = before
    plain.intercept_ = plain._intercept_.copy()
    plain.offset_ = -plain._intercept_
    if names is not None:
        plain.feature_names_in_ = names


def _kernel_parameters(model: Any) -> dict[str, Any]:
    kernel: Any = model.kernel
    if kernel in _FUNCTIONS:
        kernel = partial(_FUNCTIONS[kernel], gamma=model.gamma_)
    resolved = isinstance(kernel, str) and kernel != "linear"
    return {
        "kernel": kernel,
        "degree": model.degree,
        "gamma": model.gamma_ if resolved else model.gamma,
        "coef0": model.coef0,
    }


def _fill(
    plain: Any, model: Any, dual: FloatArray, intercept: FloatArray, sign: float = 1.0
) -> None:
    """Set what LIBSVM's wrapper would have learned; `sign` is that of LIBSVM's own copy."""
    n = len(model.ids_)
    kernel = plain.kernel
    plain.n_features_in_ = n if kernel == "precomputed" else model.n_features_in_
    if hasattr(model, "feature_names_in_"):
        plain.feature_names_in_ = model.feature_names_in_
    vectors = model.support_vectors_.copy()
    plain._sparse = sp.issparse(vectors) and not callable(kernel)
    plain.support_ = np.array(model.support_)
    dual, intercept = np.array(dual), np.array(intercept)
    plain.support_vectors_ = vectors
    if callable(kernel):
        # scikit-learn evaluates a callable against the rows it was fitted on
        plain._BaseLibSVM__Xfit = model._model.features(np.arange(n))
        plain.support_vectors_ = np.empty((0, 0))
    elif plain._sparse:
        for part in ("indices", "indptr"):
            setattr(vectors, part, getattr(vectors, part).astype(np.int32))
        plain.support_vectors_ = sp.csr_matrix(vectors)
    plain._n_support = np.repeat(model.n_support_, 2)  # LIBSVM's count of two classes
    plain.dual_coef_ = _explicit_csr(dual) if plain._sparse else dual
    plain.intercept_ = intercept
    plain._dual_coef_ = _explicit_csr(sign * dual) if plain._sparse else sign * dual
    plain._intercept_ = sign * intercept
    plain._probA = np.empty(0)
    plain._probB = np.empty(0)
    plain._gamma = float(model.gamma_)
    plain._effective_probability = False
    plain.fit_status_ = 0
    plain._num_iter = np.zeros(len(intercept), dtype=np.int32)
    plain.n_iter_ = plain._num_iter
    plain.shape_fit_ = (n, plain.n_features_in_)


def _explicit_csr(values: FloatArray) -> Any:
    """CSR that stores zeros too: LIBSVM reads the data as if they were a dense array."""
    rows, columns = values.shape
    indices = np.tile(np.arange(columns, dtype=np.int32), rows)
    indptr = np.arange(0, rows * columns + 1, max(1, columns), dtype=np.int32)
    return sp.csr_matrix((values.ravel(), indices, indptr), shape=values.shape)
