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
 * It takes the place of one that is done. Of a group that is not, some thread is at work on a block,
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

/* Rows from `first` to `rows`, `tall` vectors of them at a time, through the reflections of columns,
 * of which there is a multiple of FOUR; the first is at l. Fewer than `tall` vectors are left over. */
ALWAYS_INLINE void reflect_tall(const int going, const int tall, ptrdiff_t first, ptrdiff_t rows,
                                ptrdiff_t columns, double *l, ptrdiff_t cap, double *w,
                                const double *v, const double *scales)
{
    enum { FOUR = DOWNDATE_FOUR, TALL = DOWNDATE_TALL };
    for (ptrdiff_t j = 0; j < columns; j += FOUR) {
        const double *part = v + j * going, *tau = scales + j * 4;
        for (ptrdiff_t i = first; i + VEC * tall <= rows; i += VEC * tall) {
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

/* Functions of their own, so that their loops have all registers. */
#define DEFINE_REFLECT(GOING)                                                                     \
NEVER_INLINE void reflect_##GOING(ptrdiff_t first, ptrdiff_t rows, ptrdiff_t columns, double *l,  \
                                  ptrdiff_t cap, double *w, const double *v,                      \
                                  const double *scales)                                           \
{                                                                                                 \
    reflect_tall(GOING, DOWNDATE_TALL, first, rows, columns, l, cap, w, v, scales);               \
}                                                                                                 \
NEVER_INLINE void reflect_short_##GOING(ptrdiff_t first, ptrdiff_t rows, ptrdiff_t columns,       \
                                        double *l, ptrdiff_t cap, double *w, const double *v,     \
                                        const double *scales)                                     \
{                                                                                                 \
    reflect_tall(GOING, 1, first, rows, columns, l, cap, w, v, scales);                           \
}

DEFINE_REFLECT(1)
DEFINE_REFLECT(2)
DEFINE_REFLECT(4)
DEFINE_REFLECT(8)

#define REFLECT(NAME, GOING, ...)                                                                 \
    ((GOING) == 1 ? NAME##_1 : (GOING) == 2 ? NAME##_2 : (GOING) == 4 ? NAME##_4 : NAME##_8)      \
    (__VA_ARGS__)

/* All rows from `first` on, whole vectors of them. */
ALWAYS_INLINE void reflect(const int going, ptrdiff_t first, ptrdiff_t rows, ptrdiff_t columns,
                           double *l, ptrdiff_t cap, double *w, const double *v,
                           const double *scales)
{
    ptrdiff_t left = first + (rows - first) / (VEC * DOWNDATE_TALL) * (VEC * DOWNDATE_TALL);
    if (first < left)
        REFLECT(reflect, going, first, left, columns, l, cap, w, v, scales);
    if (left < rows)
        REFLECT(reflect_short, going, left, rows, columns, l, cap, w, v, scales);
}

/* x'y of as many numbers as rows go: in vectors, or few enough one by one */
ALWAYS_INLINE double short_dot(const int going, const double *x, const double *y)
{
    double total = 0.0;
    if (going < VEC) {
        for (int c = 0; c < going; c++)
            total = muladd(x[c], y[c], total);
        return total;
    }
    vec sum = vec_mul(vec_load(x), vec_load(y));
    for (int c = VEC; c < going; c += VEC)
        sum = vec_muladd(vec_load(x + c), vec_load(y + c), sum);
    return vec_sum(sum);
}

/* y -= a x, of as many numbers as rows go */
ALWAYS_INLINE void short_subtract(const int going, double a, const double *x, double *y)
{
    if (going < VEC)
        for (int c = 0; c < going; c++)
            y[c] = muladd(-a, x[c], y[c]);
    else
        for (int c = 0; c < going; c += VEC)
            vec_store(y + c, vec_nmuladd(vec_setall(a), vec_load(x + c), vec_load(y + c)));
}

/* The reflections of q columns, at most FOUR, from their own rows: each takes (l, w) of its row to
 * (r, 0), r > 0. The first entry of l and w of these rows is at l and w; `corner` is what becomes of
 * l. w is of no use any more. */
ALWAYS_INLINE void reflectors(const int going, const int q, const double *l, ptrdiff_t cap,
                              const double *w, double *v, double *scales,
                              double (*corner)[DOWNDATE_FOUR])
{
    enum { FOUR = DOWNDATE_FOUR };
    double own[FOUR][DOWNDATE_MOST], part[FOUR][DOWNDATE_MOST], *cross = scales + FOUR;
    for (int i = 0; i < q; i++) {
        for (int a = 0; a <= i; a++)
            corner[a][i] = l[a * cap + i];
        for (int c = 0; c < going; c++)
            own[i][c] = w[c * DOWNDATE_BLOCK + i];
    }
    for (int a = 0; a < q; a++) {
        double diagonal = corner[a][a], with[FOUR];
        for (int i = a; i < q; i++)
            with[i] = short_dot(going, own[a], own[i]);
        double norm = sqrt(muladd(diagonal, diagonal, with[a]));
        double sum = diagonal + norm, tau = sum / norm, inverse = 1.0 / sum;
        for (int c = 0; c < going; c++)
            part[a][c] = own[a][c] * inverse;
        corner[a][a] = norm;
        scales[a] = tau;
        for (int i = a + 1; i < q; i++) {
            double t = tau * muladd(inverse, with[i], corner[a][i]);
            corner[a][i] = t - corner[a][i];
            short_subtract(going, t, part[a], own[i]);
        }
    }
    for (int a = 0; a < q; a++)
        for (int c = 0; c < going; c++)
            v[a * going + c] = part[a][c];
    for (int a = 1; a < q; a++)
        for (int b = 0; b < a; b++)
            *cross++ = scales[a] * short_dot(going, part[a], part[b]);
}

/* The reflections of a block's own columns from `start` on, and its triangle through them. */
ALWAYS_INLINE void downdate_triangle(const int going, const downdate *d, const downdate_group *own,
                                     ptrdiff_t top, ptrdiff_t start, ptrdiff_t end,
                                     ptrdiff_t rows, double *w)
{
    enum { FOUR = DOWNDATE_FOUR };
    ptrdiff_t cap = d->cap;
    for (ptrdiff_t j = start; j < end; j += FOUR) {
        double *l = d->L + (top + j) * cap + top, *v = own->v + (top + j) * going;
        double *scales = downdate_tau(own, top + j), corner[FOUR][FOUR];
        int q = end - j < FOUR ? (int) (end - j) : FOUR;
        if (q < FOUR) {
            reflectors(going, q, l + j, cap, w + j, v, scales, corner);
        } else {
            reflectors(going, FOUR, l + j, cap, w + j, v, scales, corner);
            /* where a vector begins with the corner's rows, they are put right below */
            reflect(going, (j + FOUR) / VEC * VEC, rows, FOUR, l, cap, w, v, scales);
        }
        for (int a = 0; a < q; a++)
            for (int i = a; i < q; i++)
                l[a * cap + j + i] = corner[a][i];
    }
}

/* A block of a group; `going` rows are removed, those beyond k being none. */
ALWAYS_INLINE void downdate_some(const int going, downdate *d, const downdate_group *own,
                                 ptrdiff_t block)
{
    CACHE_ALIGNED double w[DOWNDATE_MOST * DOWNDATE_BLOCK];
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
        known = wavefront_wait_for(&d->blocks, own->done, own->before + known) - own->before;
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
            reflect(going, 0, rows, to - from, l, cap, w, v, scales);
        from = to;
    }
    downdate_triangle(going, d, own, top, first > top ? first - top : 0, end - top, rows, w);
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
        wavefront_wait_for(&d->blocks, last->done, last->before + same);
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
        ptrdiff_t block = wavefront_take(&d->blocks) - own.before;
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
    for (ptrdiff_t g = 0, next; (next = wavefront_take(&d->blocks)) < downdate_groups(d);) {
        while (g < next) {
            last = own;
            own = downdate_group_at(d, ++g, last.before + last.blocks + 1);
        }
        for (ptrdiff_t block = 0; block <= own.blocks; block++)
            downdate_block(d, g > 0 ? &last : NULL, &own, block);
    }
}

/* One row by itself, where few follow it: column by column. The sequence of reflections is what
 * takes time, so w of the next row is found first, and the others follow as they can. */
static void downdate_single(downdate *d, ptrdiff_t g)
{
    ptrdiff_t size = d->size, cap = d->cap, end = (size + DOWNDATE_LINE - 1) / DOWNDATE_LINE;
    double *w = d->room, last = d->z[g];
    end *= DOWNDATE_LINE; /* whole lines: below the last row is room, and w = 0 */
    memset(w + size, 0, (size_t) (end - size) * sizeof(double));
    memcpy(w + g + 1, d->L + g * cap + g + 1, (size_t) (size - g - 1) * sizeof(double));
    memset(d->L + g * cap + g + 1, 0, (size_t) (size - g - 1) * sizeof(double));
    for (ptrdiff_t j = 0; j < g; j++)
        d->L[j * cap + g] = 0.0;
    d->L[g * cap + g] = 1.0;
    d->z[g] = 0.0;
    double own = g + 1 < size ? w[g + 1] : 0.0;
    for (ptrdiff_t j = g + 1; j < size; j++) {
        double *l = d->L + j * cap;
        double norm = sqrt(muladd(l[j], l[j], own * own)), sum = l[j] + norm;
        double tau = sum / norm, v = own / sum, t = tau * muladd(v, last, d->z[j]);
        d->z[j] = t - d->z[j];
        last = muladd(-v, t, last);
        l[j] = norm;
        if (j + 1 < size)
            own = muladd(-v, tau * muladd(v, w[j + 1], l[j + 1]), w[j + 1]);
        ptrdiff_t i = j + 1;
        for (; i % VEC && i < end; i++) {
            t = tau * muladd(v, w[i], l[i]);
            l[i] = t - l[i];
            w[i] = muladd(-v, t, w[i]);
        }
        for (vec factor = vec_setall(v), scale = vec_setall(tau); i < end; i += VEC) {
            vec x = vec_load(l + i), y = vec_load(w + i);
            vec step = vec_mul(scale, vec_muladd(factor, y, x));
            vec_store(l + i, vec_sub(step, x));
            vec_store(w + i, vec_nmuladd(factor, step, y));
        }
    }
}

/* One thread's part; any number of them may call it, but one where few rows follow the first. */
static void downdate_join(downdate *d)
{
    if (d->k <= DOWNDATE_FEW && d->size - d->removed[0] <= DOWNDATE_SMALL)
        for (ptrdiff_t c = d->k - 1; c >= 0; c--)
            downdate_single(d, d->removed[c]);
    else if (downdate_groups(d) < DOWNDATE_GROUPS)
        downdate_by_blocks(d);
    else
        downdate_by_groups(d);
}

#endif
