/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Rows of matrices to twice the working precision, see twofold.pyx.
 *
 * The error of a product is found by halves, or by one fused multiply-add where there is one: it is
 * exact, so both give the same bits.
 */
#ifndef ADIABAT_TWOFOLD_SIMD_H
#define ADIABAT_TWOFOLD_SIMD_H

#include "simd.h"
#include "twofold.h"

enum { TWOFOLD_LANES = VEC * REGISTERS / 8 }; /* partial sums of a product, and rests, in registers */

/* a * b - p, exactly, p being a * b rounded; the halves of b are at hand */
ALWAYS_INLINE double error_of_product(double p, double a, double b, double b_upper, double b_lower)
{
#if FUSED
    (void) b_upper, (void) b_lower;
    return muladd(a, b, -p);
#else
    (void) b;
    return product_error(p, upper_half(a), a - upper_half(a), b_upper, b_lower);
#endif
}

/* sum + rest += (a + a_rest) * x */
ALWAYS_INLINE void gather_product(double a, double a_rest, double x, double x_upper,
                                  double x_lower, double *sum, double *rest)
{
    double p = a * x;
    gather(sum, rest, p, error_of_product(p, a, x, x_upper, x_lower) + a_rest * x);
}

/* (hi, lo)[j] += (a + a_rest) * z[j], j in [start, stop); the halves of z are at hand */
static void twofold_add_row(double *restrict hi, double *restrict lo, const double *z,
                            const double *upper, const double *lower, double a, double a_rest,
                            ptrdiff_t start, ptrdiff_t stop)
{
    for (ptrdiff_t j = start; j < stop; j++) {
        double p = a * z[j];
        double e = error_of_product(p, a, z[j], upper[j], lower[j]) + a_rest * z[j];
        accumulate(&hi[j], &lo[j], p, e);
    }
}

/* (hi, lo)[j] += sign * (term, rest)[j], j in [start, stop); no rest is NULL */
static void twofold_add_terms(double *restrict hi, double *restrict lo, const double *term,
                              const double *rest, double sign, ptrdiff_t start, ptrdiff_t stop)
{
    if (rest == NULL)
        for (ptrdiff_t j = start; j < stop; j++)
            accumulate(&hi[j], &lo[j], sign * term[j], 0.0);
    else
        for (ptrdiff_t j = start; j < stop; j++)
            accumulate(&hi[j], &lo[j], sign * term[j], sign * rest[j]);
}

/* Row i of y += M x, and the part of the rows below that its mirror image has. */
static void twofold_multiply_row(const double *hi, const double *lo, const double *x,
                                 const double *x_upper, const double *x_lower, ptrdiff_t i,
                                 ptrdiff_t m, double *restrict y, double *restrict y_rest)
{
    enum { LANES = TWOFOLD_LANES };
    double sums[LANES] = {0}, rests[LANES] = {0};
    double own = x[i], own_upper = x_upper[i], own_lower = x_lower[i];
    ptrdiff_t j = i, whole = i + (m - i) / LANES * LANES;
    for (ptrdiff_t k = i + 1; k < m; k++)
        gather_product(hi[k], lo[k], own, own_upper, own_lower, &y[k], &y_rest[k]);
    for (; j < whole; j += LANES) /* the diagonal belongs to the row itself */
        for (int k = 0; k < LANES; k++)
            gather_product(hi[j + k], lo[j + k], x[j + k], x_upper[j + k], x_lower[j + k],
                           &sums[k], &rests[k]);
    for (int k = 0; k < m - whole; k++)
        gather_product(hi[whole + k], lo[whole + k], x[whole + k], x_upper[whole + k],
                       x_lower[whole + k], &sums[k], &rests[k]);
    for (int k = 0; k < LANES; k++)
        gather(&y[i], &y_rest[i], sums[k], rests[k]);
}

/* out[j] = (hi, lo)[j] + (q, q_rest) * (h, h_rest)[j], j in [start, stop) */
static void twofold_centre_row(double *restrict out, const double *hi, const double *lo,
                               const double *h, const double *h_upper, const double *h_lower,
                               const double *h_rest, double q, double q_rest, ptrdiff_t start,
                               ptrdiff_t stop)
{
    for (ptrdiff_t j = start; j < stop; j++) {
        double s = hi[j], rest = lo[j], p = q * h[j];
        double e = error_of_product(p, q, h[j], h_upper[j], h_lower[j]);
        accumulate(&s, &rest, p, e + q_rest * h[j] + q * h_rest[j]);
        out[j] = s + rest;
    }
}

#endif
