# SPDX-License-Identifier: BSD-3-Clause
"""Arrays in large pages of memory."""

import re
from pathlib import Path

import numpy as np
import pytest

from adiabat._core.pages import take_large_pages

SMAPS = Path("/proc/self/smaps")
ENABLED = Path("/sys/kernel/mm/transparent_hugepage/enabled")


def _asked_for(array):
    """Whether the system was asked for large pages in the middle of an array."""
    middle = array.ctypes.data + array.nbytes // 2
    inside = False
    for line in SMAPS.read_text().splitlines():
        span = re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line)
        if span:
            inside = int(span[1], 16) <= middle < int(span[2], 16)
        elif inside and line.startswith("VmFlags:"):
            return "hg" in line.split()
    return False


@pytest.mark.skipif(not (SMAPS.exists() and ENABLED.exists()), reason="no large pages to ask for")
def test_the_system_is_asked_for_large_pages():
    # NumPy asks from 4 MB on
    array = np.empty((1 << 9, 1 << 9))
    take_large_pages(array)
    assert _asked_for(array)


@pytest.mark.parametrize("shape", [(0, 4), (1, 1), (1 << 8, 1 << 9)])
def test_entries_are_kept(shape):
    array = np.arange(float(np.prod(shape))).reshape(shape)
    take_large_pages(array)
    np.testing.assert_array_equal(array.ravel(), np.arange(array.size))
