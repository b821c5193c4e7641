# SPDX-License-Identifier: BSD-3-Clause
"""scikit-learn's own checks of estimators that do not keep everything, none excused."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from adiabat import SVC, SVDD, SVR, OneClassSVM
from adiabat.retention import Budget, Reserve, Support, Window

CONFIGURATIONS = [
    SVC(retain=Support()),
    SVR(retain=Reserve(0.05)),
    OneClassSVM(retain=Window(1000)),
    SVDD(retain=Budget(1000)),
]


# Some checks warn on purpose, of things that are scikit-learn's own.
@pytest.mark.rotates(6)
@pytest.mark.filterwarnings("default")
@parametrize_with_checks(CONFIGURATIONS)
def test_scikit_learn_check(estimator: Any, check: Any) -> None:
    check(estimator)
