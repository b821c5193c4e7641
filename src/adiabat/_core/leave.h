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
 * all of which but the last are there long before: a relay.
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
    double *v, *tau; /* the reflections: LEAVE_MOST numbers, and one, for each column */
    relay blocks;
} departure;

/* Where a block begins: the first is that of the first row that goes. */
static ptrdiff_t leave_top(const departure *d, ptrdiff_t block)
{
    ptrdiff_t top = (d->gone[0] / LEAVE_BLOCK + block) * LEAVE_BLOCK;
    return top < d->size ? top : d->size;
}

/* Take w of a block's rows out of L, and the rows that go. */
static void leave_begin(const departure *d, ptrdiff_t top, ptrdiff_t end, double *w)
{
    for (ptrdiff_t c = 0; c < d->k; c++) {
        ptrdiff_t g = d->gone[c];
        if (g < top || g >= end)
            continue;
        for (ptrdiff_t j = 0; j < g; j++)
            d->L[j * d->cap + g] = 0.0;
        d->L[g * d->cap + g] = 1.0;
    }
    for (ptrdiff_t c = 0; c < d->k; c++) {
        ptrdiff_t g = d->gone[c], first = g < top ? top : g + 1;
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
static void leave_z(const departure *d, int leaving, ptrdiff_t j, ptrdiff_t end, double *w)
{
    for (; j < end; j++) {
        const double *v = d->v + j * leaving;
        double t = d->z[j];
        for (int c = 0; c < leaving; c++)
            t += v[c] * w[c];
        t *= d->tau[j];
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

/* By whoever joins in; LEAVING rows leave, those beyond k being none. */
#define DEFINE_LEAVE(LEAVING, AT_ONCE)                                                          \
DEFINE_ROWS(reflect_some_##LEAVING, LEAVING, AT_ONCE)                                           \
DEFINE_ROWS(reflect_rest_##LEAVING, LEAVING, 1)                                                 \
FOR_EACH_MACHINE                                                                                \
static void leave_##LEAVING(departure *d)                                                       \
{                                                                                               \
    enum { N = LEAVE_BLOCK };                                                                   \
    double w[LEAVING * N] LINED, triangle[N * N] LINED;                                         \
    ptrdiff_t cap = d->cap, first = d->gone[0], block;                                          \
    ptrdiff_t blocks = (d->size + N - 1) / N - first / N;                                       \
    while ((block = relay_take(&d->blocks)) <= blocks) {                                        \
        ptrdiff_t top = leave_top(d, block), end = leave_top(d, block + 1);                     \
        /* whole lines: below the last row is room, and w = 0 */                                \
        ptrdiff_t rows = (end - top + LEAVE_LINE - 1) / LEAVE_LINE * LEAVE_LINE;                \
        memset(w, 0, sizeof(w));                                                                \
        if (block < blocks)                                                                     \
            leave_begin(d, top, end, w);                                                        \
        else                                                                                    \
            for (ptrdiff_t c = 0; c < d->k; c++) {                                              \
                w[c] = d->z[d->gone[c]];                                                        \
                d->z[d->gone[c]] = 0.0;                                                         \
            }                                                                                   \
        for (ptrdiff_t known = 0, from = first; known < block;) {                               \
            known = relay_wait(&d->blocks, known);                                              \
            ptrdiff_t to = leave_top(d, known);                                                 \
            double *l = d->L + from * cap + top;                                                \
            const double *v = d->v + from * LEAVING, *tau = d->tau + from;                      \
            for (ptrdiff_t j = 0; j < to - from; j += LEAVE_LINE) {                             \
                AHEAD(tau + j); /* all at once from the core that wrote them */                 \
                for (int c = 0; c < LEAVING; c++)                                               \
                    AHEAD(v + j * LEAVING + c * LEAVE_LINE);                                    \
            }                                                                                   \
            if (block == blocks) {                                                              \
                leave_z(d, LEAVING, from, to, w);                                               \
            } else {                                                                            \
                ptrdiff_t i = reflect_some_##LEAVING(0, rows, to - from, l, cap, w, v, tau);    \
                reflect_rest_##LEAVING(i, rows, to - from, l, cap, w, v, tau);                  \
            }                                                                                   \
            from = to;                                                                          \
        }                                                                                       \
        /* the block's own triangle, a column at a time; what is above the diagonal stays 0 */  \
        memset(triangle, 0, sizeof(triangle));                                                  \
        for (ptrdiff_t j = first > top ? first - top : 0; j < end - top; j++) {                 \
            double *own = triangle + j * N, *kept = d->L + (top + j) * cap + top, diagonal;     \
            double *v = d->v + (top + j) * LEAVING, *tau = d->tau + top + j;                    \
            size_t bytes = (size_t) (end - top - j) * sizeof(double);                           \
            memcpy(own + j, kept + j, bytes);                                                   \
            *tau = reflector(LEAVING, own[j], w + j, v, &diagonal);                             \
            own[j] = 0.0;                                                                       \
            reflect_rest_##LEAVING(j / LANES * LANES, rows, 1, own, 0, w, v, tau);              \
            own[j] = diagonal;                                                                  \
            memcpy(kept + j, own + j, bytes);                                                   \
        }                                                                                       \
        relay_pass(&d->blocks, block);                                                          \
    }                                                                                           \
}

DEFINE_LEAVE(1, 4)
DEFINE_LEAVE(2, 4)
DEFINE_LEAVE(4, 4)
DEFINE_LEAVE(8, 2)

static void leave(departure *d) { OF_SIZE(leave, d->k)(d); }

#endif
