/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What sparse_rows.pyx asks of dense rows.
 */
#ifndef ADIABAT_SPARSE_ROWS_SIMD_H
#define ADIABAT_SPARSE_ROWS_SIMD_H

#include "simd.h"

/* How many of n numbers are not zero. */
static ptrdiff_t count_nonzeros(ptrdiff_t n, const double *x)
{
    ptrdiff_t count = 0;
    for (ptrdiff_t i = 0; i < n; i++)
        count += x[i] != 0.0;
    return count;
}

#endif
