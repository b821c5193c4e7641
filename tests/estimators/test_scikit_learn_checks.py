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
EVERY = [
    SVC(),
    SVC(solver="path"),
    LSSVC(),
    LSSVR(),
    KernelLSSVC(),
    KernelLSSVR(rho=0.1),
    Linear(),
    Polynomial(),
    RandomFourier(n_components=7),
    SVR(),
    OneClassSVM(),
    SVDD(),
]
OTHERS = [
    SVC(kernel="linear"),
    SVC(kernel="poly", coef0=1.0),
    SVC(kernel="laplacian"),
    SVC(class_weight="balanced"),
    SVC(solver="exchange", gamma="auto"),
    SVC(C=100.0),
    SVC(C=1e-3),
    LSSVC(rho=0.1, fit_intercept=False),
    LSSVC(feature_map=Polynomial(degree=2)),
    LSSVR(rho=10.0, fit_intercept=False),
    LSSVR(rho=0.1, feature_map=RandomFourier(n_components=200, gamma=0.05)),
    KernelLSSVC(rho=0.1, kernel="linear", fit_intercept=False),
    KernelLSSVR(kernel="poly", coef0=1.0, fit_intercept=False),
    SVR(kernel="linear", epsilon=0.0),
    SVR(solver="path", C=10.0),
    OneClassSVM(kernel="linear", nu=0.1),
    OneClassSVM(solver="path", nu=1.0),
    SVDD(kernel="linear"),
    SVDD(solver="path", kernel="poly", coef0=1.0),
]


# Some checks warn on purpose, of things that are scikit-learn's own.
@pytest.mark.filterwarnings("default")
@parametrize_with_checks(EVERY)
def test_scikit_learn_check(estimator: Any, check: Any) -> None:
    check(estimator)


# Most checks are of what all configurations of an estimator share.
@pytest.mark.rotates(8)
@pytest.mark.filterwarnings("default")
@parametrize_with_checks(OTHERS)
def test_scikit_learn_check_of_other_parameters(estimator: Any, check: Any) -> None:
    check(estimator)
