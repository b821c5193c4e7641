# SPDX-License-Identifier: BSD-3-Clause
"""Export to plain scikit-learn: the one place that sets another library's fitted attributes."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.metrics.pairwise import chi2_kernel, laplacian_kernel
from sklearn.svm import SVC as PlainSVC

FloatArray = npt.NDArray[np.float64]

_FUNCTIONS = {"laplacian": laplacian_kernel, "chi2": chi2_kernel}


def plain_svc(model: Any) -> PlainSVC:
    """A fitted `sklearn.svm.SVC` with the decision function of an adiabat `SVC`."""
    if len(model.classes_) < 2:
        raise ValueError(
            "to_sklearn needs two classes, the model has "
            f"{len(model.classes_)}; scikit-learn's SVC knows no constant predictor"
        )
    held = model._model
    kernel: Any = model.kernel
    if kernel in _FUNCTIONS:
        kernel = partial(_FUNCTIONS[kernel], gamma=model.gamma_)
    plain = PlainSVC(
        C=model.C,
        kernel=kernel,
        degree=model.degree,
        gamma=model.gamma_ if isinstance(kernel, str) and kernel != "linear" else model.gamma,
        coef0=model.coef0,
        class_weight=model.class_weight,
        decision_function_shape=model.decision_function_shape,
        break_ties=len(model.classes_) > 2 and model.decision_function_shape == "ovr",
    )
    n = len(model.ids_)
    codes = held.formulation.codes(held.target)
    plain.classes_ = model.classes_
    plain.class_weight_ = np.array([held.formulation.class_weight.get(code, 1.0) for code in codes])
    plain.n_features_in_ = n if kernel == "precomputed" else model.n_features_in_
    if hasattr(model, "feature_names_in_"):
        plain.feature_names_in_ = model.feature_names_in_
    support = model.support_
    vectors = model.support_vectors_
    plain._sparse = sp.issparse(vectors) and not callable(kernel)
    plain.support_ = support
    plain.support_vectors_ = vectors
    if callable(kernel):
        # scikit-learn evaluates a callable against the rows it was fitted on
        plain._BaseLibSVM__Xfit = held.features(np.arange(n))
        plain.support_vectors_ = np.empty((0, 0))
    elif plain._sparse:
        plain.support_vectors_ = sp.csr_matrix(vectors)
        for part in ("indices", "indptr"):
            setattr(vectors, part, getattr(vectors, part).astype(np.int32))
        plain.support_vectors_ = sp.csr_matrix(vectors)
    plain._n_support = model.n_support_
    dual, intercept = model.dual_coef_, model.intercept_
    plain.dual_coef_ = _explicit_csr(dual) if plain._sparse else dual
    plain.intercept_ = intercept
    sign = -1.0 if len(codes) == 2 else 1.0  # LIBSVM's own sign differs with two classes
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
    return plain


def _explicit_csr(values: FloatArray) -> Any:
    """CSR that stores zeros too: LIBSVM reads the data as if they were a dense array."""
    rows, columns = values.shape
    indices = np.tile(np.arange(columns, dtype=np.int32), rows)
    indptr = np.arange(0, rows * columns + 1, max(1, columns), dtype=np.int32)
    return sp.csr_matrix((values.ravel(), indices, indptr), shape=values.shape)
