/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Removal of rows from a triangle by reflections, see downdate.h.
 *
 * The reflection of column j takes (l, w) of a row to
 *
 *     t = tau (l + v'w),     l = t - l,     w = w - t v
 *
 * FOUR columns go together. All their v'w are taken of the same w, so that no sum waits for another,
 * and t is put right afterwards: t_a -= tau_a sum_b (v_a'v_b) t_b, over the b before a.
 *
 * A block of rows goes through all columns to its left and then finds the reflections of its own
 * columns: so L is read and written once, however many rows are removed. Rotations would go through
 * L once for each of them. A block needs the reflections that those above it found, all of which but
 * the last are there long before: a wavefront. Many rows go eight by eight, each eight a block or
 * more behind the last.
 */
#ifndef ADIABAT_DOWNDATE_SIMD_H
#define ADIABAT_DOWNDATE_SIMD_H

#include <string.h>

#include "downdate.h"
#include "simd.h"

enum {
    DOWNDATE_FOUR = 4,
    DOWNDATE_AHEAD = 16, /* columns fetched ahead */
    DOWNDATE_TALL = REGISTERS / 8 /* vectors of rows: FOUR t of each are in registers */
};

/* Rows that are removed together; the last ones first. */
typedef struct {
    const long long *removed;
    ptrdiff_t k, top, blocks; /* where its blocks begin, and how many there are before z */
    ptrdiff_t before;         /* blocks of the groups before it */
    double *v;      /* of its reflections: as many numbers for each column as go in a group */
    double *scales; /* tau of four columns, then the tau_a v_a'v_b; four for each column */
    atomic_word *done;
} downdate_group;

static ptrdiff_t downdate_groups(const downdate *d)
{
    return (d->k + DOWNDATE_MOST - 1) / DOWNDATE_MOST;
}

static ptrdiff_t downdate_room(ptrdiff_t size)
{
    return (size + DOWNDATE_BLOCK - 1) / DOWNDATE_BLOCK * DOWNDATE_BLOCK;
}

/* The g-th group, after the blocks of others; none, if k is 0. What is left over goes first.
 *
 * It takes the place of one that is done. A group that is not has a block in the hands of a thread,
 * and the groups after it wait for its z: there are no more of them than threads. */
static downdate_group downdate_group_at(downdate *d, ptrdiff_t g, ptrdiff_t before)
{
    downdate_group own = {0};
    ptrdiff_t groups = downdate_groups(d), first = (groups - 1 - g) * DOWNDATE_MOST;
    ptrdiff_t columns = downdate_room(d->size);
    if (g >= groups)
        return own;
    own.removed = d->removed + first;
    own.k = g > 0 ? DOWNDATE_MOST : d->k - first;
    own.top = own.removed[0] / DOWNDATE_BLOCK * DOWNDATE_BLOCK;
    own.blocks = (d->size - own.top + DOWNDATE_BLOCK - 1) / DOWNDATE_BLOCK;
    own.before = before;
    own.v = d->room + g % DOWNDATE_GROUPS * DOWNDATE_KEPT * columns;
    own.scales = own.v + DOWNDATE_MOST * columns;
    own.done = &d->done[g % DOWNDATE_GROUPS];
    return own;
}

/* Where a block begins. */
static ptrdiff_t downdate_top(const downdate *d, const downdate_group *own, ptrdiff_t block)
{
    ptrdiff_t top = own->top + block * DOWNDATE_BLOCK;
    return top < d->size ? top : d->size;
}

/* tau of column j. */
ALWAYS_INLINE double *downdate_tau(const downdate_group *own, ptrdiff_t j)
{
    return own->scales + j / DOWNDATE_FOUR * DOWNDATE_FOUR * 4 + j % DOWNDATE_FOUR;
}

/* Take w of a block's rows out of L, and the rows that go. */
static void downdate_take(const downdate *d, const downdate_group *own, ptrdiff_t top,
                          ptrdiff_t end, double *w)
{
    for (ptrdiff_t c = 0; c < own->k; c++) {
        ptrdiff_t g = own->removed[c];
        if (g < top || g >= end)
            continue;
        for (ptrdiff_t j = 0; j < g; j++)
            d->L[j * d->cap + g] = 0.0;
        d->L[g * d->cap + g] = 1.0;
    }
    for (ptrdiff_t c = 0; c < own->k; c++) {
        ptrdiff_t g = own->removed[c], first = g < top ? top : g + 1;
        if (first >= end)
            break;
        size_t bytes = (size_t) (end - first) * sizeof(double);
        memcpy(w + c * DOWNDATE_BLOCK + first - top, d->L + g * d->cap + first, bytes);
        memset(d->L + g * d->cap + first, 0, bytes);
    }
}

/* The reflection that takes (l, w) of its own row to (r, 0), r > 0, and w to 0; returns tau. */
ALWAYS_INLINE double reflector(const int going, double l, double *w, double *v, double *r)
{
    double square = 0.0;
    for (int c = 0; c < going; c++)
        square += w[c * DOWNDATE_BLOCK] * w[c * DOWNDATE_BLOCK];
    double norm = sqrt(l * l + square), sum = l + norm;
    for (int c = 0; c < going; c++) {
        v[c] = w[c * DOWNDATE_BLOCK] / sum;
        w[c * DOWNDATE_BLOCK] = 0.0;
    }
    *r = norm;
    return sum / norm;
}

/* z through the reflections of columns from j to end. */
ALWAYS_INLINE void reflect_z(const int going, const downdate *d, const downdate_group *own,
                             ptrdiff_t j, ptrdiff_t end, double *w)
{
    for (; j < end; j++) {
        const double *v = own->v + j * going;
        double t = d->z[j];
        for (int c = 0; c < going; c++)
            t += v[c] * w[c];
        t *= *downdate_tau(own, j);
        d->z[j] = t - d->z[j];
        for (int c = 0; c < going; c++)
            w[c] -= v[c] * t;
    }
}

/* Rows from `first` to `rows`, whole cache lines of them, through the reflection of one column. */
ALWAYS_INLINE void reflect_one(const int going, ptrdiff_t first, ptrdiff_t rows, double *l,
                               double *w, const double *v, double tau)
{
    for (ptrdiff_t i = first; i < rows; i += VEC) {
        vec x = vec_load(l + i), t = x, other = vec_zero();
        for (int c = 0; c < going; c++) { /* two sums, so that an addition waits for fewer */
            vec own = vec_load(w + c * DOWNDATE_BLOCK + i);
            if (c % 2)
                other = vec_muladd(vec_setall(v[c]), own, other);
            else
                t = vec_muladd(vec_setall(v[c]), own, t);
        }
        t = vec_mul(vec_add(t, other), vec_setall(tau));
        vec_store(l + i, vec_sub(t, x));
        for (int c = 0; c < going; c++) {
            double *own = w + c * DOWNDATE_BLOCK + i;
            vec_store(own, vec_nmuladd(vec_setall(v[c]), t, vec_load(own)));
        }
    }
}

/* Rows from `first` to `rows`, `tall` vectors of them at a time, through the reflections of columns,
 * of which there is a multiple of FOUR; the first is at l. */
ALWAYS_INLINE void reflect_tall(const int going, const int tall, ptrdiff_t first, ptrdiff_t rows,
                                ptrdiff_t columns, double *l, ptrdiff_t cap, double *w,
                                const double *v, const double *scales)
{
    enum { FOUR = DOWNDATE_FOUR, TALL = DOWNDATE_TALL };
    for (ptrdiff_t j = 0; j < columns; j += FOUR) {
        const double *part = v + j * going, *tau = scales + j * 4;
        for (ptrdiff_t i = first; i < rows; i += VEC * tall) {
            double *place = l + j * cap + i, *own = w + i;
            vec t[FOUR][TALL];
            for (int b = 0; b < FOUR; b++) {
                for (int a = 0; a < tall; a++) {
                    if (VEC * a % DOWNDATE_LINE == 0)
                        PREFETCH(place + (b + DOWNDATE_AHEAD) * cap + VEC * a);
                    t[b][a] = vec_load(place + b * cap + VEC * a);
                }
            }
            for (int c = 0; c < going; c++) {
                vec x[TALL];
                for (int a = 0; a < tall; a++)
                    x[a] = vec_load(own + c * DOWNDATE_BLOCK + VEC * a);
                for (int b = 0; b < FOUR; b++) {
                    vec factor = vec_setall(part[b * going + c]);
                    for (int a = 0; a < tall; a++)
                        t[b][a] = vec_muladd(factor, x[a], t[b][a]);
                }
            }
            const double *cross = tau + FOUR;
            for (int b = 0; b < FOUR; b++) {
                vec scale = vec_setall(tau[b]);
                for (int a = 0; a < tall; a++)
                    t[b][a] = vec_mul(scale, t[b][a]);
                for (int e = 0; e < b; e++) {
                    vec factor = vec_setall(*cross++);
                    for (int a = 0; a < tall; a++)
                        t[b][a] = vec_nmuladd(factor, t[e][a], t[b][a]);
                }
            }
            for (int b = 0; b < FOUR; b++)
                for (int a = 0; a < tall; a++) {
                    double *entry = place + b * cap + VEC * a;
                    vec_store(entry, vec_sub(t[b][a], vec_load(entry)));
                }
            for (int c = 0; c < going; c++) {
                vec x[TALL];
                for (int a = 0; a < tall; a++)
                    x[a] = vec_load(own + c * DOWNDATE_BLOCK + VEC * a);
                for (int b = 0; b < FOUR; b++) {
                    vec factor = vec_setall(part[b * going + c]);
                    for (int a = 0; a < tall; a++)
                        x[a] = vec_nmuladd(factor, t[b][a], x[a]);
                }
                for (int a = 0; a < tall; a++)
                    vec_store(own + c * DOWNDATE_BLOCK + VEC * a, x[a]);
            }
        }
    }
}

/* The same for `rows` rows, whole cache lines of them. */
ALWAYS_INLINE void reflect(const int going, ptrdiff_t rows, ptrdiff_t columns, double *l,
                           ptrdiff_t cap, double *w, const double *v, const double *scales)
{
    enum { TALL = DOWNDATE_TALL, LEFT = VEC * TALL > DOWNDATE_LINE ? DOWNDATE_LINE / VEC : TALL };
    ptrdiff_t whole = rows - rows % (VEC * TALL);
    reflect_tall(going, TALL, 0, whole, columns, l, cap, w, v, scales);
    if (whole < rows)
        reflect_tall(going, LEFT, whole, rows, columns, l, cap, w, v, scales);
}

/* tau_a v_a'v_b, b < a, of each four of a block's columns from `first` on. */
ALWAYS_INLINE void couple(const int going, const downdate_group *own, ptrdiff_t first,
                          ptrdiff_t end)
{
    for (ptrdiff_t j = first; j + DOWNDATE_FOUR <= end; j += DOWNDATE_FOUR) {
        const double *v = own->v + j * going, *tau = downdate_tau(own, j);
        double *cross = downdate_tau(own, j) + DOWNDATE_FOUR;
        for (int a = 0; a < DOWNDATE_FOUR; a++)
            for (int b = 0; b < a; b++) {
                double sum = 0.0;
                for (int c = 0; c < going; c++)
                    sum += v[a * going + c] * v[b * going + c];
                *cross++ = tau[a] * sum;
            }
    }
}

/* A block of a group; `going` rows are removed, those beyond k being none. */
ALWAYS_INLINE void downdate_some(const int going, downdate *d, const downdate_group *own,
                                 ptrdiff_t block)
{
    enum { N = DOWNDATE_BLOCK };
    CACHE_ALIGNED double w[DOWNDATE_MOST * N];
    CACHE_ALIGNED double triangle[N * N];
    ptrdiff_t cap = d->cap, first = own->removed[0] / DOWNDATE_FOUR * DOWNDATE_FOUR;
    ptrdiff_t top = downdate_top(d, own, block), end = downdate_top(d, own, block + 1);
    /* whole lines: below the last row is room, and w = 0 */
    ptrdiff_t rows = (end - top + DOWNDATE_LINE - 1) / DOWNDATE_LINE * DOWNDATE_LINE;
    memset(w, 0, sizeof(w));
    if (block < own->blocks)
        downdate_take(d, own, top, end, w);
    else
        for (ptrdiff_t c = 0; c < own->k; c++) {
            w[c] = d->z[own->removed[c]];
            d->z[own->removed[c]] = 0.0;
        }
    for (ptrdiff_t known = 0, from = first; known < block;) {
        known = wavefront_wait(own->done, own->before + known) - own->before;
        ptrdiff_t to = downdate_top(d, own, known);
        double *l = d->L + from * cap + top;
        const double *v = own->v + from * going, *scales = downdate_tau(own, from);
        for (ptrdiff_t j = 0; j < to - from; j += DOWNDATE_LINE) /* from the core that wrote them */
            for (int c = 0; c < going + 4; c++)
                PREFETCH(c < going ? v + j * going + c * DOWNDATE_LINE
                                   : scales + j * 4 + (c - going) * DOWNDATE_LINE);
        if (block == own->blocks)
            reflect_z(going, d, own, from, to, w);
        else
            reflect(going, rows, to - from, l, cap, w, v, scales);
        from = to;
    }
    /* the block's own triangle, a column at a time; what is above the diagonal stays 0 */
    memset(triangle, 0, sizeof(triangle));
    ptrdiff_t start = first > top ? first - top : 0;
    for (ptrdiff_t j = start; j < end - top; j++) {
        double *column = triangle + j * N, *kept = d->L + (top + j) * cap + top, diagonal;
        double *v = own->v + (top + j) * going, *tau = downdate_tau(own, top + j);
        size_t bytes = (size_t) (end - top - j) * sizeof(double);
        memcpy(column + j, kept + j, bytes);
        *tau = reflector(going, column[j], w + j, v, &diagonal);
        column[j] = 0.0;
        reflect_one(going, j / DOWNDATE_LINE * DOWNDATE_LINE, rows, column, w, v, *tau);
        column[j] = diagonal;
        memcpy(kept + j, column + j, bytes);
    }
    couple(going, own, top + start, end);
    word_store(own->done, own->before + block + 1);
}

static void downdate_1(downdate *d, const downdate_group *own, ptrdiff_t block)
{
    downdate_some(1, d, own, block);
}

static void downdate_2(downdate *d, const downdate_group *own, ptrdiff_t block)
{
    downdate_some(2, d, own, block);
}

static void downdate_4(downdate *d, const downdate_group *own, ptrdiff_t block)
{
    downdate_some(4, d, own, block);
}

static void downdate_8(downdate *d, const downdate_group *own, ptrdiff_t block)
{
    downdate_some(8, d, own, block);
}

/* A block of a group, once the last group is done with its rows. */
static void downdate_block(downdate *d, const downdate_group *last, const downdate_group *own,
                           ptrdiff_t block)
{
    ptrdiff_t same = last ? block + (own->top - last->top) / DOWNDATE_BLOCK : -1;
    if (same >= 0)
        wavefront_wait(last->done, last->before + same);
    if (own->k <= 1)
        downdate_1(d, own, block);
    else if (own->k <= 2)
        downdate_2(d, own, block);
    else if (own->k <= 4)
        downdate_4(d, own, block);
    else
        downdate_8(d, own, block);
}

/* Block by block, each by the next free thread. */
static void downdate_by_blocks(downdate *d)
{
    downdate_group last = {0}, own = downdate_group_at(d, 0, 0);
    for (ptrdiff_t g = 0;;) {
        ptrdiff_t block = wavefront_take(&d->next) - own.before;
        while (own.k > 0 && block > own.blocks) {
            last = own;
            own = downdate_group_at(d, ++g, last.before + last.blocks + 1);
            block -= last.blocks + 1;
        }
        if (own.k == 0)
            return;
        downdate_block(d, g > 0 ? &last : NULL, &own, block);
    }
}

/* Group by group: one behind the other, no thread waits within its own. */
static void downdate_by_groups(downdate *d)
{
    downdate_group last = {0}, own = downdate_group_at(d, 0, 0);
    for (ptrdiff_t g = 0, next; (next = wavefront_take(&d->next)) < downdate_groups(d);) {
        while (g < next) {
            last = own;
            own = downdate_group_at(d, ++g, last.before + last.blocks + 1);
        }
        for (ptrdiff_t block = 0; block <= own.blocks; block++)
            downdate_block(d, g > 0 ? &last : NULL, &own, block);
    }
}

/* One thread's part; any number of them may call it. */
static void downdate_join(downdate *d)
{
    if (downdate_groups(d) < DOWNDATE_GROUPS)
        downdate_by_blocks(d);
    else
        downdate_by_groups(d);
}

#endif
