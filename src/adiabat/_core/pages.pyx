# SPDX-License-Identifier: BSD-3-Clause
"""Arrays in large pages of memory, which the system provides sooner than many small ones."""

cdef extern from "pages.h":
    void pages_ask(void* memory, size_t bytes) noexcept nogil

# Bytes of an array from which on large pages are asked for.
LEAST = 1 << 19


def take_large_pages(double[:, ::1] array):
    """Let the memory of an array that was not yet written to come in large pages."""
    if array.size * sizeof(double) >= LEAST:
        pages_ask(&array[0, 0], array.size * sizeof(double))
