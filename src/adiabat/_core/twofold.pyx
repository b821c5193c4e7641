# SPDX-License-Identifier: BSD-3-Clause
"""Matrices to twice the working precision: sums of outer products, and residuals.

A number is an unevaluated sum hi + lo with |lo| <= half an ulp of hi (Dekker 1971), so 106 bits.
Of symmetric matrices (all but that of `weighted_sums`) only entries on and above the diagonal are
read or written. `twofold.h` has the arithmetic. The compiler is told not to fuse products with
sums, which would spoil it.

Where sums have been much larger than they are to be, further parts `rest`, one matrix each, take
what the two round away (see `expansion.h`): 52 bits a part. What reads hi and lo alone reads the
leading 104.
"""

import numpy as np

from adiabat._core.simd cimport simd

cdef extern from "twofold.h" nogil:
    double upper_half(double a) noexcept
    void accumulate(double* hi, double* lo, double p, double e) noexcept
    double product_error(double p, double a_upper, double a_lower, double b_upper,
                         double b_lower) noexcept

cdef extern from "expansion.h" nogil:
    void expansion_add(double* e, int parts, double x) noexcept
    void expansion_normalise(double* e, int parts) noexcept

cdef enum:
    MOST_PARTS = 14


cdef void accumulate_parts(
    double* hi, double* lo, double[:, :, ::1] rest, Py_ssize_t i, Py_ssize_t j, const double* terms,
    int count,
) noexcept nogil:
    """(hi, lo, rest)[i, j] += the sum of the terms"""
    cdef double[MOST_PARTS + 1] e
    cdef int k, extra = <int>rest.shape[0]
    e[0] = hi[j]
    e[1] = lo[j]
    for k in range(extra):
        e[2 + k] = rest[k, i, j]
    e[2 + extra] = 0.0
    for k in range(count):
        expansion_add(&e[0], 3 + extra, terms[k])
    expansion_normalise(&e[0], 3 + extra)
    hi[j] = e[0]
    lo[j] = e[1]
    for k in range(extra):
        rest[k, i, j] = e[2 + k]


cdef void add_row_to_parts(
    double* hi, double* lo, double[:, :, ::1] rest, const double* z, const double* upper,
    const double* lower, double a, double a_rest, Py_ssize_t i, Py_ssize_t stop,
) noexcept nogil:
    """(hi, lo, rest)[i, j] += (a + a_rest) * z[j], j in [i, stop)"""
    cdef double a_upper = upper_half(a), a_lower = a - upper_half(a)
    cdef double b_upper = upper_half(a_rest), b_lower = a_rest - upper_half(a_rest)
    cdef double[4] terms
    cdef Py_ssize_t j
    for j in range(i, stop):
        terms[0] = a * z[j]
        terms[1] = product_error(terms[0], a_upper, a_lower, upper[j], lower[j])
        terms[2] = a_rest * z[j]
        terms[3] = product_error(terms[2], b_upper, b_lower, upper[j], lower[j])
        accumulate_parts(hi, lo, rest, i, j, &terms[0], 4)


cdef bint has_parts(const double[:, :, ::1] rest) except -1:
    """Whether there are parts beyond two; refuses more than there is room for."""
    if rest is None:
        return False
    if not 1 <= rest.shape[0] <= MOST_PARTS - 2:
        raise ValueError(f"rest has 1 to {MOST_PARTS - 2} matrices, not {rest.shape[0]}")
    return True


def add_outer(
    double[:, ::1] hi, double[:, ::1] lo, const double[::1] z, double s,
    double[:, :, ::1] rest=None,
):
    """(hi, lo) += s z z'; with a rest, (hi, lo, rest)"""
    cdef Py_ssize_t m = z.shape[0], i, j
    cdef double a, s_upper = upper_half(s), s_lower = s - upper_half(s), lost
    halves = np.empty((2, m))
    cdef double[:, ::1] half = halves
    cdef bint many = has_parts(rest)
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
            if many:
                add_row_to_parts(&hi[i, 0], &lo[i, 0], rest, &z[0], &half[0, 0], &half[1, 0], a,
                                 lost, i, m)
            else:
                simd.twofold_add_row(
                    &hi[i, 0], &lo[i, 0], &z[0], &half[0, 0], &half[1, 0], a, lost, i, m)


cdef void add_terms_to_parts(
    double* hi, double* lo, double[:, :, ::1] rest, const double* term, const double* term_lo,
    const double[:, :, ::1] term_rest, int term_extra, double sign, Py_ssize_t i, Py_ssize_t stop,
) noexcept nogil:
    """(hi, lo, rest)[i, j] += sign * (term, term_lo, term_rest)[i, j], j in [i, stop)"""
    cdef double[MOST_PARTS] terms
    cdef Py_ssize_t j
    cdef int k, count
    for j in range(i, stop):
        terms[0] = sign * term[j]
        count = 1
        if term_lo != NULL:
            terms[1] = sign * term_lo[j]
            count = 2 + term_extra
            for k in range(term_extra):
                terms[2 + k] = sign * term_rest[k, i, j]
        accumulate_parts(hi, lo, rest, i, j, &terms[0], count)


def add_matrix(
    double[:, ::1] hi, double[:, ::1] lo, const double[:, ::1] term, double sign,
    double[:, :, ::1] rest=None,
):
    """(hi, lo) += sign * term, sign being 1 or -1; with a rest, (hi, lo, rest)"""
    cdef Py_ssize_t m = hi.shape[0], i
    cdef bint many = has_parts(rest)
    with nogil:
        for i in range(m):
            if many:
                add_terms_to_parts(&hi[i, 0], &lo[i, 0], rest, &term[i, 0], NULL, None, 0, sign, i,
                                   m)
            else:
                simd.twofold_add_terms(&hi[i, 0], &lo[i, 0], &term[i, 0], NULL, sign, i, m)


def add_twofold(
    double[:, ::1] hi, double[:, ::1] lo,
    const double[:, ::1] term_hi, const double[:, ::1] term_lo, double sign,
    double[:, :, ::1] rest=None, const double[:, :, ::1] term_rest=None,
):
    """(hi, lo) += sign * (term_hi, term_lo), sign being 1 or -1; with a rest, (hi, lo, rest)"""
    cdef Py_ssize_t m = hi.shape[0], i
    cdef bint many = has_parts(rest), more = has_parts(term_rest)
    cdef int term_extra = <int>term_rest.shape[0] if more else 0
    with nogil:
        for i in range(m):
            if many:
                add_terms_to_parts(&hi[i, 0], &lo[i, 0], rest, &term_hi[i, 0], &term_lo[i, 0],
                                   term_rest, term_extra, sign, i, m)
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
