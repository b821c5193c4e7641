/* SPDX-License-Identifier: BSD-3-Clause
 *
 * x = L^-1 x for up to eight x at once, and x = L^-T x for one, shared by threads.
 *
 * It takes as long as it takes to read L, so L is read once for all x, and each thread reads its
 * part. BLAS, which for several x packs L into another shape first, takes twice that and more, and
 * its single substitution is one thread's. A block of x needs those before it (forward: above it),
 * all of which but the last are there long before: a relay.
 *
 * L is lower triangular, column j at L + j * cap.
 */
#ifndef ADIABAT_SUBSTITUTE_H
#define ADIABAT_SUBSTITUTE_H

#include <stddef.h>
#include <string.h>

#include "relay.h"
#include "wide.h"

enum {
    SUBSTITUTE_MOST = 8,   /* x that go together */
    SUBSTITUTE_EIGHTS = 8,
    SUBSTITUTE_BLOCK = 64, /* rows of x in a block */
    SUBSTITUTE_TILE = 16,  /* columns that stay in the cache while a block's rows take their turns */
    SUBSTITUTE_STEP = 8    /* rows solved by themselves */
};

typedef struct {
    const double *L;
    double *x; /* the c-th x at x + c * line */
    ptrdiff_t first, n, cap, line; /* rows from `first` to n */
    ptrdiff_t k; /* of x, at most SUBSTITUTE_MOST, with room for the next power of two */
    relay blocks;
} substitution;

/* own[i] -= l[i, :columns] x[:columns] for rows i from `first` on, LANES * AT_ONCE at a time, as many
 * as there are before `rows`; returns the first that is left. The c-th of own is at own[c * BLOCK]. */
#define DEFINE_LESS(NAME, TOGETHER, AT_ONCE)                                                    \
IN_PLACE ptrdiff_t NAME(ptrdiff_t first, ptrdiff_t rows, ptrdiff_t columns, const double *l,    \
                        ptrdiff_t cap, const double *x, ptrdiff_t line, double *own)            \
{                                                                                               \
    ptrdiff_t i = first;                                                                        \
    for (; i + LANES * AT_ONCE <= rows; i += LANES * AT_ONCE) {                                 \
        eight sum[AT_ONCE][TOGETHER];                                                           \
        for (int a = 0; a < AT_ONCE; a++)                                                       \
            for (int c = 0; c < TOGETHER; c++)                                                  \
                sum[a][c] = *(const eight *) (own + c * SUBSTITUTE_BLOCK + i + LANES * a);      \
        for (ptrdiff_t j = 0; j < columns; j++)                                                 \
            for (int a = 0; a < AT_ONCE; a++) {                                                 \
                const double *place = l + j * cap + i + LANES * a;                              \
                AHEAD(place + SUBSTITUTE_TILE * cap);                                           \
                eight value = *(const eight *) place;                                           \
                for (int c = 0; c < TOGETHER; c++)                                              \
                    sum[a][c] -= value * x[c * line + j];                                       \
            }                                                                                   \
        for (int a = 0; a < AT_ONCE; a++)                                                       \
            for (int c = 0; c < TOGETHER; c++)                                                  \
                *(eight *) (own + c * SUBSTITUTE_BLOCK + i + LANES * a) = sum[a][c];            \
    }                                                                                           \
    return i;                                                                                   \
}

/* Forward substitution of TOGETHER x, by whoever joins in: blocks from the top. A block is worked on
 * in `own`, and x written once: its first and last lines of the cache are those of its neighbours,
 * on which others are at work. */
