/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Descent by pairs (SMO), the sum of u being kept:
 *
 *     minimise  1/2 u'Ku - t'u    subject to   lo <= u <= hi,  sum u as it is
 *
 * A step takes the row that most wants to rise, and with it the row that falls with the largest
 * gain (second-order choice, Fan, Chen and Lin, 2005). It reads the kernel values of these two rows
 * alone; where they are not there, it stops and says which are wanted. Now and then the rows between
 * their bounds move together (`face.pyx`).
 *
 * r of a row may jump where u passes its kink, as with the two rows of a regression sample, which
 * are one row here. A step ends at the kink.
 */
#ifndef ADIABAT_PAIRS_H
#define ADIABAT_PAIRS_H

#include <stddef.h>

enum { PAIRS_BLOCK = 64 }; /* arrays are padded to a multiple of it, by rows that cannot move */

enum { PAIRS_DONE = -1, PAIRS_LIMIT = -2, PAIRS_PAUSE = -3 };

typedef struct {
    ptrdiff_t n;              /* rows, with the padding */
    const double *const *row; /* kernel values of each row with all of them, or NULL */
    const double *diagonal;
    const double *lo;
    const double *hi;
    const double *kink;       /* lo where there is none */
    const double *jump;       /* at least 0: how much higher r is from the kink on */
    double *u;
    double *rise;             /* r where u can rise, else infinite */
    double *fall;             /* r where u can fall, else -infinite */
    double *best;             /* of each block: scratch */
    double flat;              /* a curvature below this part of the diagonals counts as none */
    double tolerance;         /* ends where no two rows differ by more */
    double span;              /* by how much they differ */
    ptrdiff_t steps;          /* that are left */
    ptrdiff_t pause;          /* it stops once so many are left */
} pair_descent;

#endif
