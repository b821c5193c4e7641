/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Rows of runs of columns times coefficients. BLAS would be called for each row of each panel: to begin
 * and to end a product of 128 terms takes as long as the product.
 */
#ifndef ADIABAT_PANELS_SIMD_H
#define ADIABAT_PANELS_SIMD_H

#include "simd.h"

/* Rows at a time, which share the loads of coefficients, and sums of each side by side: an addition
 * waits for the last. Together they are half of the registers that AVX2 has. */
enum { PANEL_ROWS = 4, PANEL_SUMS = 2 };

ALWAYS_INLINE void multiply_rows(const double *const *top, const ptrdiff_t *first,
                                 const ptrdiff_t *length, ptrdiff_t n_runs, ptrdiff_t width,
                                 const long long *rows, ptrdiff_t n_rows, ptrdiff_t n_ahead,
                                 const double *coef, double *out)
{
    /* out[i] for n_rows rows, PANEL_ROWS at most; the n_ahead that follow are asked for */
    vec sum[PANEL_ROWS][PANEL_SUMS];
    for (int i = 0; i < n_rows; i++)
        for (int s = 0; s < PANEL_SUMS; s++)
            sum[i][s] = vec_zero();
    for (ptrdiff_t k = 0; k < n_runs; k++) {
        const double *own = coef + first[k], *row[PANEL_ROWS];
        for (int i = 0; i < n_rows; i++)
            row[i] = top[k] + rows[i] * width;
        for (ptrdiff_t i = 0; i < n_ahead; i++)
            prefetch_doubles(top[k] + rows[n_rows + i] * width, length[k]);
        ptrdiff_t j = 0;
        for (; j + PANEL_SUMS * VEC <= length[k]; j += PANEL_SUMS * VEC)
            for (int s = 0; s < PANEL_SUMS; s++) {
                vec one = vec_load(own + j + s * VEC);
                for (int i = 0; i < n_rows; i++)
                    sum[i][s] = vec_muladd(vec_load(row[i] + j + s * VEC), one, sum[i][s]);
            }
        for (int s = 0; j < length[k]; j += VEC, s++) {
            vec one = vec_load(own + j);
            for (int i = 0; i < n_rows; i++)
                sum[i][s] = vec_muladd(vec_load(row[i] + j), one, sum[i][s]);
        }
    }
    for (int i = 0; i < n_rows; i++)
        out[i] = vec_sum(vec_add(sum[i][0], sum[i][1]));
}

/* A run of columns of one panel: `length` of them, a multiple of 8, in lines of `width`. */
static void multiply_runs(const double *const *top, const ptrdiff_t *first, const ptrdiff_t *length,
                          ptrdiff_t n_runs, ptrdiff_t width, const long long *rows,
                          ptrdiff_t n_rows, const double *coef, double *out)
{
    /* out[i] = sum over the runs of top[k][rows[i]] @ coef[first[k]: ] */
    ptrdiff_t i = 0;
    for (; i + PANEL_ROWS <= n_rows; i += PANEL_ROWS) {
        ptrdiff_t left = n_rows - i - PANEL_ROWS;
        multiply_rows(top, first, length, n_runs, width, rows + i, PANEL_ROWS,
                      left < PANEL_ROWS ? left : PANEL_ROWS, coef, out + i);
    }
    for (; i < n_rows; i++)
        multiply_rows(top, first, length, n_runs, width, rows + i, 1, 0, coef, out + i);
}

#endif
