# SPDX-License-Identifier: BSD-3-Clause
"""Panels in memory and in a file: zeros from the start of a cache line, and no trace of a file."""

from __future__ import annotations

import errno
import gc
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adiabat._core.gram import NO_SLOT, Gram
from adiabat.engine import mapped
from adiabat.engine.mapped import LimitedMemory, in_memory, is_mapped

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def filled(memory: LimitedMemory, n: int = 300) -> tuple[Gram, Any]:
    """A Gram whose samples all have columns, and their values."""
    K = np.random.default_rng(0).normal(size=(n, n))
    gram = Gram(memory)
    gram.append(n, np.empty(0, dtype=np.int64), np.empty((n, 0)))
    gram.claim(np.arange(n), lambda rows: K[rows])
    return gram, K


def test_beyond_so_many_bytes_zeros_are_in_a_file(folder: Path) -> None:
    memory = LimitedMemory(1e6, 3000.0)
    here = memory.zeros((1, 128))
    there = memory.zeros((20, 128), [here], [])
    also = memory.empty((3, 128), [there, here])  # what is in a file takes no memory
    assert [is_mapped(one) for one in (here, there, also)] == [False, True, True]
    assert in_memory([here, there, also]) == 1024
    assert is_mapped(there[3:, :2]) and not there.any()
    assert there.ctypes.data % 64 == 0 and there.flags.writeable and there.flags.c_contiguous
    assert list(folder.iterdir()) == []  # it has no name


def open_files(folder: Path) -> list[int]:
    """Descriptors of files in a folder."""
    links = {name: Path("/proc/self/fd", name) for name in os.listdir("/proc/self/fd")}
    return [
        int(name)
        for name, link in links.items()
        if link.is_symlink() and str(folder) in os.readlink(link)
    ]


@LINUX
def test_the_file_is_its_owners_alone_and_goes_with_the_array(folder: Path) -> None:
    array: Any = LimitedMemory(1.0, 0.0).zeros((600, 128))
    maps = Path("/proc/self/maps").read_text()
    assert str(folder) in maps
    for descriptor in open_files(folder):
        status = os.fstat(descriptor)
        assert status.st_mode & 0o777 == 0o600 and status.st_nlink == 0
        assert status.st_blocks * 512 >= array.nbytes  # reserved, though nothing was written
    del array
    gc.collect()
    assert open_files(folder) == []
    assert str(folder) not in Path("/proc/self/maps").read_text()


def test_a_full_disk_says_what_is_missing_and_what_to_do(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: Any, size: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(mapped, "reserve", full)
    said = r"memory_limit=2e\+09: .* a file in '.*', which needs 1\.0 MB more there .*TMPDIR"
    with pytest.raises(OSError, match=said) as refused:
        LimitedMemory(2e9, 0.0).zeros((1000, 128))
    assert refused.value.errno == errno.ENOSPC and str(folder) in str(refused.value)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("fast", [True, False])
def test_all_of_the_file_is_reserved(fast: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system has no call for it, zeros are written."""
    if not fast:
        monkeypatch.delattr(os, "posix_fallocate", raising=False)
    with tempfile.TemporaryFile(buffering=0) as file:
        mapped.reserve(file, (1 << 21) + 4097)
        assert os.fstat(file.fileno()).st_size == (1 << 21) + 4097
        assert not any(file.read())


def test_a_failed_growth_leaves_columns_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    gram, K = filled(LimitedMemory(1.0, 0.0))
    reserve, left = mapped.reserve, 1

    def soon_full(file: Any, size: int) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        reserve(file, size)

    monkeypatch.setattr(mapped, "reserve", soon_full)
    more = np.zeros((700, 300))
    with pytest.raises(OSError, match="No space left"):
        gram.append(700, np.arange(300), more)
    assert gram.n == 300
    out = np.empty((300, 300))
    gram.gather(np.arange(300), gram.slot_of[:300], out)
    np.testing.assert_array_equal(out, K)
    monkeypatch.undo()
    gram.append(700, gram.slot_of[:300], more)
    f = np.empty(1000)
    gram.multiply(np.ones(gram.n_slots) * (gram.owner >= 0), f)
    np.testing.assert_allclose(f[:300], K.sum(axis=1), atol=1e-9)
    assert not f[300:].any()


def test_a_fork_shares_what_is_in_the_file() -> None:
    gram, K = filled(LimitedMemory(1.0, 0.0))
    other = gram.fork()
    assert other.memory is gram.memory
    assert all(mine is theirs for mine, theirs in zip(other.panels, gram.panels, strict=True))
    del gram
    gc.collect()
    out = np.empty((300, 300))
    other.gather(np.arange(300), other.slot_of[:300], out)
    np.testing.assert_array_equal(out, K)


@pytest.mark.skipif(not hasattr(os, "register_at_fork"), reason="processes do not fork")
def test_after_a_fork_of_the_process_columns_are_the_parents() -> None:
    there, _ = filled(LimitedMemory(1.0, 0.0))
    here, _ = filled(LimitedMemory(1.0, 1e9))
    mapped._abandon()  # what a child does first
    assert there.panels == [] and there.n == 300 and there.n_slots == 0 == len(there.owner)
    assert (there.slot_of[:300] == NO_SLOT).all()
    assert (here.slot_of[:300] != NO_SLOT).all()  # ordinary memory is the child's own
    there.claim(np.arange(3), lambda rows: np.ones((300, 3))[rows])
    assert (there.slot_of[:3] != NO_SLOT).all()
