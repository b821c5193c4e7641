# SPDX-License-Identifier: BSD-3-Clause
"""scikit-learn's own checks of an estimator, on several configurations, none excused."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from adiabat import LSSVC, LSSVR, SVC, SVDD, SVR, KernelLSSVC, KernelLSSVR, OneClassSVM
from adiabat.feature_maps import Linear, Polynomial, RandomFourier

# Not here, since they could not pass: decision_function_shape="ovo" (a check takes the columns of
# three pairs for those of three classes; scikit-learn's own SVC fails it, too), "precomputed" and
# "chi2" (checks give them indefinite matrices and negative features).
CONFIGURATIONS = [
    SVC(),
    SVC(kernel="linear"),
    SVC(kernel="poly", coef0=1.0),
    SVC(kernel="laplacian"),
    SVC(class_weight="balanced"),
    SVC(solver="path"),
    SVC(solver="exchange", gamma="auto"),
    SVC(C=100.0),
    SVC(C=1e-3),
    LSSVC(),
    LSSVC(rho=0.1, fit_intercept=False),
    LSSVC(feature_map=Polynomial(degree=2)),
    LSSVR(),
    LSSVR(rho=10.0, fit_intercept=False),
    LSSVR(rho=0.1, feature_map=RandomFourier(n_components=200, gamma=0.05)),
    KernelLSSVC(),
    KernelLSSVC(rho=0.1, kernel="linear", fit_intercept=False),
    KernelLSSVR(rho=0.1),
    KernelLSSVR(kernel="poly", coef0=1.0, fit_intercept=False),
    Linear(),
    Polynomial(),
    RandomFourier(n_components=7),
    SVR(),
    SVR(kernel="linear", epsilon=0.0),
    SVR(solver="path", C=10.0),
    OneClassSVM(),
    OneClassSVM(kernel="linear", nu=0.1),
    OneClassSVM(solver="path", nu=1.0),
    SVDD(),
    SVDD(kernel="linear"),
    SVDD(solver="path", kernel="poly", coef0=1.0),
]


# Some checks warn on purpose, of things that are scikit-learn's own.
@pytest.mark.filterwarnings("default")
@parametrize_with_checks(CONFIGURATIONS)
def test_scikit_learn_check(estimator: Any, check: Any) -> None:
    check(estimator)
