# SPDX-License-Identifier: BSD-3-Clause
"""What was learned is computed when asked for: writing to it is an error, not lost in silence."""

import numpy as np
import pytest

from adiabat import LSSVC, SVC, SVDD, SVR, KernelLSSVC, OneClassSVM

X = np.random.default_rng(0).standard_normal((30, 2))
LEARNED = (
    "coef_", "intercept_", "dual_coef_", "support_", "support_vectors_", "n_support_", "ids_"
)  # fmt: skip


@pytest.mark.parametrize(
    "model",
    [
        SVC(kernel="linear"), SVR(kernel="linear"), OneClassSVM(kernel="linear"), SVC(), SVDD(),
        LSSVC(), KernelLSSVC(),
    ],
    ids=repr,
)  # fmt: skip
def test_learned_attributes_cannot_be_written(model):
    model.fit(X, np.arange(30) % 2)
    found = [name for name in LEARNED if hasattr(model, name)]
    assert len(found) >= 2
    for name in found:
        value = getattr(model, name)
        with pytest.raises(ValueError, match="read-only"):
            value[...] = 99


@pytest.mark.parametrize("model", [SVC(), SVR(), OneClassSVM()], ids=repr)
def test_an_export_is_its_own(model):
    model.fit(X, np.arange(30) % 2)
    plain = model.to_sklearn()
    before = model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)
    for name in ("intercept_", "dual_coef_", "support_", "support_vectors_"):
        getattr(plain, name)[...] = 0
    after = model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)
    np.testing.assert_array_equal(before, after)
