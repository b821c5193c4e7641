/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Triangular solves with one or several right-hand sides, see triangular_solve.h.
 *
 * A solve takes as long as reading L, so L is read once for all x, and each thread reads its part.
 * BLAS packs L first if there are several x, and has one thread for a single x. A block of x needs
 * those before it (forward: above it), of which all but the last are there long before: a wavefront.
 */
#ifndef ADIABAT_TRIANGULAR_SOLVE_SIMD_H
#define ADIABAT_TRIANGULAR_SOLVE_SIMD_H

#include <string.h>

#include "simd.h"
#include "triangular_solve.h"

enum {
    SOLVE_BLOCK = 64,   /* rows of x in a block */
    SOLVE_TILE = 16,    /* columns that stay in the cache while a block's rows take their turns */
    SOLVE_CORNER = 8,   /* rows solved by themselves */
    SOLVE_LONG = 4,     /* blocks whose rows a backward solve takes up at a time */
    SOLVE_TOGETHER = REGISTERS / 4, /* x whose sums are in registers together, at most */
    SOLVE_TALL = REGISTERS / 2 * VEC < SOLVE_BLOCK ? REGISTERS / 2 : SOLVE_BLOCK / VEC /* vectors */
};

/* own[i] -= l[i, :columns] x[:columns] for rows i from `first` on, `tall` vectors at a time, as many
 * as there are before `rows`; returns the first that is left. The c-th own is at own[c * BLOCK]. */
ALWAYS_INLINE ptrdiff_t subtract_tall(const int together, const int tall, ptrdiff_t first,
                                      ptrdiff_t rows, ptrdiff_t columns, const double *l,
                                      ptrdiff_t cap, const double *x, ptrdiff_t line, double *own)
{
    ptrdiff_t i = first;
    for (; i + VEC * tall <= rows; i += VEC * tall) {
        vec sum[SOLVE_TOGETHER][SOLVE_TALL];
        for (int c = 0; c < together; c++)
            for (int a = 0; a < tall; a++)
                sum[c][a] = vec_load(own + c * SOLVE_BLOCK + i + VEC * a);
        for (ptrdiff_t j = 0; j < columns; j++) {
            const double *place = l + j * cap + i;
            vec value[SOLVE_TALL];
            for (int a = 0; a < tall; a++) {
                if (VEC * a % 8 == 0)
                    PREFETCH(place + SOLVE_TILE * cap + VEC * a);
                value[a] = vec_load(place + VEC * a);
            }
            for (int c = 0; c < together; c++) {
                vec factor = vec_setall(x[c * line + j]);
                for (int a = 0; a < tall; a++)
                    sum[c][a] = vec_nmuladd(value[a], factor, sum[c][a]);
            }
        }
        for (int c = 0; c < together; c++)
            for (int a = 0; a < tall; a++)
                vec_store(own + c * SOLVE_BLOCK + i + VEC * a, sum[c][a]);
    }
    return i;
}

/* The same for all rows from i on. */
ALWAYS_INLINE void subtract(const int together, const int tall, ptrdiff_t i, ptrdiff_t rows,
                            ptrdiff_t columns, const double *l, ptrdiff_t cap, const double *x,
                            ptrdiff_t line, double *own)
{
    i = subtract_tall(together, tall, i, rows, columns, l, cap, x, line, own);
    i = subtract_tall(together, 1, i, rows, columns, l, cap, x, line, own);
    for (; i < rows; i++)
        for (ptrdiff_t j = 0; j < columns; j++)
            for (int c = 0; c < together; c++) {
                double *sum = own + c * SOLVE_BLOCK + i;
                *sum = muladd(-l[j * cap + i], x[c * line + j], *sum);
            }
}

/* k rows of a block, at most CORNER, by themselves; their first entries are at own and l. */
ALWAYS_INLINE void solve_rows(const int together, const int k, const double *l, ptrdiff_t cap,
                              double *own)
{
    double inverse[SOLVE_CORNER], y[SOLVE_CORNER][SOLVE_TOGETHER];
    for (int j = 0; j < k; j++)
        inverse[j] = 1.0 / l[j * cap + j]; /* early: nothing waits for these */
    for (int j = 0; j < k; j++)
        for (int c = 0; c < together; c++)
            y[j][c] = own[c * SOLVE_BLOCK + j];
    for (int j = 0; j < k; j++) {
        for (int c = 0; c < together; c++)
            y[j][c] *= inverse[j];
        for (int i = j + 1; i < k; i++)
            for (int c = 0; c < together; c++)
                y[i][c] = muladd(-l[j * cap + i], y[j][c], y[i][c]);
    }
    for (int j = 0; j < k; j++)
        for (int c = 0; c < together; c++)
            own[c * SOLVE_BLOCK + j] = y[j][c];
}

