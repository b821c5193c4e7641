# SPDX-License-Identifier: BSD-3-Clause
"""Z'Z of whole numbers up to 255 (pixels, counts, one-hot columns) in single precision, exactly.

Single precision is twice as fast, and whole numbers below 2^24 do not round in it. No sum of
products exceeds the largest sum of squares (Cauchy and Schwarz), so that rows are taken together
until one of those might reach 2^24; their product is then added to a total in double precision.
"""

from adiabat._core.blas cimport ssyrk_lower
from adiabat._core.simd cimport simd

cdef enum:
    LIMIT = 16777216  # 2^24
    STEP = 32  # rows between two looks at the sums of squares
    REACH = 32 * 255 * 255  # what so many rows can add to one of them


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
                simd.whole_convert(
                    width, &phi[first + taken, 0], &rows[taken, 0], &squares[0], &strange)
                rows[taken, width] = 1.0
                if extra:
                    simd.whole_convert(
                        extra, &t[first + taken, 0], &rows[taken, width + 1],
                        &squares[width + 1], &strange)
                if strange:
                    break
                taken += 1
                if taken % STEP == 0 and largest(&squares[0], side) >= LIMIT - REACH:
                    break
            if taken:
                ssyrk_lower(side, taken, &rows[0, 0], side, &part[0, 0], side)
                for i in range(side):
                    simd.whole_add(&total[i, 0], &part[i, 0], i, side)
            first += taken
    return first
