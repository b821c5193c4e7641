# SPDX-License-Identifier: BSD-3-Clause
"""Where scikit-learn's tests of its SVMs and ours differ on purpose, by patterns of test names."""

from __future__ import annotations

from typing import Final

#: Tests of machines that are not here.
OF_OTHERS: Final = "(?i)linearsv|liblinear|crammer|NuSV|linear_svm|lsvc|lsvr"

#: Pattern to reason. A test that matches must fail.
DIFFERENCES: Final = {
    "sigmoid": "sigmoid is not positive semidefinite, and is refused",
    "^test_probability|^test_unsorted_indices|^test_hasattr_predict_proba":
        "probabilities are asked for by calibration=",
    "^test_timeout|^test_libsvm_convergence|^test_consistent_decision_function":
        "every fit ends at the optimum: max_iter is -1",
    "^test_negative_(?!.*partial-mask-label-2-SVC)":
        "sample weights are at least 0; the error says so in other words",
    "^test_sparse_realdata|^test_sparse_fit_support_vectors_empty|^test_svc_iris":
        "dual_coef_ is dense for sparse rows, too",
    r"^test_custom_kernel_not_array_input\[SVC": "its kernel can fill square blocks only",
    "^test_bad_input": "a model of dense rows decides on sparse ones, too",
    "^test_tweak_params|^test_svc_raises_error_internal_representation|^test_gamma_scale":
        "private attributes of LIBSVM's wrapper are not there",
    "^test_svr_errors|^test_sparse_svc_clone": "a kernel must return a value for each pair of rows",
    "^test_svc_ovr_tie_breaking": "ties are always broken by decision values",
    "^test_svc_nonfinite_params|^test_sparse_precomputed": "refused, in other words",
}  # fmt: skip
