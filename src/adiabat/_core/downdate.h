/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Rows are removed from a triangle L: reflections of the columns that stay against those that go, W,
 * so that [L, W] Q = [L_new, 0] (see factor.pyx).
 *
 * Nothing moves: where a row was, L has a row and a column of the identity.
 */
#ifndef ADIABAT_DOWNDATE_H
#define ADIABAT_DOWNDATE_H

#include <stddef.h>

#include "wavefront.h"

enum {
    DOWNDATE_MOST = 8,    /* rows removed together: a group */
    DOWNDATE_GROUPS = 4,  /* groups under way at a time, and threads at work, at most */
    DOWNDATE_BLOCK = 32,  /* rows of a block */
    DOWNDATE_LINE = 8,    /* numbers in a cache line */
    DOWNDATE_FEW = 4,     /* rows that go one by one, if no more than ... */
    DOWNDATE_SMALL = 320, /* ... so many follow the first: too few to share */
    DOWNDATE_KEPT = DOWNDATE_MOST + 4 /* numbers kept of the reflection of a column */
};

/* Rows removed[0 .. k), ascending, of L (size, size), column j at L + j * cap, and of z, which is a
 * further row of it. Blocks begin at cache lines if L and its columns do; z is the last block. */
typedef struct {
    double *L, *z;
    const long long *removed;
    ptrdiff_t k, size, cap;
    double *room; /* DOWNDATE_GROUPS * DOWNDATE_KEPT * (size, rounded up to whole blocks) */
    wavefront blocks; /* of all groups, one after the other */
    atomic_word done[DOWNDATE_GROUPS];
} downdate;

#endif
