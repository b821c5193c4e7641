/* SPDX-License-Identifier: BSD-3-Clause
 *
 * x = L^-1 x for a few x at once, reading L once for all of them.
 *
 * A single x takes as long as it takes to read L; BLAS, which for several packs L into another
 * shape first, twice that and more. Here up to eight go together: the triangle of a block of columns
 * with the x side by side in one register, the rows below with a register for each x.
 */
#ifndef ADIABAT_FORWARD_H
#define ADIABAT_FORWARD_H

#include <stddef.h>

#include "wide.h"

enum {
    FORWARD_MOST = 8,   /* x that go together */
    FORWARD_BLOCK = 32  /* columns taken together */
};

/* Rows first .. first + 8 * AT_ONCE of L less what `columns` columns say; x[j * 8 + c] is the c-th x
 * in column j. */
#define DEFINE_BELOW(NAME, TOGETHER, AT_ONCE)                                                   \
IN_PLACE ptrdiff_t NAME(ptrdiff_t first, ptrdiff_t n, ptrdiff_t columns, const double *L,       \
                        ptrdiff_t cap, const double *x, double *w, ptrdiff_t line)              \
{                                                                                               \
    ptrdiff_t i = first;                                                                        \
    for (; i + LANES * AT_ONCE <= n; i += LANES * AT_ONCE) {                                    \
        eight sum[AT_ONCE][TOGETHER];                                                           \
        for (int a = 0; a < AT_ONCE; a++)                                                       \
            for (int c = 0; c < TOGETHER; c++)                                                  \
                sum[a][c] = *(const eight *) (w + c * line + i + LANES * a);                    \
        for (ptrdiff_t j = 0; j < columns; j++)                                                 \
            for (int a = 0; a < AT_ONCE; a++) {                                                 \
                eight l = *(const eight *) (L + j * cap + i + LANES * a);                       \
                for (int c = 0; c < TOGETHER; c++)                                              \
                    sum[a][c] -= l * x[j * FORWARD_MOST + c];                                   \
            }                                                                                   \
        for (int a = 0; a < AT_ONCE; a++)                                                       \
            for (int c = 0; c < TOGETHER; c++)                                                  \
                *(eight *) (w + c * line + i + LANES * a) = sum[a][c];                          \
    }                                                                                           \
    return i;                                                                                   \
}

/* The n rows of L, all x in w: the c-th at w + c * line. */
#define DEFINE_FORWARD(TOGETHER)                                                                \
DEFINE_BELOW(below_some_##TOGETHER, TOGETHER, 2)                                                \
DEFINE_BELOW(below_rest_##TOGETHER, TOGETHER, 1)                                                \
FOR_EACH_MACHINE                                                                                \
static void forward_##TOGETHER(ptrdiff_t n, const double *L, ptrdiff_t cap, double *w,          \
                               ptrdiff_t line)                                                  \
{                                                                                               \
    double x[FORWARD_BLOCK * FORWARD_MOST] = {0};                                               \
    for (ptrdiff_t p = 0; p < n; p += FORWARD_BLOCK) {                                          \
        const double *own = L + p * (cap + 1);                                                  \
        ptrdiff_t columns = n - p < FORWARD_BLOCK ? n - p : FORWARD_BLOCK;                      \
        for (ptrdiff_t j = 0; j < columns; j++)                                                 \
            for (int c = 0; c < TOGETHER; c++)                                                  \
                x[j * FORWARD_MOST + c] = w[c * line + p + j];                                  \
        for (ptrdiff_t j = 0; j < columns; j++) {                                               \
            for (int c = 0; c < FORWARD_MOST; c++)                                              \
                x[j * FORWARD_MOST + c] /= own[j * cap + j];                                    \
            for (ptrdiff_t i = j + 1; i < columns; i++)                                         \
                for (int c = 0; c < FORWARD_MOST; c++)                                          \
                    x[i * FORWARD_MOST + c] -= own[j * cap + i] * x[j * FORWARD_MOST + c];      \
        }                                                                                       \
        for (ptrdiff_t j = 0; j < columns; j++)                                                 \
            for (int c = 0; c < TOGETHER; c++)                                                  \
                w[c * line + p + j] = x[j * FORWARD_MOST + c];                                  \
        const double *under = L + p * cap;                                                      \
        ptrdiff_t i = below_some_##TOGETHER(p + columns, n, columns, under, cap, x, w, line);   \
        i = below_rest_##TOGETHER(i, n, columns, under, cap, x, w, line);                       \
        for (; i < n; i++)                                                                      \
            for (ptrdiff_t j = 0; j < columns; j++)                                             \
                for (int c = 0; c < TOGETHER; c++)                                              \
                    w[c * line + i] -= under[j * cap + i] * x[j * FORWARD_MOST + c];            \
    }                                                                                           \
}

DEFINE_FORWARD(2)
DEFINE_FORWARD(4)
DEFINE_FORWARD(8)

/* The same for k x, at most FORWARD_MOST; w has room for the next power of two. */
static void forward_few(ptrdiff_t k, ptrdiff_t n, const double *L, ptrdiff_t cap, double *w,
                        ptrdiff_t line)
{
    if (k <= 2)
        forward_2(n, L, cap, w, line);
    else if (k <= 4)
        forward_4(n, L, cap, w, line);
    else
        forward_8(n, L, cap, w, line);
}

#endif
