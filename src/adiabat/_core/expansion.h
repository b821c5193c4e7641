/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Floating-point expansions: a number as an unevaluated sum of some parts, the largest first, each
 * at most an ulp of the one before (Priest 1991, Shewchuk 1997). So many parts hold 52 bits each.
 */
#ifndef ADIABAT_EXPANSION_H
#define ADIABAT_EXPANSION_H

#include <math.h>
#include "twofold.h"

/* e += x; what is smaller than the last part is rounded away */
static inline void expansion_add(double *e, int parts, double x)
{
    for (int k = 0; k < parts && x != 0.0; k++)
        e[k] = two_sum(e[k], x, &x);
}

/* Each part at most an ulp of the one before, and no zero before the last part that is none. */
static inline void expansion_normalise(double *e, int parts)
{
    double sum, error;
    int filled = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int k = parts - 1; k > 0; k--)
            e[k - 1] = two_sum(e[k - 1], e[k], &e[k]);
    sum = e[0];
    for (int k = 1; k < parts; k++) {
        sum = two_sum(sum, e[k], &error);
        if (error != 0.0) {
            e[filled++] = sum;
            sum = error;
        }
    }
    e[filled++] = sum;
    for (; filled < parts; filled++)
        e[filled] = 0.0;
}

/* e += sign * a * b, but for products of parts below the cutoff */
static inline void expansion_add_product(double *e, int parts, const double *a, int a_parts,
                                         const double *b, int b_parts, double sign, double cutoff)
{
    for (int i = 0; i < a_parts && a[i] != 0.0; i++) {
        double factor = sign * a[i], upper = upper_half(factor), lower = factor - upper;
        for (int j = 0; j < b_parts && b[j] != 0.0; j++) {
            double p = factor * b[j], half = upper_half(b[j]);
            if (fabs(p) < cutoff)
                break;
            expansion_add(e, parts, p);
            expansion_add(e, parts, product_error(p, upper, lower, half, b[j] - half));
        }
    }
}

#endif
