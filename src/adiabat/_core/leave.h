/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A few rows leave a triangle L at once: reflections of the columns that stay against the few that
 * go, W, so that [L, W] Q = [L_new, 0] (see factor.pyx).
 *
 * The reflection of one column takes (l, w) of a row to
 *
 *     t = tau (l + v'w),     l = t - l,     w = w - t v
 *
 * Rows are taken eight or more at a time, and through all columns of a panel before the next: their
 * w then stay in registers and L is read and written once, however many rows leave. Rotations would
 * go through L once for each of them.
 *
 * Nothing moves: where a row was, L has a row and a column of the identity.
 */
#ifndef ADIABAT_LEAVE_H
#define ADIABAT_LEAVE_H

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "wide.h"

enum {
    LEAVE_MOST = 8,     /* rows that leave together */
    LEAVE_PANEL = 32,   /* columns taken together */
    LEAVE_CHUNK = 8     /* rows taken together */
};

/* `rows` rows, a multiple of LEAVE_CHUNK, through the reflections of `columns` columns: row i of
 * column j comes from from[j][i] and goes to to[j * line + i]. w[c * width + i] is that of the c-th
 * column that leaves, v[j * LEAVE_MOST + c] its part in column j. */
#define DEFINE_ROWS(NAME, LEAVING, AT_ONCE)                                                     \
IN_PLACE ptrdiff_t NAME(                                                                        \
    ptrdiff_t first, ptrdiff_t rows, ptrdiff_t columns, const double **from, double *to,        \
    ptrdiff_t line, double *w, ptrdiff_t width, const double *v, const double *tau)             \
{                                                                                               \
    ptrdiff_t i = first;                                                                        \
    for (; i + LANES * AT_ONCE <= rows; i += LANES * AT_ONCE) {                                 \
        eight own[AT_ONCE][LEAVING];                                                            \
        for (int a = 0; a < AT_ONCE; a++)                                                       \
            for (int c = 0; c < LEAVING; c++)                                                   \
                own[a][c] = *(const eight *) (w + c * width + i + LANES * a);                   \
        for (ptrdiff_t j = 0; j < columns; j++) {                                               \
            const double *part = v + j * LEAVE_MOST;                                            \
            for (int a = 0; a < AT_ONCE; a++) {                                                 \
                eight x = *(const eight *) (from[j] + i + LANES * a);                           \
                eight t = x + part[0] * own[a][0];                                              \
                if (LEAVING > 1) { /* two sums, so that an addition waits for fewer */          \
                    eight other = part[1] * own[a][1 % LEAVING];                                \
                    for (int c = 2; c < LEAVING; c++) {                                         \
                        if (c % 2)                                                              \
                            other += part[c] * own[a][c];                                       \
                        else                                                                    \
                            t += part[c] * own[a][c];                                           \
                    }                                                                           \
                    t += other;                                                                 \
                }                                                                               \
                t *= tau[j];                                                                    \
                *(eight *) (to + j * line + i + LANES * a) = t - x;                             \
                for (int c = 0; c < LEAVING; c++)                                               \
                    own[a][c] -= part[c] * t;                                                   \
            }                                                                                   \
        }                                                                                       \
        for (int a = 0; a < AT_ONCE; a++)                                                       \
            for (int c = 0; c < LEAVING; c++)                                                   \
                *(eight *) (w + c * width + i + LANES * a) = own[a][c];                         \
    }                                                                                           \
    return i;                                                                                   \
}

#define DEFINE_REFLECT(LEAVING, AT_ONCE)                                                        \
DEFINE_ROWS(reflect_some_##LEAVING, LEAVING, AT_ONCE)                                           \
DEFINE_ROWS(reflect_rest_##LEAVING, LEAVING, 1)                                                 \
FOR_EACH_MACHINE                                                                                \
static void reflect_##LEAVING(ptrdiff_t rows, ptrdiff_t columns, const double **from,           \
                              double *to, ptrdiff_t line, double *w, ptrdiff_t width,           \
                              const double *v, const double *tau)                               \
{                                                                                               \
    ptrdiff_t i = reflect_some_##LEAVING(0, rows, columns, from, to, line, w, width, v, tau);   \
    reflect_rest_##LEAVING(i, rows, columns, from, to, line, w, width, v, tau);                 \
}

DEFINE_REFLECT(1, 4)
DEFINE_REFLECT(2, 4)
DEFINE_REFLECT(4, 4)
DEFINE_REFLECT(8, 2)

/* The same for up to LEAVE_MOST that leave; w has that many columns, or one, those unused 0. */
static void reflect(ptrdiff_t leaving, ptrdiff_t rows, ptrdiff_t columns, const double **from,
                    double *to, ptrdiff_t line, double *w, ptrdiff_t width, const double *v,
                    const double *tau)
{
    if (leaving <= 1)
        reflect_1(rows, columns, from, to, line, w, width, v, tau);
    else if (leaving <= 2)
        reflect_2(rows, columns, from, to, line, w, width, v, tau);
    else if (leaving <= 4)
        reflect_4(rows, columns, from, to, line, w, width, v, tau);
    else
        reflect_8(rows, columns, from, to, line, w, width, v, tau);
}

/* The reflection that takes (l, w) of its own row to (r, 0), r > 0, and w to 0; returns tau. */
static double reflector(ptrdiff_t leaving, double l, double *w, ptrdiff_t width, double *v,
                        double *r)
{
    double square = 0.0;
    for (ptrdiff_t c = 0; c < leaving; c++)
        square += w[c * width] * w[c * width];
    double norm = sqrt(l * l + square), sum = l + norm;
    for (ptrdiff_t c = 0; c < LEAVE_MOST; c++)
        v[c] = c < leaving ? w[c * width] / sum : 0.0;
    for (ptrdiff_t c = 0; c < leaving; c++)
        w[c * width] = 0.0;
    *r = norm;
    return sum / norm;
}

/* Rows that leave a triangle of `size` rows: column j of L is at L + j * cap, z a row more of it.
 * W[c * line + i] is row i of the c-th column that leaves, W[c * line + size] that of z; then the
 * columns of a panel, from p to end, and their reflections. */
typedef struct {
    double *L, *z, *W;
    ptrdiff_t cap, size, k, line, p, end;
    double v[LEAVE_PANEL * LEAVE_MOST], tau[LEAVE_PANEL];
} departure;

/* The panel's own triangle, a column at a time; what is above the diagonal stays 0. */
static void leave_triangle(departure *d)
{
    enum { N = LEAVE_PANEL, M = LEAVE_CHUNK };
    double triangle[N * N] = {0}, w[LEAVE_MOST * N] = {0};
    ptrdiff_t columns = d->end - d->p;
    for (ptrdiff_t c = 0; c < d->k; c++)
        memcpy(w + c * N, d->W + c * d->line + d->p, columns * sizeof(double));
    for (ptrdiff_t j = 0; j < columns; j++) {
        double *own = triangle + j * N, *kept = d->L + (d->p + j) * d->cap + d->p, diagonal;
        double *part = d->v + j * LEAVE_MOST;
        memcpy(own + j, kept + j, (columns - j) * sizeof(double));
        d->tau[j] = reflector(d->k, own[j], w + j, N, part, &diagonal);
        own[j] = 0.0;
        ptrdiff_t first = j / M * M;
        const double *from = own + first;
        reflect(d->k, N - first, 1, &from, own + first, N, w + first, N, part, d->tau + j);
        own[j] = diagonal;
        memcpy(kept + j, own + j, (columns - j) * sizeof(double));
    }
}

/* The rows below it; the last, fewer than a chunk, together with z. */
static void leave_rows(departure *d)
{
    enum { M = LEAVE_CHUNK };
    double patch[LEAVE_PANEL * M] = {0}, *to = d->L + d->p * d->cap + d->end;
    const double *from[LEAVE_PANEL];
    ptrdiff_t columns = d->end - d->p, few = (d->size - d->end) % M, first = d->size - few;
    for (ptrdiff_t j = 0; j < columns; j++)
        from[j] = to + j * d->cap;
    reflect(d->k, first - d->end, columns, from, to, d->cap, d->W + d->end, d->line, d->v, d->tau);
    for (ptrdiff_t j = 0; j < columns; j++) {
        from[j] = patch + j * M;
        memcpy(patch + j * M, d->L + (d->p + j) * d->cap + first, few * sizeof(double));
        patch[j * M + few] = d->z[d->p + j];
    }
    reflect(d->k, M, columns, from, patch, M, d->W + first, d->line, d->v, d->tau);
    for (ptrdiff_t j = 0; j < columns; j++) {
        memcpy(d->L + (d->p + j) * d->cap + first, patch + j * M, few * sizeof(double));
        d->z[d->p + j] = patch[j * M + few];
    }
}

/* Rows gone[0 .. k), ascending, leave L (size, size) and z. `room` is for
 * LEAVE_MOST * (size + 1 + LEAVE_CHUNK) numbers. */
static void leave(double *L, ptrdiff_t cap, double *z, ptrdiff_t size, const long long *gone,
                  ptrdiff_t k, double *room)
{
    departure d = {.L = L, .z = z, .W = room, .cap = cap, .size = size, .k = k,
                   .line = size + 1 + LEAVE_CHUNK};
    memset(d.W, 0, (k == 1 ? 1 : LEAVE_MOST) * d.line * sizeof(double));
    for (ptrdiff_t c = 0; c < k; c++) {
        ptrdiff_t g = gone[c], below = (size - g - 1) * sizeof(double);
        memcpy(d.W + c * d.line + g + 1, L + g * cap + g + 1, below);
        memset(L + g * cap + g + 1, 0, below);
        for (ptrdiff_t other = c + 1; other < k; other++)
            d.W[c * d.line + gone[other]] = 0.0;
        for (ptrdiff_t j = 0; j < g; j++)
            L[j * cap + g] = 0.0;
        L[g * cap + g] = 1.0;
        d.W[c * d.line + size] = z[g];
        z[g] = 0.0;
    }
    for (d.p = gone[0]; d.p < size; d.p = d.end) {
        d.end = d.p + LEAVE_PANEL < size ? d.p + LEAVE_PANEL : size;
        leave_triangle(&d);
        leave_rows(&d);
    }
}

#endif
