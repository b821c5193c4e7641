/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Rows of runs of columns times coefficients. BLAS would be called for each row of each panel: to begin
 * and to end a product of 128 terms takes as long as the product.
 */
#ifndef ADIABAT_PANELS_SIMD_H
#define ADIABAT_PANELS_SIMD_H

#include "simd.h"

enum { PANEL_SUMS = 4 }; /* side by side: an addition waits for the last */

/* A run of columns of one panel: `length` of them, a multiple of 8, in lines of `width`. */
static void multiply_runs(const double *const *top, const ptrdiff_t *first, const ptrdiff_t *length,
                          ptrdiff_t n_runs, ptrdiff_t width, const long long *rows,
                          ptrdiff_t n_rows, const double *coef, double *out)
{
    /* out[i] = sum over the runs of top[k][rows[i]] @ coef[first[k]: ] */
    for (ptrdiff_t i = 0; i < n_rows; i++) {
        vec sum[PANEL_SUMS];
        for (int s = 0; s < PANEL_SUMS; s++)
            sum[s] = vec_zero();
        for (ptrdiff_t k = 0; k < n_runs; k++) {
            const double *row = top[k] + rows[i] * width, *own = coef + first[k];
            if (i + 1 < n_rows)
                prefetch_doubles(top[k] + rows[i + 1] * width, length[k]);
            ptrdiff_t j = 0;
            for (; j + PANEL_SUMS * VEC <= length[k]; j += PANEL_SUMS * VEC)
                for (int s = 0; s < PANEL_SUMS; s++)
                    sum[s] = vec_muladd(vec_load(row + j + s * VEC), vec_load(own + j + s * VEC),
                                        sum[s]);
            for (int s = 0; j < length[k]; j += VEC, s++)
                sum[s] = vec_muladd(vec_load(row + j), vec_load(own + j), sum[s]);
        }
        out[i] = vec_sum(vec_add(vec_add(sum[0], sum[1]), vec_add(sum[2], sum[3])));
    }
}

#endif
