# SPDX-License-Identifier: BSD-3-Clause
"""How many threads an update has, and that its results do not depend on it."""

from __future__ import annotations

import os
import subprocess
import sys

import joblib
import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import adiabat
from adiabat._core import thread_pool
from adiabat.engine.threads import VARIABLE, blas_held, n_cpus, n_threads


def threads_of_an_update() -> int:
    with blas_held():
        assert n_threads() == thread_pool.size()
        return int(thread_pool.size())


def test_as_many_threads_as_cpus_and_no_more_than_blas() -> None:
    with adiabat.limit_threads(None):
        for blas in (1, 2, 64):
            with threadpool_limits(blas, user_api="blas"):
                assert threads_of_an_update() == n_threads() == min(blas, n_cpus(), 16)
    assert n_cpus() == joblib.cpu_count()
    assert thread_pool.size() == 1, "the pool is at rest between updates"


def test_a_limit_holds_until_the_end_of_its_block() -> None:
    with adiabat.limit_threads(3):
        assert threads_of_an_update() == 3
        with adiabat.limit_threads(1):
            assert threads_of_an_update() == 1
        assert threads_of_an_update() == 3
        with threadpool_limits(1, user_api="blas"):
            assert threads_of_an_update() == 3, "the nearer word counts"


def test_a_limit_without_a_block_holds_until_it_is_taken_back() -> None:
    before = n_threads()
    limit = adiabat.limit_threads(7)
    assert threads_of_an_update() == 7
    limit.restore_original_limits()
    assert n_threads() == before
    with adiabat.limit_threads(10**6):
        assert threads_of_an_update() == thread_pool.MOST_THREADS


@pytest.mark.parametrize("limits", [0, -1, 1.5, True, "two"])
def test_what_is_no_number_of_threads_is_refused(limits: object) -> None:
    before = n_threads()
    with pytest.raises(ValueError, match="limits="):
        adiabat.limit_threads(limits)  # type: ignore[arg-type]
    assert n_threads() == before


def run_with(value: str) -> subprocess.CompletedProcess[str]:
    code = "from adiabat.engine.threads import n_threads; print(n_threads())"
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, VARIABLE: value},
        capture_output=True,
        text=True,
    )


def test_the_environment_sets_a_limit() -> None:
    assert run_with("5").stdout.strip() == "5"
    for wrong in ("0", "-2", "many", "1.5"):
        assert f"{VARIABLE}={wrong!r}" in run_with(wrong).stderr


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity here")
def test_the_affinity_of_the_process_counts() -> None:
    code = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
        "from adiabat.engine.threads import n_threads; print(n_threads())"
    )
    environment = {key: value for key, value in os.environ.items() if key != VARIABLE}
    run = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True
    )
    assert run.stdout.strip() == "1"


@pytest.mark.parametrize("features", [5, 600])
def test_results_do_not_depend_on_the_number_of_threads(features: int) -> None:
    """To the last bit, in updates large enough to be shared: by columns, margin and features."""
    rng = np.random.default_rng(features)
    X = rng.standard_normal((900, features))
    y = np.where(np.sin(3.0 * X[:, 0]) + 0.5 * rng.standard_normal(900) > 0.0, 1, 0)
    found = []
    for n in (1, 2, 3, 8):
        with adiabat.limit_threads(n):
            model = adiabat.SVC(C=3.0, gamma=1.0 / features).fit(X, y)
            model.forget(np.arange(0, 900, 7))
            model.partial_fit(X[:700:7], y[:700:7], ids=np.arange(2000, 2100))
            model.forget([2000])
            found.append((model.dual_coef_, model.intercept_, model.decision_function(X[:50])))
    assert found[0][0].size > 400
    for other in found[1:]:
        for first, second in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(first, second)
