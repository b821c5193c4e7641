/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Small whole numbers into and out of single precision, see whole.pyx.
 */
#ifndef ADIABAT_WHOLE_SIMD_H
#define ADIABAT_WHOLE_SIMD_H

#include "simd.h"

enum { WHOLE_MOST = 255 };

/* z = x and squares += x * x; strange[0] is set if x is not small and whole */
static void whole_convert(ptrdiff_t n, const double *x, float *z, int *squares, int *strange)
{
    int other = 0;
    for (ptrdiff_t j = 0; j < n; j++) {
        double inside = x[j] >= -WHOLE_MOST && x[j] <= WHOLE_MOST ? x[j] : 0.5;
        int k = (int) inside;
        other |= k != inside;
        z[j] = (float) k;
        squares[j] += k * k;
    }
    *strange |= other;
}

/* total[j] += part[j], j in [start, stop) */
static void whole_add(double *total, const float *part, ptrdiff_t start, ptrdiff_t stop)
{
    for (ptrdiff_t j = start; j < stop; j++)
        total[j] += part[j];
}

#endif
