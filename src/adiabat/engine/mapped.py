# SPDX-License-Identifier: BSD-3-Clause
"""Panels of kernel columns in a file that is mapped into memory, beyond a limit.

The numbers are the same wherever they are. Such a file can be read by its owner alone, has no name
from the start (on Windows: is deleted when it is closed), and all its room on the disk is reserved
before it is used: a full disk is an error then, and not a signal later.

A forked process shares the file with its parent, whose columns it must not write to. Its copies of
models begin without columns, and compute those that they need anew (`memory.regain`).
"""

from __future__ import annotations

import mmap
import os
import sys
import tempfile
import weakref
from collections.abc import Iterable
from typing import Any

import numpy as np

from adiabat._core.gram import Gram
from adiabat._core.panels import PanelMemory
from adiabat.typing import FloatArray


class LimitedMemory(PanelMemory):
    """Panels are in memory if all of them take no more than `most` bytes, else in a file.

    `limit` is what the user allowed in all.
    """

    def __init__(self, limit: float, most: float) -> None:
        self.limit, self.most = limit, most

    def register(self, gram: Any) -> None:
        """Note a Gram some of whose panels may be in a file."""
        _users.add(gram)

    def zeros(self, shape: tuple[int, int], *beside: list[FloatArray]) -> FloatArray:
        """Zeros, beside other arrays."""
        return super().zeros(shape) if self.has_room(shape, *beside) else self.mapped(shape)

    def empty(self, shape: tuple[int, int], *beside: list[FloatArray]) -> FloatArray:
        """Numbers to be written, beside other arrays."""
        return super().empty(shape) if self.has_room(shape, *beside) else self.mapped(shape)

    def has_room(self, shape: tuple[int, int], *beside: list[FloatArray]) -> bool:
        """Whether so many numbers more, beside other arrays, may be in memory."""
        return sum(map(in_memory, beside)) + _bytes(shape) <= self.most

    def mapped(self, shape: tuple[int, int]) -> FloatArray:
        """Zeros in a file of their own; OSError if the disk has no room for it."""
        try:
            with tempfile.TemporaryFile(prefix="adiabat-", buffering=0) as file:
                reserve(file, _bytes(shape))
                # nobody asks for the file again, and each would be one of few open ones
                untracked: Any = {"trackfd": False} if sys.version_info >= (3, 13) else {}
                numbers = mmap.mmap(file.fileno(), _bytes(shape), **untracked)
        except OSError as error:
            raise OSError(
                error.errno,
                f"memory_limit={self.limit:g}: kernel columns beyond it are kept in a file in "
                f"{tempfile.tempdir!r}, which needs {_bytes(shape) / 1e6:,.1f} MB more there "
                f"({error.strerror or error}). Make room on that disk, let TMPDIR name a folder on "
                "a larger one, or raise memory_limit",
            ) from error
        return np.ndarray(shape, np.float64, numbers)


def reserve(file: Any, size: int) -> None:
    """Let an empty file have so many bytes of the disk; OSError if these are not there."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, size)
        return
    zeros = bytes(min(size, 1 << 20))
    left = size
    while left:
        left -= file.write(zeros[:left])


def in_memory(arrays: Iterable[FloatArray]) -> int:
    """Bytes of those arrays that are not in a file."""
    return sum(array.nbytes for array in arrays if not is_mapped(array))


def is_mapped(array: FloatArray) -> bool:
    """Whether the numbers of an array are in a file."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    return isinstance(base, mmap.mmap)


def limit_columns(gram: Gram, memory: LimitedMemory) -> None:
    """Let a Gram keep its panels in a memory: the last ones in a file, if they are too many."""
    gram.use(memory)
    for p in reversed(range(len(gram.panels))):
        if memory.has_room((0, 0), gram.panels):
            return
        panel = gram.panels[p]
        if not is_mapped(panel):
            rows, width = panel.shape
            moved = memory.mapped((rows, width))
            moved[: gram.n_lines] = panel[: gram.n_lines]
            gram.place(p, moved)


def _bytes(shape: tuple[int, int]) -> int:
    return 8 * shape[0] * shape[1]


# -- after a fork of the process ------------------------------------------------------------------

_users: weakref.WeakSet[Gram] = weakref.WeakSet()


def _abandon() -> None:
    for gram in list(_users):
        if any(is_mapped(panel) for panel in gram.panels):
            gram.abandon()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_abandon)
