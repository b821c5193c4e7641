# SPDX-License-Identifier: BSD-3-Clause
"""Threads for the large products of an update.

BLAS's own threads serve an update badly. NumPy and SciPy, as wheels, each bring a pool of them, and
those of the one keep spinning for a while after a product when those of the other want the cores;
and a product of a millisecond waits for its slowest thread, for long on a busy computer. Updates
were seen to take ten times as long. So BLAS is held at one thread meanwhile, and the
products that are large (kernel values, residuals of watched rows, the judge's) are cut into slices
of rows for a thread pool of our own (`_core/thread_pool.h`).

The pool has as many threads as the process has CPUs, by its affinity and its cgroup's quota, and
no more than BLAS, which the user may have lowered. ADIABAT_NUM_THREADS or `limit_threads` say
otherwise. Results do not depend on the number of threads.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from numbers import Integral
from pathlib import Path
from typing import Any

import scipy.linalg.cython_blas  # noqa: F401  (loads the BLAS that `_pools` looks for)
from threadpoolctl import ThreadpoolController

from adiabat._core import thread_pool
from adiabat.engine.interrupts import deferred_interrupts

VARIABLE = "ADIABAT_NUM_THREADS"

# Terms of kernel values that take a few milliseconds: to wake a thread takes a tenth of one.
SHARED_TERMS = 1 << 25

_lock = threading.Lock()
_holders: set[BlasHold] = set()
_threads_before: list[int] = []


def _limit_from(environment: str | None) -> int | None:
    """The limit that the environment sets, if any."""
    if not environment:
        return None
    if not environment.isdecimal() or int(environment) < 1:
        raise ValueError(
            f"{VARIABLE}={environment!r} is no number of threads; set it to 1 or more, or not at "
            "all for as many as the process has CPUs"
        )
    return int(environment)


_limit = _limit_from(os.environ.get(VARIABLE))


@cache
def _pools() -> list[Any]:
    pools: list[Any] = ThreadpoolController().select(user_api="blas").lib_controllers
    return pools


@cache
def n_cpus() -> int:
    """How many CPUs the process may use, by its affinity and its cgroup's quota.

    As many as joblib counts, which takes longer to import than a small service has to start.
    """
    affinity = getattr(os, "sched_getaffinity", None)
    cpus = len(affinity(0)) if affinity else os.cpu_count() or 1
    asked = int(os.environ.get("LOKY_MAX_CPU_COUNT", cpus))
    return max(1, min(cpus, asked, _quota() or cpus))


def _quota() -> int | None:
    """CPUs that the cgroup of the process may use at a time, if it says so."""
    group = Path("/sys/fs/cgroup")
    try:
        if (group / "cpu.max").exists():
            quota, period = (group / "cpu.max").read_text().split()
        else:
            quota, period = (
                (group / f"cpu/cpu.cfs_{name}_us").read_text() for name in ("quota", "period")
            )
        return math.ceil(int(quota) / int(period)) if int(quota) > 0 else None
    except (OSError, ValueError, ZeroDivisionError):  # none, or "max"
        return None


def n_threads() -> int:
    """How many threads an update uses, or would use if it began now."""
    with _lock:
        return _number(_threads_before or [pool.num_threads for pool in _pools()])


def _number(blas: list[int]) -> int:
    """How many threads an update uses where the pools of BLAS have so many."""
    wanted = min(n_cpus(), max(blas, default=n_cpus())) if _limit is None else _limit
    return max(1, min(wanted, thread_pool.MOST_THREADS))


def _checked(limits: Any) -> int | None:
    """A number of threads, or None; anything else is refused."""
    if limits is None:
        return None
    if isinstance(limits, bool) or not isinstance(limits, Integral) or int(limits) < 1:
        raise ValueError(f"limits={limits!r} is no number of threads; give 1 or more, or None")
    return int(limits)


class limit_threads:
    """Limit the number of threads that updates use.

    The limit holds from the call on, for all threads of the process: until the end of the block
    if used as a context manager, else until `restore_original_limits` or another limit. An
    update that is under way keeps what it has.

    Without a limit, updates use as many threads as the process has CPUs (by its affinity and its
    cgroup's quota), 16 at most, and no more than BLAS has: `threadpoolctl.threadpool_limits` and
    ``OPENBLAS_NUM_THREADS`` lower that. ``ADIABAT_NUM_THREADS`` sets a limit at start. Results do
    not depend on the number of threads.

    Parameters
    ----------
    limits : int or None
        The number of threads, the calling one included. None takes a limit away.

    Examples
    --------
    >>> import adiabat
    >>> with adiabat.limit_threads(1):
    ...     model = adiabat.SVC().fit([[0.0], [1.0]], [0, 1])
    """

    def __init__(self, limits: int | None) -> None:
        global _limit
        number = _checked(limits)
        with _lock:
            self._before, _limit = _limit, number

    def restore_original_limits(self) -> None:
        """Let the limit be what it was before."""
        global _limit
        with _lock:
            _limit = self._before

    def __enter__(self) -> limit_threads:
        return self

    def __exit__(self, *error: object) -> None:
        self.restore_original_limits()


class BlasHold:
    """BLAS held at one thread from `take` to `give_back`; the last to give back frees it.

    It may be given back also if `take` was cut short by an interrupt, or never came. Interrupts
    should be deferred meanwhile.
    """

    def take(self) -> None:
        """Hold BLAS at one thread."""
        global _threads_before
        with deferred_interrupts(), _lock:  # else one on the way out of it would leave it locked
            if not _threads_before:
                _threads_before = [pool.num_threads for pool in _pools()]
                for pool in _pools():
                    pool.set_num_threads(1)
                thread_pool.resize(_number(_threads_before))
            _holders.add(self)

    def give_back(self) -> None:
        """Let BLAS have its threads again, unless another holds it."""
        global _threads_before
        if not (_holders or _threads_before):  # nobody holds it
            return
        with _lock:
            _holders.discard(self)
            if not _holders:
                for pool, threads in zip(_pools(), _threads_before, strict=False):
                    pool.set_num_threads(threads)
                _threads_before = []
                thread_pool.resize(1)


@contextmanager
def blas_held() -> Iterator[None]:
    """Hold BLAS at one thread in a block."""
    blas = BlasHold()
    try:
        blas.take()
        yield
    finally:
        with deferred_interrupts():
            blas.give_back()


@contextmanager
def pool_for(terms: int) -> Iterator[None]:
    """Keep threads of the pool ready in a block, if it adds up enough terms to be worth it."""
    if terms < SHARED_TERMS:
        yield
        return
    with blas_held():
        thread_pool.wake()
        yield


def _reset() -> None:
    """After a fork of the process: threads, and who held the lock, are in the parent only."""
    global _lock, _threads_before
    _lock, _threads_before = threading.Lock(), []
    _holders.clear()
    thread_pool.reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset)
