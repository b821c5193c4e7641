/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Squared distances from products, see distances.pyx.
 */
#ifndef ADIABAT_DISTANCES_SIMD_H
#define ADIABAT_DISTANCES_SIMD_H

#include "simd.h"

/* row[j] = factor * min(row[j] - a - half_b[j], 0) */
static void scale_distances(ptrdiff_t n, double *row, double a, const double *half_b,
                            double factor)
{
    for (ptrdiff_t j = 0; j < n; j++) {
        double x = row[j] - a - half_b[j];
        row[j] = factor * (x > 0.0 ? 0.0 : x);
    }
}

#endif