/* The same for CORNER rows, a vector of x at a time: a row of y has them side by side. */
ALWAYS_INLINE void solve_vectors(const int together, const double *l, ptrdiff_t cap, double *own)
{
    enum { K = SOLVE_CORNER };
    double inverse[K];
    for (int j = 0; j < K; j++)
        inverse[j] = 1.0 / l[j * cap + j];
    for (int first = 0; first < together; first += VEC) {
        vec y[K];
        for (int j = 0; j < K; j += VEC) {
            for (int c = 0; c < VEC; c++)
                y[j + c] = vec_load(own + (first + c) * SOLVE_BLOCK + j);
            vec_transpose(y + j);
        }
        for (int j = 0; j < K; j++) {
            y[j] = vec_mul(y[j], vec_setall(inverse[j]));
            for (int i = j + 1; i < K; i++)
                y[i] = vec_nmuladd(vec_setall(l[j * cap + i]), y[j], y[i]);
        }
        for (int j = 0; j < K; j += VEC) {
            vec_transpose(y + j);
            for (int c = 0; c < VEC; c++)
                vec_store(own + (first + c) * SOLVE_BLOCK + j, y[j + c]);
        }
    }
}

/* Some rows of a block, at most CORNER, from p on, by themselves. What rows contribute to those below
 * them in the block is subtracted before (of several x: each sum is read and written once) or
 * afterwards (of few: the sums of many rows go together). The block's first entry in L is at l. */
ALWAYS_INLINE void solve_corner(const int together, const int tall, ptrdiff_t p, ptrdiff_t rows,
                                const double *l, ptrdiff_t cap, double *own)
{
    ptrdiff_t k = rows - p < SOLVE_CORNER ? rows - p : SOLVE_CORNER;
    const double *corner = l + p * cap + p;
    if (together > 2)
        subtract(together, tall, p, p + k, p, l, cap, own, SOLVE_BLOCK, own);
    if (k < SOLVE_CORNER)
        solve_rows(together, (int) k, corner, cap, own + p);
    else if (together % VEC)
        solve_rows(together, SOLVE_CORNER, corner, cap, own + p);
    else
        solve_vectors(together, corner, cap, own + p);
    if (together <= 2)
        subtract(together, tall, p + k, rows, k, l + p * cap, cap, own + p, SOLVE_BLOCK, own);
}

/* Forward solves, `together` x at a time: blocks from the top. A block is worked on in `all`, and x
 * written once: its first and last cache lines are shared with its neighbours, on which other
 * threads are at work. */
ALWAYS_INLINE void solve_groups(const int together, const int tall, triangular_solve *s,
                                double *all)
{
    ptrdiff_t cap = s->cap, line = s->line, block, own = together * SOLVE_BLOCK;
    ptrdiff_t groups = (s->k + together - 1) / together, others = together * line;
    double *x = s->x;
    while ((block = wavefront_take(&s->blocks)) * SOLVE_BLOCK < s->n - s->first) {
        ptrdiff_t top = s->first + block * SOLVE_BLOCK, from = s->first;
        ptrdiff_t rows = s->n - top < SOLVE_BLOCK ? s->n - top : SOLVE_BLOCK;
        const double *l = s->L + top;
        for (ptrdiff_t c = 0; c < together * groups; c++)
            memcpy(all + c * SOLVE_BLOCK, x + c * line + top, (size_t) rows * sizeof(double));
        for (ptrdiff_t known = 0; known < block;) {
            known = wavefront_wait(&s->blocks, known);
            ptrdiff_t to = s->first + known * SOLVE_BLOCK;
            for (int c = 0; c < together; c++)
                for (ptrdiff_t j = from; j < to; j += 8)
                    PREFETCH(x + c * line + j); /* all at once from the core that wrote them */
            for (; from < to; from += SOLVE_TILE)
                for (ptrdiff_t g = 0; g < groups; g++)
                    subtract(together, tall, 0, rows, SOLVE_TILE, l + from * cap, cap,
                             x + g * others + from, line, all + g * own);
        }
        for (ptrdiff_t p = 0; p < rows; p += SOLVE_CORNER)
            for (ptrdiff_t g = 0; g < groups; g++)
                solve_corner(together, tall, p, rows, l + top * cap, cap, all + g * own);
        for (ptrdiff_t c = 0; c < together * groups; c++)
            memcpy(x + c * line + top, all + c * SOLVE_BLOCK, (size_t) rows * sizeof(double));
        wavefront_pass(&s->blocks, block);
    }
}

