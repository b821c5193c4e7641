# SPDX-License-Identifier: BSD-3-Clause
"""Z'Z of whole numbers up to 255 (pixels, counts, one-hot columns) in single precision, exactly.

Single precision is twice as fast, and whole numbers below 2^24 do not round in it. No sum of
products exceeds the largest sum of squares (Cauchy and Schwarz), so that rows are taken together
until one of those might reach 2^24; their product is then added to a total in double precision.
"""

from adiabat._core.blas cimport ssyrk_lower
from adiabat._core.wide cimport wide_void

cdef enum:
    LIMIT = 16777216  # 2^24
    STEP = 32  # rows between two looks at the sums of squares
    REACH = 32 * 255 * 255  # what so many rows can add to one of them
cdef double BYTE = 255.0


cdef wide_void convert(
    const double* x, float* z, int* squares, int* strange, Py_ssize_t n,
) noexcept nogil:
    """z = x and squares += x * x; strange[0] is set if x is not small and whole"""
    cdef Py_ssize_t j
    cdef double inside
    cdef int k, other = 0
    for j in range(n):
        inside = x[j] if x[j] >= -BYTE and x[j] <= BYTE else 0.5
        k = <int> inside
        other |= k != inside
        z[j] = <float> k
        squares[j] += k * k
    strange[0] |= other


cdef wide_void add_part(
    double* total, const float* part, Py_ssize_t start, Py_ssize_t stop,
) noexcept nogil:
    """total[j] += part[j], j in [start, stop)"""
    cdef Py_ssize_t j
    for j in range(start, stop):
        total[j] += part[j]


cdef int largest(const int* squares, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t j
    cdef int most = 0
    for j in range(n):
        most = max(most, squares[j])
    return most


def add_whole(
    const double[:, :] phi, const double[:, ::1] t, float[:, ::1] rows, float[:, ::1] part,
    int[::1] squares, double[:, ::1] total,
):
    """Add Z'Z to the upper triangle of `total`, Z = (phi, 1, t); stop before strange rows.

    `rows`, `part` and `squares` are room to work in. Returns how many rows were added: all, or
    those before some that are not whole, or not small.
    """
    cdef Py_ssize_t n = phi.shape[0], width = phi.shape[1], extra = t.shape[1]
    cdef Py_ssize_t side = total.shape[0], first = 0, taken, i
    cdef int strange = 0
    if phi.strides[1] != sizeof(double) and width > 1:
        return 0
    with nogil:
        while first < n and not strange:
            taken = 0
            squares[:] = 0
            while first + taken < n and taken < rows.shape[0]:
                convert(&phi[first + taken, 0], &rows[taken, 0], &squares[0], &strange, width)
                rows[taken, width] = 1.0
                if extra:
                    convert(&t[first + taken, 0], &rows[taken, width + 1], &squares[width + 1],
                            &strange, extra)
                if strange:
                    break
                taken += 1
                if taken % STEP == 0 and largest(&squares[0], side) >= LIMIT - REACH:
                    break
            if taken:
                ssyrk_lower(side, taken, &rows[0, 0], side, &part[0, 0], side)
                for i in range(side):
                    add_part(&total[i, 0], &part[i, 0], i, side)
            first += taken
    return first
