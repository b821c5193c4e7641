# SPDX-License-Identifier: BSD-3-Clause
"""Threads for the large products of an update, as many as the user gave to BLAS.

BLAS's own threads serve an update badly. NumPy and SciPy, as wheels, each bring a pool of them, and
those of the one keep spinning for a while after a product when those of the other want the cores;
and a product of a millisecond waits for its slowest thread, which on a busy machine is a long time.
Updates were seen to take ten times as long. So BLAS is held at one thread meanwhile, and the
products that are large (kernel values, residuals of watched rows, the judge's) are cut into slices
of rows for a team of our own (`_core/team.h`).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

from adiabat._core import team
from adiabat.engine.interrupts import deferred_interrupts

_lock = threading.Lock()
_holders: set[BlasHold] = set()
_threads_before: list[int] = []


@cache
def _pools() -> list[Any]:
    pools: list[Any] = ThreadpoolController().select(user_api="blas").lib_controllers
    return pools


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
                team.resize(max(_threads_before, default=1))
            _holders.add(self)

    def give_back(self) -> None:
        """Let BLAS have its threads again, unless another holds it."""
        global _threads_before
        with _lock:
            _holders.discard(self)
            if not _holders:
                for pool, threads in zip(_pools(), _threads_before, strict=False):
                    pool.set_num_threads(threads)
                _threads_before = []
                team.resize(1)


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


def _begin_anew() -> None:
    """Threads do not come along through a fork, nor does whoever held the lock."""
    global _lock, _threads_before
    _lock, _threads_before = threading.Lock(), []
    _holders.clear()
    team.begin_anew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)