#define DEFINE_FORWARD(TOGETHER, AT_ONCE)                                                       \
DEFINE_LESS(less_some_##TOGETHER, TOGETHER, AT_ONCE)                                            \
DEFINE_LESS(less_rest_##TOGETHER, TOGETHER, 1)                                                  \
IN_PLACE void less_##TOGETHER(ptrdiff_t i, ptrdiff_t rows, ptrdiff_t columns, const double *l,  \
                              ptrdiff_t cap, const double *x, ptrdiff_t line, double *own)      \
{                                                                                               \
    i = less_some_##TOGETHER(i, rows, columns, l, cap, x, line, own);                           \
    i = less_rest_##TOGETHER(i, rows, columns, l, cap, x, line, own);                           \
    for (; i < rows; i++)                                                                       \
        for (ptrdiff_t j = 0; j < columns; j++)                                                 \
            for (int c = 0; c < TOGETHER; c++)                                                  \
                own[c * SUBSTITUTE_BLOCK + i] -= l[j * cap + i] * x[c * line + j];              \
}                                                                                               \
FOR_EACH_MACHINE                                                                                \
static void forward_##TOGETHER(substitution *s)                                                 \
{                                                                                               \
    ptrdiff_t cap = s->cap, line = s->line, block;                                              \
    enum { OWN = TOGETHER * SUBSTITUTE_BLOCK };                                                 \
    ptrdiff_t groups = TOGETHER < 8 ? 1 : (s->k + 7) / 8, others = TOGETHER * line;             \
    double all[OWN * (TOGETHER == 8 ? SUBSTITUTE_EIGHTS : 1)], *x = s->x;                       \
    while ((block = relay_take(&s->blocks.next)) * SUBSTITUTE_BLOCK < s->n - s->first) {             \
        ptrdiff_t top = s->first + block * SUBSTITUTE_BLOCK, from = s->first;                   \
        ptrdiff_t rows = s->n - top < SUBSTITUTE_BLOCK ? s->n - top : SUBSTITUTE_BLOCK;         \
        const double *l = s->L + top;                                                           \
        for (ptrdiff_t c = 0; c < TOGETHER * groups; c++)                                       \
            for (ptrdiff_t i = 0; i < rows; i++)                                                \
                all[c * SUBSTITUTE_BLOCK + i] = x[c * line + top + i];                          \
        for (ptrdiff_t known = 0; known < block;) {                                             \
            known = relay_wait(&s->blocks.done, known);                                              \
            for (int c = 0; c < TOGETHER; c++)                                                  \
                for (ptrdiff_t j = from; j < s->first + known * SUBSTITUTE_BLOCK; j += 8)       \
                    AHEAD(x + c * line + j); /* all at once from the core that wrote them */    \
            for (; from < s->first + known * SUBSTITUTE_BLOCK; from += SUBSTITUTE_TILE)         \
                for (ptrdiff_t g = 0; g < groups; g++)                                          \
                    less_##TOGETHER(0, rows, SUBSTITUTE_TILE, l + from * cap, cap,              \
                                    x + g * others + from, line, all + g * OWN);                \
        }                                                                                       \
        for (ptrdiff_t g = 0; g < groups; g++)                                                  \
        for (ptrdiff_t p = 0; p < rows; p += SUBSTITUTE_STEP) {                                 \
            const double *corner = l + (top + p) * cap + p;                                     \
            double *own = all + g * OWN, inverse[SUBSTITUTE_STEP];                              \
            double y[SUBSTITUTE_STEP][TOGETHER];                                                \
            ptrdiff_t k = rows - p < SUBSTITUTE_STEP ? rows - p : SUBSTITUTE_STEP;              \
            for (ptrdiff_t j = 0; j < k; j++)                                                   \
                inverse[j] = 1.0 / corner[j * cap + j]; /* ahead: nothing waits for these */    \
            for (ptrdiff_t j = 0; j < k; j++)                                                   \
                for (int c = 0; c < TOGETHER; c++)                                              \
                    y[j][c] = own[c * SUBSTITUTE_BLOCK + p + j];                                \
            for (ptrdiff_t j = 0; j < k; j++) {                                                 \
                for (int c = 0; c < TOGETHER; c++)                                              \
                    y[j][c] *= inverse[j];                                                      \
                for (ptrdiff_t i = j + 1; i < k; i++)                                           \
                    for (int c = 0; c < TOGETHER; c++)                                          \
                        y[i][c] -= corner[j * cap + i] * y[j][c];                               \
            }                                                                                   \
            for (ptrdiff_t j = 0; j < k; j++)                                                   \
                for (int c = 0; c < TOGETHER; c++)                                              \
                    own[c * SUBSTITUTE_BLOCK + p + j] = y[j][c];                                \
            less_##TOGETHER(p + k, rows, k, l + (top + p) * cap, cap, own + p,                  \
                            SUBSTITUTE_BLOCK, own);                                             \
        }                                                                                       \
        for (ptrdiff_t c = 0; c < TOGETHER * groups; c++)                                       \
            for (ptrdiff_t i = 0; i < rows; i++)                                                \
                x[c * line + top + i] = all[c * SUBSTITUTE_BLOCK + i];                          \
        relay_pass(&s->blocks, block);                                                          \
    }                                                                                           \
}

