# SPDX-License-Identifier: BSD-3-Clause
"""Every part of a job is done once, by some thread."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import numpy as np
import pytest

from adiabat._core import thread_pool


@pytest.fixture(params=[1, 2, 3, 7], ids="{} threads".format)
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    thread_pool.resize(request.param)
    yield request.param
    thread_pool.resize(1)


def covered(n: int, parts: int) -> np.ndarray:
    """How often each of range(n) was in a slice."""
    count = np.zeros(n, dtype=np.int64)

    def task(rows: slice) -> None:
        count[rows] += 1

    thread_pool.in_parts(task, n, parts)
    return count


@pytest.mark.parametrize(("n", "parts"), [(1, 1), (10, 3), (3, 10), (1000, 64), (20_000, 9_000)])
def test_each_row_is_in_one_slice(threads: int, n: int, parts: int) -> None:
    assert thread_pool.size() == threads
    for _ in range(5):
        assert (covered(n, parts) == 1).all()


def test_nothing_to_do(threads: int) -> None:
    assert len(covered(0, 4)) == 0


def test_threads_that_slept_come_back(threads: int) -> None:
    for _ in range(3):
        thread_pool.resize(1)
        threading.Event().wait(0.02)
        thread_pool.resize(threads)
        thread_pool.wake()
        assert (covered(500, 50) == 1).all()


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt])
def test_an_error_is_raised_when_all_is_over(threads: int, kind: type[BaseException]) -> None:
    def task(rows: slice) -> None:
        if rows.start == 0:
            raise kind("the first")

    with pytest.raises(kind, match="the first"):
        thread_pool.in_parts(task, 100, 10)
    assert (covered(100, 10) == 1).all()


def test_a_job_within_a_job_is_done_alone(threads: int) -> None:
    inner = []

    def task(rows: slice) -> None:
        inner.append(int(covered(50, 5).sum()))

    thread_pool.in_parts(task, 8, 4)
    assert inner and set(inner) == {50}


def test_several_callers_at_a_time(threads: int) -> None:
    wrong: list[int] = []

    def call() -> None:
        for _ in range(50):
            if not (covered(300, 30) == 1).all():
                wrong.append(1)

    callers = [threading.Thread(target=call) for _ in range(3)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_after_a_fork_there_is_a_new_pool(threads: int) -> None:
    from adiabat.engine import threads as held  # noqa: F401  (it registers the new pool)

    assert (covered(100, 10) == 1).all()
    child = os.fork()
    if child == 0:  # pragma: no cover
        sound = thread_pool.size() == 1
        thread_pool.resize(threads)
        os._exit(0 if sound and (covered(100, 10) == 1).all() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_little_is_not_shared(threads: int) -> None:
    slices: list[slice] = []
    thread_pool.in_slices(slices.append, 100, 1000)
    assert slices == [slice(0, 100)]
    thread_pool.in_slices(slices.append, 100, 10**9)
    assert len(slices) == 1 + thread_pool.SLICES, "however many threads there are"
