# SPDX-License-Identifier: BSD-3-Clause
"""Squared distances from products, in one pass over memory where NumPy makes four."""

from adiabat._core.simd cimport simd


def scaled_distances(double[:, ::1] products, const double[::1] half_a, const double[::1] half_b,
                     double factor):
    """products[i, j] = factor * min(products[i, j] - half_a[i] - half_b[j], 0), in its place.

    With products <a_i, b_j> and half the squared norms, that is -factor / 2 times the squared
    distance; one that rounding made negative is zero. What is not a number stays so.
    """
    cdef Py_ssize_t i
    if half_a.shape[0] != products.shape[0] or half_b.shape[0] != products.shape[1]:
        raise ValueError("one norm for each row and each column is needed")
    if products.shape[1] == 0:
        return
    with nogil:
        for i in range(products.shape[0]):
            simd.scale_distances(
                products.shape[1], &products[i, 0], half_a[i], &half_b[0], factor)