/* together * tall sums, tall values of L and a factor fit into the registers. */
static void solve_forward(triangular_solve *s)
{
    CACHE_ALIGNED double all[SOLVE_MOST * SOLVE_BLOCK];
    if (s->k <= 1)
        solve_groups(1, SOLVE_TALL, s, all);
    else if (s->k <= 2)
        solve_groups(2, REGISTERS / 4, s, all);
#if REGISTERS >= 32
    else if (s->k > 4)
        solve_groups(8, 2, s, all);
#endif
    else
        solve_groups(4, REGISTERS / 8, s, all);
}

/* sum[j] += L[from:to, j]' x[from:to], lane by lane, for the columns of a block, at most CORNER at a
 * time; what is left over of the rows goes to the first lane. sum[j] has VEC numbers. */
ALWAYS_INLINE void add_below(ptrdiff_t columns, ptrdiff_t from, ptrdiff_t to, const double *l,
                             ptrdiff_t cap, const double *x, double *sum)
{
    for (ptrdiff_t first = 0; first < columns; first += SOLVE_CORNER) {
        const double *column = l + first * cap;
        double *own = sum + first * VEC;
        ptrdiff_t k = columns - first < SOLVE_CORNER ? columns - first : SOLVE_CORNER;
        ptrdiff_t i = from;
        if (k == SOLVE_CORNER) {
            vec total[SOLVE_CORNER];
            for (int c = 0; c < SOLVE_CORNER; c++)
                total[c] = vec_load(own + c * VEC);
            for (; i + 8 <= to; i += 8) { /* a cache line, and that of the columns to come */
                for (int a = 0; a < 8; a += VEC) {
                    vec y = vec_load(x + i + a);
                    for (int c = 0; c < SOLVE_CORNER; c++)
                        total[c] = vec_muladd(y, vec_load(column + c * cap + i + a), total[c]);
                }
            }
            for (int c = 0; c < SOLVE_CORNER; c++)
                vec_store(own + c * VEC, total[c]);
        }
        for (; i < to; i++)
            for (ptrdiff_t c = 0; c < k; c++)
                own[c * VEC] = muladd(column[c * cap + i], x[i], own[c * VEC]);
    }
}

/* Backward solve: blocks from the bottom. A block takes up those below it some at a time, which reads
 * longer pieces of columns, and the last ones one by one; however many are there, so that it always
 * adds in the same order. */
static void solve_backward(triangular_solve *s)
{
    enum { N = SOLVE_BLOCK };
    ptrdiff_t n = s->n, cap = s->cap, block;
    double *x = s->x;
    while ((block = wavefront_take(&s->blocks)) * N < n) {
        ptrdiff_t end = n - block * N, top = end > N ? end - N : 0;
        const double *L = s->L + top * cap;
        CACHE_ALIGNED double sum[N * VEC];
        memset(sum, 0, sizeof(sum));
        for (ptrdiff_t known = 0, taken = 0, some; taken < block; taken += some) {
            some = block - taken < SOLVE_LONG ? 1 : SOLVE_LONG;
            while (known < taken + some)
                known = wavefront_wait(&s->blocks, known);
            add_below(end - top, n - (taken + some) * N, n - taken * N, L, cap, x, sum);
        }
        for (ptrdiff_t last = end - top; last > 0; last -= SOLVE_CORNER) {
            ptrdiff_t p = last > SOLVE_CORNER ? last - SOLVE_CORNER : 0;
            double inverse[SOLVE_CORNER], y[SOLVE_CORNER];
            for (ptrdiff_t j = p; j < last; j++)
                inverse[j - p] = 1.0 / L[j * cap + top + j]; /* early: nothing waits for these */
            add_below(last - p, top + last, end, L + p * cap, cap, x, sum + p * VEC);
            for (ptrdiff_t j = p; j < last; j++)
                y[j - p] = x[top + j] - vec_sum(vec_load(sum + j * VEC));
            for (ptrdiff_t j = last - 1; j >= p; j--) {
                double value = y[j - p] * inverse[j - p];
                x[top + j] = value;
                for (ptrdiff_t i = p; i < j; i++)
                    y[i - p] = muladd(-L[i * cap + top + j], value, y[i - p]);
            }
        }
        wavefront_pass(&s->blocks, block);
    }
}

#endif
