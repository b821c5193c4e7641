/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Rows of some panels times coefficients. BLAS would be called for each row of each panel: to begin
 * and to end a product of 128 terms takes as long as the product.
 */
#ifndef ADIABAT_PANELS_SIMD_H
#define ADIABAT_PANELS_SIMD_H

#include "simd.h"

enum { PANEL_SUMS = 4 }; /* side by side: an addition waits for the last */

/* out[i] = sum over the panels p of data[p][rows[i]] @ coef[p], `width` of them, a multiple of 32. */
static void multiply_panels(double *const *data, const ptrdiff_t *panels, ptrdiff_t n_panels,
                            ptrdiff_t width, const long long *rows, ptrdiff_t n_rows,
                            const double *coef, double *out)
{
    for (ptrdiff_t i = 0; i < n_rows; i++) {
        vec sum[PANEL_SUMS];
        for (int s = 0; s < PANEL_SUMS; s++)
            sum[s] = vec_zero();
        for (ptrdiff_t p = 0; p < n_panels; p++) {
            const double *row = data[panels[p]] + rows[i] * width;
            const double *own = coef + panels[p] * width;
            for (ptrdiff_t j = 0; j < width; j += PANEL_SUMS * VEC)
                for (int s = 0; s < PANEL_SUMS; s++)
                    sum[s] = vec_muladd(vec_load(row + j + s * VEC), vec_load(own + j + s * VEC),
                                        sum[s]);
        }
        out[i] = vec_sum(vec_add(vec_add(sum[0], sum[1]), vec_add(sum[2], sum[3])));
    }
}

#endif
