# SPDX-License-Identifier: BSD-3-Clause
"""Matrices to twice the working precision: sums of outer products, and residuals.

A number is an unevaluated sum hi + lo with |lo| <= half an ulp of hi (Dekker 1971), so 106 bits.
Of symmetric matrices (all but that of `weighted_sums`) only entries on and above the diagonal are
read or written. `twofold.h` has the arithmetic. The compiler is told not to fuse products with
sums, which would spoil it.

Where sums have been much larger than they are to be, a third part `rest` takes what the two round
away, and there are 159 bits; what reads a matrix reads hi and lo, which are then its leading 106.
"""

import numpy as np

from adiabat._core.simd cimport simd

cdef extern from "twofold.h" nogil:
    double upper_half(double a) noexcept
    void accumulate(double* hi, double* lo, double p, double e) noexcept
    double product_error(double p, double a_upper, double a_lower, double b_upper,
                         double b_lower) noexcept
    double two_sum(double a, double b, double* e) noexcept


cdef inline void accumulate_three(
    double* hi, double* lo, double* rest, double p, double e, double q,
) noexcept nogil:
    """(hi, lo, rest) += p + e + q, each some 53 bits below the one before"""
    cdef double a, b, c, d, s, t
    s = two_sum(hi[0], p, &a)
    t = two_sum(lo[0], a, &b)
    t = two_sum(t, e, &c)
    t = two_sum(t, q, &d)
    rest[0] = rest[0] + (b + c + d)
    hi[0] = two_sum(s, t, &a)
    lo[0] = two_sum(a, rest[0], &b)
    rest[0] = b
    # where the leading part has cancelled, the next one takes its place
    hi[0] = two_sum(hi[0], lo[0], &a)
    lo[0] = two_sum(a, rest[0], &b)
    rest[0] = b


cdef void add_row_to_three(
    double* hi, double* lo, double* rest, const double* z, const double* upper,
    const double* lower, double a, double a_rest, Py_ssize_t start, Py_ssize_t stop,
) noexcept nogil:
    """(hi, lo, rest)[j] += (a + a_rest) * z[j], j in [start, stop)"""
    cdef double a_upper = upper_half(a), a_lower = a - upper_half(a)
    cdef double b_upper = upper_half(a_rest), b_lower = a_rest - upper_half(a_rest)
    cdef double p, e, q
    cdef Py_ssize_t j
    for j in range(start, stop):
        p = a * z[j]
        q = a_rest * z[j]
        e = product_error(p, a_upper, a_lower, upper[j], lower[j])
        accumulate_three(&hi[j], &lo[j], &rest[j], p, e, q)
        e = product_error(q, b_upper, b_lower, upper[j], lower[j])
        accumulate_three(&hi[j], &lo[j], &rest[j], e, 0.0, 0.0)


def add_outer(
    double[:, ::1] hi, double[:, ::1] lo, const double[::1] z, double s,
    double[:, ::1] rest=None,
):
    """(hi, lo) += s z z'; with a rest, (hi, lo, rest)"""
    cdef Py_ssize_t m = z.shape[0], i, j
    cdef double a, s_upper = upper_half(s), s_lower = s - upper_half(s), lost
    halves = np.empty((2, m))
    cdef double[:, ::1] half = halves
    cdef bint three = rest is not None
    if m == 0:
        return
    with nogil:
        for j in range(m):
            half[0, j] = upper_half(z[j])
            half[1, j] = z[j] - half[0, j]
        for i in range(m):
            if z[i] == 0.0:
                continue
            a = s * z[i]
            lost = product_error(a, s_upper, s_lower, half[0, i], half[1, i])
            if three:
                add_row_to_three(&hi[i, 0], &lo[i, 0], &rest[i, 0], &z[0], &half[0, 0],
                                 &half[1, 0], a, lost, i, m)
            else:
                simd.twofold_add_row(
                    &hi[i, 0], &lo[i, 0], &z[0], &half[0, 0], &half[1, 0], a, lost, i, m)


cdef void add_terms_to_three(
    double* hi, double* lo, double* rest, const double* term, const double* term_lo,
    const double* term_rest, double sign, Py_ssize_t start, Py_ssize_t stop,
) noexcept nogil:
    """(hi, lo, rest)[j] += sign * (term, term_lo, term_rest)[j], j in [start, stop)"""
    cdef Py_ssize_t j
    if term_lo == NULL:
        for j in range(start, stop):
            accumulate_three(&hi[j], &lo[j], &rest[j], sign * term[j], 0.0, 0.0)
    elif term_rest == NULL:
        for j in range(start, stop):
            accumulate_three(&hi[j], &lo[j], &rest[j], sign * term[j], sign * term_lo[j], 0.0)
    else:
        for j in range(start, stop):
            accumulate_three(&hi[j], &lo[j], &rest[j], sign * term[j], sign * term_lo[j],
                             sign * term_rest[j])


