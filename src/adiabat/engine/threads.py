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

import ctypes
import math
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import product
from numbers import Integral
from pathlib import Path
from typing import Any

import scipy.linalg.cython_blas  # noqa: F401  (loads the BLAS that `_find_blas` looks for)
from threadpoolctl import ThreadpoolController

from adiabat._core import blas_threads, thread_pool

VARIABLE = "ADIABAT_NUM_THREADS"

# Terms of kernel values that take a few milliseconds: to wake a thread takes a tenth of one.
SHARED_TERMS = 1 << 25

_lock = threading.Lock()


def _limit_from(environment: str | None) -> int | None:
    """The limit that the environment sets, if any."""
    if not environment:
        return None
    if not environment.isdecimal() or int(environment) < 1:
        raise ValueError(
            f"{VARIABLE}={environment!r} is no number of threads; set it to 1 or more, or not at "
            "all for as many as the process has CPUs"
        )
    return min(int(environment), thread_pool.MOST_THREADS)


_limit = _limit_from(os.environ.get(VARIABLE))


# The functions that get and set the number of threads, by the name threadpoolctl has for a BLAS.
_FUNCTIONS = {
    "openblas": ("openblas_get_num_threads", "openblas_set_num_threads"),
    "mkl": ("MKL_Get_Max_Threads", "MKL_Set_Num_Threads_Local"),
    "blis": ("bli_thread_get_num_threads", "bli_thread_set_num_threads"),
    "flexiblas": ("flexiblas_get_num_threads", "flexiblas_set_num_threads"),
}
# OpenBLAS takes its threads from OpenMP, if it was built so.
_OF_OPENMP = "omp_get_max_threads", "omp_set_num_threads"
# What OpenBLAS puts around the names, as SciPy and others build it.
_PREFIXES, _SUFFIXES = ("", "scipy_"), ("", "64_", "_64")


@cache
def _find_blas() -> None:
    """Look for the libraries of BLAS that are loaded."""
    pools = ThreadpoolController().select(user_api="blas").lib_controllers
    found = [_addresses(pool) for pool in pools]
    blas_threads.use([addresses for addresses in found if addresses is not None])


def _addresses(pool: Any) -> tuple[int, int] | None:
    """Where a library has its two functions; None if it is not known."""
    names = _FUNCTIONS.get(pool.internal_api)
    if getattr(pool, "threading_layer", None) == "openmp" and pool.internal_api == "openblas":
        names = _OF_OPENMP
    for before, after in product(_PREFIXES, _SUFFIXES) if names else ():
        get, set_ = (getattr(pool.dynlib, f"{before}{name}{after}", None) for name in names or ())
        if get and set_:
            return _address(get), _address(set_)
    return None


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


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
    _find_blas()
    return blas_threads.number(_limit or 0, n_cpus())


def _checked(limits: Any) -> int | None:
    """A number of threads, or None; anything else is refused."""
    if limits is None:
        return None
    if isinstance(limits, bool) or not isinstance(limits, Integral) or int(limits) < 1:
        raise ValueError(f"limits={limits!r} is no number of threads; give 1 or more, or None")
    return min(int(limits), thread_pool.MOST_THREADS)


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


class BlasHold(blas_threads.Hold):
    """BLAS held at one thread from `take` to `give_back`; the last to give back frees it.

    It may be given back also if `take` was cut short by an interrupt, or never came.
    """

    def take(self) -> None:
        """Hold BLAS at one thread."""
        _find_blas()
        self.begin(_limit or 0, n_cpus())

    def give_back(self) -> None:
        """Let BLAS have its threads again, unless another holds it."""
        self.end()


@contextmanager
def blas_held() -> Iterator[None]:
    """Hold BLAS at one thread in a block."""
    blas = BlasHold()
    try:
        blas.take()
        yield
    finally:
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
    global _lock
    _lock = threading.Lock()
    blas_threads.reset()
    thread_pool.reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset)
