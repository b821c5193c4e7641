/* SPDX-License-Identifier: BSD-3-Clause
 *
 * x = L^-1 x for up to SOLVE_MOST x at once, and x = L^-T x for one, on several threads.
 *
 * L is lower triangular, column j at L + j * cap.
 */
#ifndef ADIABAT_TRIANGULAR_SOLVE_H
#define ADIABAT_TRIANGULAR_SOLVE_H

#include <stddef.h>

#include "wavefront.h"

enum {
    SOLVE_STEP = 8,  /* x come in multiples of these: there is room for so many, if k > 4 */
    SOLVE_MOST = 64  /* x at once */
};

typedef struct {
    const double *L;
    double *x; /* the c-th x at x + c * line */
    ptrdiff_t first, n, cap, line; /* rows from `first` to n */
    ptrdiff_t k; /* of x, with room for the next power of two, or the next multiple of SOLVE_STEP */
    wavefront blocks;
} triangular_solve;

#endif
