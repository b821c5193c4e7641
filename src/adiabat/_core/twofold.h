/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Arithmetic to twice the working precision.
 *
 *     two_sum    s + e = a + b exactly        (Knuth)
 *     two_prod   p + e = a * b exactly        (Dekker)
 *
 * No compiler may fuse a product with a sum here: a fused split is no split.
 */
#ifndef ADIABAT_TWOFOLD_H
#define ADIABAT_TWOFOLD_H

/* The leading 26 bits of a: 2^27 + 1 splits it (Veltkamp). */
static inline double upper_half(double a)
{
    double c = 134217729.0 * a;
    return c - (c - a);
}

/* (hi, lo) += p + e */
static inline void accumulate(double *hi, double *lo, double p, double e)
{
    double s = *hi + p, b = s - *hi;
    double rest = (*hi - (s - b)) + (p - b);
    rest = rest + (*lo + e);
    *hi = s + rest;
    *lo = rest - (*hi - s);
}

/* a + b, and in e what it rounds away */
static inline double two_sum(double a, double b, double *e)
{
    double s = a + b, back = s - a;
    *e = (a - (s - back)) + (b - back);
    return s;
}

/* a * b - p, exactly, from the halves of a and b */
static inline double product_error(double p, double a_upper, double a_lower, double b_upper,
                                   double b_lower)
{
    return ((a_upper * b_upper - p) + a_upper * b_lower + a_lower * b_upper) + a_lower * b_lower;
}

/* sum + rest += p + e, where the rest need not be small */
static inline void gather(double *sum, double *rest, double p, double e)
{
    double s = *sum + p, b = s - *sum;
    *rest = *rest + (((*sum - (s - b)) + (p - b)) + e);
    *sum = s;
}

#endif
