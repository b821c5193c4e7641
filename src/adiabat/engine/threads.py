# SPDX-License-Identifier: BSD-3-Clause
"""One pool of BLAS threads at a time.

NumPy and SciPy, as wheels, each bring a BLAS with threads of its own, and those of the one keep
spinning for a while after a product while those of the other want the cores: on two cores updates
were seen to take ten times as long. The large products (kernel values, the judge's) are NumPy's and
keep the threads that the user set; the core's, through SciPy, are small and get one meanwhile.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

from adiabat.engine.interrupts import deferred_interrupts

_lock = threading.Lock()
_inside = 0
_threads_before: list[int] = []


@cache
def _other_pools() -> list[Any]:
    """BLAS libraries beside NumPy's; none where NumPy and SciPy share one."""
    pools = ThreadpoolController().select(user_api="blas").lib_controllers
    others = [pool for pool in pools if "numpy" not in pool.filepath]
    return others if len(others) < len(pools) else []


@contextmanager
def one_pool() -> Iterator[None]:
    """Hold the other BLAS pools at one thread; the last to leave gives them back."""
    entered = False
    try:
        with deferred_interrupts():
            _enter()
            entered = True
        yield
    finally:
        if entered:
            with deferred_interrupts():
                _leave()


def _enter() -> None:
    global _inside, _threads_before
    with _lock:
        if _inside == 0:
            _threads_before = [pool.num_threads for pool in _other_pools()]
            for pool in _other_pools():
                pool.set_num_threads(1)
        _inside += 1


def _leave() -> None:
    global _inside
    with _lock:
        _inside -= 1
        if _inside == 0:
            for pool, threads in zip(_other_pools(), _threads_before, strict=True):
                pool.set_num_threads(threads)
