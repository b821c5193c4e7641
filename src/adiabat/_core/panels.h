/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Rows of some panels times coefficients. BLAS would be called for each row of each panel: to begin
 * and to end a product of 128 terms takes as long as the product.
 */
#ifndef ADIABAT_PANELS_H
#define ADIABAT_PANELS_H

#include <stddef.h>

#include "wide.h"

enum { PANEL_SUMS = 4 }; /* side by side: an addition waits for the last */

/* out[i] = sum over the panels p of data[p][rows[i]] @ coef[p], `width` of them, a multiple of 32. */
FOR_EACH_MACHINE
static void rows_of_panels(double *const *data, const ptrdiff_t *panels, ptrdiff_t n_panels,
                           ptrdiff_t width, const long long *rows, ptrdiff_t n_rows,
                           const double *coef, double *out)
{
    for (ptrdiff_t i = 0; i < n_rows; i++) {
        eight sum[PANEL_SUMS];
        for (int s = 0; s < PANEL_SUMS; s++)
            sum[s] = (eight) {0};
        for (ptrdiff_t p = 0; p < n_panels; p++) {
            const double *row = data[panels[p]] + rows[i] * width;
            const double *own = coef + panels[p] * width;
            for (ptrdiff_t j = 0; j < width; j += PANEL_SUMS * LANES)
                for (int s = 0; s < PANEL_SUMS; s++)
                    sum[s] += *(const eight *) (row + j + s * LANES) *
                              *(const eight *) (own + j + s * LANES);
        }
        eight all = (sum[0] + sum[1]) + (sum[2] + sum[3]);
        const double *of = (const double *) &all;
        double total = 0.0;
        for (int l = 0; l < LANES; l++)
            total += of[l];
        out[i] = total;
    }
}

#endif