def add_matrix(
    double[:, ::1] hi, double[:, ::1] lo, const double[:, ::1] term, double sign,
    double[:, ::1] rest=None,
):
    """(hi, lo) += sign * term, sign being 1 or -1; with a rest, (hi, lo, rest)"""
    cdef Py_ssize_t m = hi.shape[0], i
    cdef bint three = rest is not None
    with nogil:
        for i in range(m):
            if three:
                add_terms_to_three(&hi[i, 0], &lo[i, 0], &rest[i, 0], &term[i, 0], NULL, NULL,
                                   sign, i, m)
            else:
                simd.twofold_add_terms(&hi[i, 0], &lo[i, 0], &term[i, 0], NULL, sign, i, m)


def add_twofold(
    double[:, ::1] hi, double[:, ::1] lo,
    const double[:, ::1] term_hi, const double[:, ::1] term_lo, double sign,
    double[:, ::1] rest=None, const double[:, ::1] term_rest=None,
):
    """(hi, lo) += sign * (term_hi, term_lo), sign being 1 or -1; with a rest, (hi, lo, rest)"""
    cdef Py_ssize_t m = hi.shape[0], i
    cdef bint three = rest is not None, more = term_rest is not None
    with nogil:
        for i in range(m):
            if three:
                add_terms_to_three(
                    &hi[i, 0], &lo[i, 0], &rest[i, 0], &term_hi[i, 0], &term_lo[i, 0],
                    &term_rest[i, 0] if more else NULL, sign, i, m,
                )
            else:
                simd.twofold_add_terms(
                    &hi[i, 0], &lo[i, 0], &term_hi[i, 0], &term_lo[i, 0], sign, i, m)


def residual(
    const double[:, ::1] hi, const double[:, ::1] lo, const double[::1] ridge,
    const double[::1] x, const double[::1] b, const double[::1] b_rest,
):
    """b + b_rest - (hi + lo + diag(ridge)) x, rounded once at the end.

    The matrix may be larger than x is long: its leading block is meant. Without lo it is hi.
    """
    cdef Py_ssize_t m = x.shape[0], i, j
    cdef double p
    halves, sums, answer = np.empty((3, m)), np.zeros((2, m)), np.empty(m)
    cdef double[:, ::1] half = halves, y = sums
    cdef double[::1] out = answer
    cdef bint precise = lo is not None
    cdef const double[::1] nothing = np.zeros(0 if precise else m)
    if m == 0:
        return answer
    with nogil:
        for j in range(m):
            half[0, j] = -x[j]
            half[1, j] = upper_half(-x[j])
            half[2, j] = -x[j] - half[1, j]
            p = -x[j] * ridge[j]
            y[0, j] = b[j]
            y[1, j] = b_rest[j]
            accumulate(&y[0, j], &y[1, j], p, product_error(
                p, upper_half(ridge[j]), ridge[j] - upper_half(ridge[j]), half[1, j], half[2, j],
            ))
        for i in range(m):
            simd.twofold_multiply_row(
                &hi[i, 0], &lo[i, 0] if precise else &nothing[0],
                &half[0, 0], &half[1, 0], &half[2, 0], i, m, &y[0, 0], &y[1, 0],
            )
        for j in range(m):
            out[j] = y[0, j] + y[1, j]
    return answer


def weighted_sums(const double[:, ::1] A, const double[::1] x, const double[::1] start):
    """A x + start, each sum rounded once at its end; A is any matrix."""
    cdef Py_ssize_t m = x.shape[0], i, j
    cdef double p, a_upper, rest
    halves, answer = np.empty((2, m)), np.array(start)
    cdef double[:, ::1] half = halves
    cdef double[::1] out = answer
    with nogil:
        for j in range(m):
            half[0, j] = upper_half(x[j])
            half[1, j] = x[j] - half[0, j]
        for i in range(A.shape[0]):
            rest = 0.0
            for j in range(m):
                p = A[i, j] * x[j]
                a_upper = upper_half(A[i, j])
                accumulate(&out[i], &rest, p, product_error(
                    p, a_upper, A[i, j] - a_upper, half[0, j], half[1, j],
                ))
    return answer


def centred(double[:, ::1] hi, double[:, ::1] lo, Py_ssize_t m):
    """G - h h'/c, rounded once: G the leading m x m block, h and c in column m.

    The quotient is taken to twice the working precision: where the mean is large against the
    spread, nearly all digits cancel.
    """
    cdef Py_ssize_t i, j
    cdef double c = hi[m, m], q, q_rest, p, e, c_upper = upper_half(hi[m, m])
    answer, column = np.zeros((m, m)), np.empty((4, m))
    cdef double[:, ::1] out = answer, h = column
    with nogil:
        for j in range(m):
            h[0, j] = hi[j, m]
            h[1, j] = upper_half(hi[j, m])
            h[2, j] = hi[j, m] - h[1, j]
            h[3, j] = lo[j, m]
        for i in range(m):
            # -h_i / c = q + q_rest
            q = -h[0, i] / c
            p = q * c
            e = product_error(p, upper_half(q), q - upper_half(q), c_upper, c - c_upper)
            q_rest = ((-h[0, i] - p) - e - h[3, i] - q * lo[m, m]) / c
            simd.twofold_centre_row(
                &out[i, 0], &hi[i, 0], &lo[i, 0], &h[0, 0], &h[1, 0], &h[2, 0], &h[3, 0],
                q, q_rest, i, m,
            )
    return answer
