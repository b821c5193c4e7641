/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A few rows leave a triangle L at once: reflections of the columns that stay against the few that
 * go, W, so that [L, W] Q = [L_new, 0] (see factor.pyx).
 *
 * The reflection of one column takes (l, w) of a row to
 *
 *     t = tau (l + v'w),     l = t - l,     w = w - t v
 *
 * A block of rows goes through all columns to its left, its w in registers, and then finds the
 * reflections of its own columns: so L is read and written once, however many rows leave. Rotations
 * would go through L once for each of them. A block needs the reflections that those above it found,
 * all of which but the last are there long before: a relay. Many leave eight by eight, each eight a
 * block or more behind the last.
 *
 * Nothing moves: where a row was, L has a row and a column of the identity.
 */
#ifndef ADIABAT_LEAVE_H
#define ADIABAT_LEAVE_H

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "relay.h"
#include "wide.h"

enum {
    LEAVE_MOST = 8,    /* rows that leave together */
    LEAVE_GROUPS = 4,  /* groups of them under way at a time, and hands at work, at most */
    LEAVE_BLOCK = 32,  /* rows of a block */
    LEAVE_LINE = 8,    /* numbers in a line of the cache */
    LEAVE_AHEAD = 16   /* columns that are fetched ahead */
};

/* Rows gone[0 .. k), ascending, leave L (size, size), column j at L + j * cap, and z, which is a row
 * more of it. Blocks begin at lines of the cache if L and its columns do; z is the last block. */
typedef struct {
    double *L, *z;
    const long long *gone;
    ptrdiff_t k, size, cap;
    double *room; /* LEAVE_GROUPS * (LEAVE_MOST + 1) * size */
    relay_count next, done[LEAVE_GROUPS]; /* blocks of all groups, one after the other */
} departure;

/* Rows that leave together; the last ones first. */
typedef struct {
    const long long *gone;
    ptrdiff_t k, top, blocks; /* where its blocks begin, and how many there are before z */
    ptrdiff_t before;         /* blocks of the groups before it */
    double *v, *tau; /* its reflections: LEAVE_MOST numbers, and one, for each column */
    relay_count *done;
} leave_group;

static void leave_begin(departure *d)
{
    relay_set(&d->next, 0);
    for (int g = 0; g < LEAVE_GROUPS; g++)
        relay_set(&d->done[g], 0);
}

static ptrdiff_t leave_groups(const departure *d) { return (d->k + LEAVE_MOST - 1) / LEAVE_MOST; }

/* The g-th group, after the blocks of others; none, if k is 0. What is left over goes first.
 *
 * It takes the place of one that is done. Of a group that is not, somebody holds a block, and the
 * groups after it wait for its z: there are no more of them than hands. */
static leave_group leave_group_at(departure *d, ptrdiff_t g, ptrdiff_t before)
{
    leave_group own = {0};
    ptrdiff_t groups = leave_groups(d), first = (groups - 1 - g) * LEAVE_MOST;
    if (g >= groups)
        return own;
    own.gone = d->gone + first;
    own.k = g > 0 ? LEAVE_MOST : d->k - first;
    own.top = own.gone[0] / LEAVE_BLOCK * LEAVE_BLOCK;
    own.blocks = (d->size - own.top + LEAVE_BLOCK - 1) / LEAVE_BLOCK;
    own.before = before;
    own.v = d->room + g % LEAVE_GROUPS * (LEAVE_MOST + 1) * d->size;
    own.tau = own.v + LEAVE_MOST * d->size;
    own.done = &d->done[g % LEAVE_GROUPS];
    return own;
}

/* Where a block begins. */
static ptrdiff_t leave_top(const departure *d, const leave_group *own, ptrdiff_t block)
{
    ptrdiff_t top = own->top + block * LEAVE_BLOCK;
    return top < d->size ? top : d->size;
}

/* Take w of a block's rows out of L, and the rows that go. */
static void leave_take(const departure *d, const leave_group *own, ptrdiff_t top, ptrdiff_t end,
                       double *w)
{
    for (ptrdiff_t c = 0; c < own->k; c++) {
        ptrdiff_t g = own->gone[c];
        if (g < top || g >= end)
            continue;
        for (ptrdiff_t j = 0; j < g; j++)
            d->L[j * d->cap + g] = 0.0;
        d->L[g * d->cap + g] = 1.0;
    }
    for (ptrdiff_t c = 0; c < own->k; c++) {
        ptrdiff_t g = own->gone[c], first = g < top ? top : g + 1;
        if (first >= end)
            break;
        size_t bytes = (size_t) (end - first) * sizeof(double);
        memcpy(w + c * LEAVE_BLOCK + first - top, d->L + g * d->cap + first, bytes);
        memset(d->L + g * d->cap + first, 0, bytes);
    }
}

/* The reflection that takes (l, w) of its own row to (r, 0), r > 0, and w to 0; returns tau. */
IN_PLACE double reflector(int leaving, double l, double *w, double *v, double *r)
{
    double square = 0.0;
    for (int c = 0; c < leaving; c++)
        square += w[c * LEAVE_BLOCK] * w[c * LEAVE_BLOCK];
    double norm = sqrt(l * l + square), sum = l + norm;
    for (int c = 0; c < leaving; c++) {
        v[c] = w[c * LEAVE_BLOCK] / sum;
        w[c * LEAVE_BLOCK] = 0.0;
    }
    *r = norm;
    return sum / norm;
}

/* z through the reflections of columns from j to end. */
static void leave_z(const departure *d, const leave_group *own, int leaving, ptrdiff_t j,
                    ptrdiff_t end, double *w)
{
    for (; j < end; j++) {
        const double *v = own->v + j * leaving;
        double t = d->z[j];
        for (int c = 0; c < leaving; c++)
            t += v[c] * w[c];
        t *= own->tau[j];
        d->z[j] = t - d->z[j];
        for (int c = 0; c < leaving; c++)
            w[c] -= v[c] * t;
    }
}

/* Rows from `first` on, LANES * AT_ONCE at a time, as many as there are before `rows`, through the
 * reflections of columns, the first of which is at l; returns the first row that is left. */
#define DEFINE_ROWS(NAME, LEAVING, AT_ONCE)                                                     \
IN_PLACE ptrdiff_t NAME(ptrdiff_t first, ptrdiff_t rows, ptrdiff_t columns, double *l,          \
                        ptrdiff_t cap, double *w, const double *v, const double *tau)           \
{                                                                                               \
    ptrdiff_t i = first;                                                                        \
    for (; i + LANES * AT_ONCE <= rows; i += LANES * AT_ONCE) {                                 \
        eight own[AT_ONCE][LEAVING];                                                            \
        for (int a = 0; a < AT_ONCE; a++)                                                       \
            for (int c = 0; c < LEAVING; c++)                                                   \
                own[a][c] = *(const eight *) (w + c * LEAVE_BLOCK + i + LANES * a);             \
        for (ptrdiff_t j = 0; j < columns; j++) {                                               \
            const double *part = v + j * LEAVING;                                               \
            for (int a = 0; a < AT_ONCE; a++) {                                                 \
                double *place = l + j * cap + i + LANES * a;                                    \
                AHEAD(place + LEAVE_AHEAD * cap);                                               \
                eight x = *(const eight *) place;                                               \
                eight t = x + part[0] * own[a][0];                                              \
                if (LEAVING > 1) { /* two sums, so that an addition waits for fewer */          \
                    eight other = part[1 % LEAVING] * own[a][1 % LEAVING];                      \
                    for (int c = 2; c < LEAVING; c++) {                                         \
                        if (c % 2)                                                              \
                            other += part[c] * own[a][c];                                       \
                        else                                                                    \
                            t += part[c] * own[a][c];                                           \
                    }                                                                           \
                    t += other;                                                                 \
                }                                                                               \
                t *= tau[j];                                                                    \
                *(eight *) place = t - x;                                                       \
                for (int c = 0; c < LEAVING; c++)                                               \
                    own[a][c] -= part[c] * t;                                                   \
            }                                                                                   \
        }                                                                                       \
        for (int a = 0; a < AT_ONCE; a++)                                                       \
            for (int c = 0; c < LEAVING; c++)                                                   \
                *(eight *) (w + c * LEAVE_BLOCK + i + LANES * a) = own[a][c];                   \
    }                                                                                           \
    return i;                                                                                   \
}

/* A block of a group; LEAVING rows leave, those beyond k being none. */
#define DEFINE_LEAVE(LEAVING, AT_ONCE)                                                          \
DEFINE_ROWS(reflect_some_##LEAVING, LEAVING, AT_ONCE)                                           \
DEFINE_ROWS(reflect_rest_##LEAVING, LEAVING, 1)                                                 \
FOR_EACH_MACHINE                                                                                \
static void leave_##LEAVING(departure *d, const leave_group *own, ptrdiff_t block)              \
{                                                                                               \
    enum { N = LEAVE_BLOCK };                                                                   \
    double w[LEAVING * N] LINED, triangle[N * N] LINED;                                         \
    ptrdiff_t cap = d->cap, first = own->gone[0];                                               \
    ptrdiff_t top = leave_top(d, own, block), end = leave_top(d, own, block + 1);               \
    /* whole lines: below the last row is room, and w = 0 */                                    \
    ptrdiff_t rows = (end - top + LEAVE_LINE - 1) / LEAVE_LINE * LEAVE_LINE;                    \
    memset(w, 0, sizeof(w));                                                                    \
    if (block < own->blocks)                                                                    \
        leave_take(d, own, top, end, w);                                                        \
    else                                                                                        \
        for (ptrdiff_t c = 0; c < own->k; c++) {                                                \
            w[c] = d->z[own->gone[c]];                                                          \
            d->z[own->gone[c]] = 0.0;                                                           \
        }                                                                                       \
    for (ptrdiff_t known = 0, from = first; known < block;) {                                   \
        known = relay_wait(own->done, own->before + known) - own->before;                       \
        ptrdiff_t to = leave_top(d, own, known);                                                \
        double *l = d->L + from * cap + top;                                                    \
        const double *v = own->v + from * LEAVING, *tau = own->tau + from;                      \
        for (ptrdiff_t j = 0; j < to - from; j += LEAVE_LINE) {                                 \
            AHEAD(tau + j); /* all at once from the core that wrote them */                     \
            for (int c = 0; c < LEAVING; c++)                                                   \
                AHEAD(v + j * LEAVING + c * LEAVE_LINE);                                        \
        }                                                                                       \
        if (block == own->blocks) {                                                             \
            leave_z(d, own, LEAVING, from, to, w);                                              \
        } else {                                                                                \
            ptrdiff_t i = reflect_some_##LEAVING(0, rows, to - from, l, cap, w, v, tau);        \
            reflect_rest_##LEAVING(i, rows, to - from, l, cap, w, v, tau);                      \
        }                                                                                       \
        from = to;                                                                              \
    }                                                                                           \
    /* the block's own triangle, a column at a time; what is above the diagonal stays 0 */      \
    memset(triangle, 0, sizeof(triangle));                                                      \
    for (ptrdiff_t j = first > top ? first - top : 0; j < end - top; j++) {                     \
        double *column = triangle + j * N, *kept = d->L + (top + j) * cap + top, diagonal;      \
        double *v = own->v + (top + j) * LEAVING, *tau = own->tau + top + j;                    \
        size_t bytes = (size_t) (end - top - j) * sizeof(double);                               \
        memcpy(column + j, kept + j, bytes);                                                    \
        *tau = reflector(LEAVING, column[j], w + j, v, &diagonal);                              \
        column[j] = 0.0;                                                                        \
        reflect_rest_##LEAVING(j / LANES * LANES, rows, 1, column, 0, w, v, tau);               \
        column[j] = diagonal;                                                                   \
        memcpy(kept + j, column + j, bytes);                                                    \
    }                                                                                           \
    relay_set(own->done, own->before + block + 1);                                              \
}

DEFINE_LEAVE(1, 4)
DEFINE_LEAVE(2, 4)
DEFINE_LEAVE(4, 4)
DEFINE_LEAVE(8, 2)

/* A block of a group, once the last group is done with its rows. */
static void leave_block(departure *d, const leave_group *last, const leave_group *own,
                        ptrdiff_t block)
{
    ptrdiff_t same = last ? block + (own->top - last->top) / LEAVE_BLOCK : -1;
    if (same >= 0)
        relay_wait(last->done, last->before + same);
    OF_SIZE(leave, own->k)(d, own, block);
}

/* Block by block, each by whoever is free. */
static void leave_by_blocks(departure *d)
{
    leave_group last = {0}, own = leave_group_at(d, 0, 0);
    for (ptrdiff_t g = 0;;) {
        ptrdiff_t block = relay_take(&d->next) - own.before;
        while (own.k > 0 && block > own.blocks) {
            last = own;
            own = leave_group_at(d, ++g, last.before + last.blocks + 1);
            block -= last.blocks + 1;
        }
        if (own.k == 0)
            return;
        leave_block(d, g > 0 ? &last : NULL, &own, block);
    }
}

/* Group by group: one behind the other, nobody waits within his own. */
static void leave_by_groups(departure *d)
{
    leave_group last = {0}, own = leave_group_at(d, 0, 0);
    for (ptrdiff_t g = 0, next; (next = relay_take(&d->next)) < leave_groups(d);) {
        while (g < next) {
            last = own;
            own = leave_group_at(d, ++g, last.before + last.blocks + 1);
        }
        for (ptrdiff_t block = 0; block <= own.blocks; block++)
            leave_block(d, g > 0 ? &last : NULL, &own, block);
    }
}

/* By whoever joins in. */
static void leave(departure *d)
{
    if (leave_groups(d) < LEAVE_GROUPS)
        leave_by_blocks(d);
    else
        leave_by_groups(d);
}

#endif
