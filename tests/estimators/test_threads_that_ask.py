# SPDX-License-Identifier: BSD-3-Clause
"""Any number of threads may ask one model at once, as docs/guide.md says."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from adiabat import SVC, SVR, KernelLSSVC, OneClassSVM

RNG = np.random.default_rng(0)
X, Q = RNG.normal(size=(60, 3)), RNG.normal(size=(5, 3))
T = X[:, 0] + 0.3 * RNG.normal(size=60)
Y = T > 0.0


def forgetful(model):
    twin = copy.deepcopy(model)
    return twin.forget([1]).predict(Q)


def left_out(model):
    found = model.leave_one_out()
    return found.prediction if isinstance(model, SVR) else found.decision


ASKING = {
    "predict": lambda model: model.predict(Q),
    "decision_function": lambda model: model.decision_function(Q),
    "predict_proba": lambda model: model.predict_proba(Q),
    "predict_p": lambda model: model.predict_p(Q),
    "predict_set": lambda model: model.predict_set(Q)[1],
    "predict_interval": lambda model: model.predict_interval(Q, 0.8, "jackknife+")[1],
    "predict_region": lambda model: np.concatenate(
        [region[0] for region in model.predict_region(Q, 0.8)[1]]
    ),
    "leave_one_out": left_out,
    "preview": lambda model: model.preview([3, 5]).after,
    "regularization_path": lambda model: model.regularization_path(0.5, 2.0).C,
    "certificate": lambda model: model.certificate().residual,
    "__getstate__": lambda model: pickle.loads(pickle.dumps(model)).predict(Q),
    "forget": forgetful,
}


@pytest.mark.parametrize(
    "make",
    [
        lambda: SVC(gamma=0.5, calibration="venn_abers").fit(X, Y),
        lambda: SVR(gamma=0.5).fit(X, T),
        lambda: OneClassSVM(gamma=0.5).fit(X),
        lambda: KernelLSSVC(gamma=0.5).fit(X, Y),
    ],
)
def test_threads_that_ask_at_once_get_the_answers_of_one(make):
    names = [name for name in ASKING if hasattr(make(), name)]
    alone = {name: ASKING[name](make()) for name in names}
    model = make()
    before = model.predict(X)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda name: (name, ASKING[name](model)), names * 4))
    for name, answer in found:
        np.testing.assert_allclose(answer, alone[name], rtol=1e-9, atol=1e-9, err_msg=name)
    assert np.array_equal(model.predict(X), before) and model.certificate().ok