DEFINE_FORWARD(1, 8)
DEFINE_FORWARD(2, 4)
DEFINE_FORWARD(4, 4)
DEFINE_FORWARD(8, 2)

/* sum[j] += L[from:to, j]' x[from:to], lane by lane, for the columns of a block, at most STEP at a
 * time; what is left over of the rows goes to the first lane. */
IN_PLACE void add_below(ptrdiff_t columns, ptrdiff_t from, ptrdiff_t to, const double *l,
                        ptrdiff_t cap, const double *x, eight *sum)
{
    for (ptrdiff_t first = 0; first < columns; first += SUBSTITUTE_STEP) {
        const double *column = l + first * cap;
        ptrdiff_t k = columns - first < SUBSTITUTE_STEP ? columns - first : SUBSTITUTE_STEP;
        ptrdiff_t i = from;
        if (k == SUBSTITUTE_STEP) {
            eight own[SUBSTITUTE_STEP];
            for (int c = 0; c < SUBSTITUTE_STEP; c++)
                own[c] = sum[first + c];
            for (; i + LANES <= to; i += LANES) {
                eight y = *(const eight *) (x + i);
                for (int c = 0; c < SUBSTITUTE_STEP; c++)
                    own[c] += y * *(const eight *) (column + c * cap + i);
            }
            for (int c = 0; c < SUBSTITUTE_STEP; c++)
                sum[first + c] = own[c];
        }
        for (; i < to; i++)
            for (ptrdiff_t c = 0; c < k; c++)
                *(double *) &sum[first + c] += column[c * cap + i] * x[i];
    }
}

IN_PLACE double over_lanes(const eight *sum)
{
    const double *of = (const double *) sum;
    double total = 0.0;
    for (int l = 0; l < LANES; l++)
        total += of[l];
    return total;
}

/* Backward substitution, by whoever joins in: blocks from the bottom. A block takes up those below it
 * one by one, however many are there, so that it always adds in the same order. */
FOR_EACH_MACHINE
static void substitute_backward(substitution *s)
{
    enum { N = SUBSTITUTE_BLOCK };
    ptrdiff_t n = s->n, cap = s->cap, block;
    double *x = s->x;
    while ((block = relay_take(&s->blocks.next)) * N < n) {
        ptrdiff_t end = n - block * N, top = end > N ? end - N : 0;
        const double *L = s->L + top * cap;
        eight sum[N];
        memset(sum, 0, sizeof(sum));
        for (ptrdiff_t known = 0, taken = 0; taken < block;) {
            known = relay_wait(&s->blocks.done, known);
            for (; taken < known; taken++)
                add_below(end - top, n - (taken + 1) * N, n - taken * N, L, cap, x, sum);
        }
        for (ptrdiff_t last = end - top; last > 0; last -= SUBSTITUTE_STEP) {
            ptrdiff_t p = last > SUBSTITUTE_STEP ? last - SUBSTITUTE_STEP : 0;
            double inverse[SUBSTITUTE_STEP], y[SUBSTITUTE_STEP];
            for (ptrdiff_t j = p; j < last; j++)
                inverse[j - p] = 1.0 / L[j * cap + top + j]; /* ahead: nothing waits for these */
            add_below(last - p, top + last, end, L + p * cap, cap, x, sum + p);
            for (ptrdiff_t j = p; j < last; j++)
                y[j - p] = x[top + j] - over_lanes(&sum[j]);
            for (ptrdiff_t j = last - 1; j >= p; j--) {
                double value = y[j - p] * inverse[j - p];
                x[top + j] = value;
                for (ptrdiff_t i = p; i < j; i++)
                    y[i - p] -= L[i * cap + top + j] * value;
            }
        }
        relay_pass(&s->blocks, block);
    }
}

static void substitute_forward(substitution *s) { OF_SIZE(forward, s->k)(s); }

#endif
