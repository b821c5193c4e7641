# SPDX-License-Identifier: BSD-3-Clause
"""BLAS is at one thread as long as somebody holds it, and has its threads again afterwards."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

from adiabat._core import blas_threads, thread_pool
from adiabat._core.blas_threads import Hold
from adiabat.engine.threads import n_threads


def of_blas() -> set[int]:
    """How many threads the libraries of BLAS have."""
    return {
        pool.num_threads for pool in ThreadpoolController().select(user_api="blas").lib_controllers
    }


@pytest.fixture(autouse=True)
def three() -> Iterator[None]:
    n_threads()  # looks for the libraries
    with threadpool_limits(3, user_api="blas"):
        yield
    assert blas_threads.n_holds() == 0


def test_the_last_to_end_gives_blas_its_threads_back() -> None:
    first, second = Hold(), Hold()
    first.begin(0, 2)
    assert of_blas() == {1} and thread_pool.size() == 2
    second.begin(0, 8)
    assert thread_pool.size() == 2, "as the first said"
    first.end()
    assert of_blas() == {1} and blas_threads.n_holds() == 1
    second.end()
    assert of_blas() == {3} and thread_pool.size() == 1


def test_to_begin_or_to_end_twice_is_to_do_it_once() -> None:
    hold = Hold()
    hold.end()
    hold.begin(0, 2)
    hold.begin(0, 2)
    assert blas_threads.n_holds() == 1
    hold.end()
    hold.end()
    assert blas_threads.n_holds() == 0 and of_blas() == {3}


def test_no_more_threads_than_cpus_or_blas_unless_a_limit_says_so() -> None:
    assert blas_threads.number(0, 2) == 2
    assert blas_threads.number(0, 8) == 3
    assert blas_threads.number(5, 2) == 5
    assert blas_threads.number(1000, 2) == thread_pool.MOST_THREADS
    hold = Hold()
    hold.begin(0, 8)
    assert blas_threads.number(0, 8) == 3, "what it had before"
    hold.end()


def test_the_first_libraries_count() -> None:
    blas_threads.use([])
    hold = Hold()
    hold.begin(0, 2)
    assert of_blas() == {1}
    hold.end()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_holds_from_before_a_fork_do_not_count_after_it() -> None:
    code = """
import os
from adiabat._core import blas_threads
from adiabat._core.blas_threads import Hold
from adiabat.engine.threads import n_threads
n_threads()
old, new = Hold(), Hold()
old.begin(0, 1)
child = os.fork()
if child == 0:
    counts = [blas_threads.n_holds()]
    new.begin(0, 1)
    old.end()
    counts.append(blas_threads.n_holds())
    old.begin(0, 1)
    counts.append(blas_threads.n_holds())
    os._exit(counts != [0, 1, 2])
old.end()
print(os.waitpid(child, 0)[1], blas_threads.n_holds())
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.stdout.split() == ["0", "0"], run.stderr
