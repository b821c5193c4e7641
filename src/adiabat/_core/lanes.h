/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Products of sparse rows with up to 24 dense vectors at a time, the vectors in lanes:
 * table[j] has the j-th entries of all of them side by side. A row's entry is read once and
 * multiplies a whole table[j]; the sums stay in registers. A table of 16 lanes and a thousand
 * features stays in the second-level cache.
 *
 * Entries take turns among four sums, so that no addition waits for the last; all functions add in
 * the same order, and are written so that a compiler fuses products with sums in all or in none of
 * them. A product thus has the same bits in whatever company it is computed, and that of a row with
 * itself, or with its double, those of its squared norm: their distance is zero.
 */
#ifndef ADIABAT_LANES_H
#define ADIABAT_LANES_H

#include <stddef.h>
#include <stdint.h>

#include "wide.h"

#ifdef __GNUC__
typedef eight sums;
#define ADD_SCALED(sum, a, x) ((sum) += (a) * *(const eight *) (x))
#define ADD(sum, other) ((sum) += (other))
#define STORE(to, sum) (*(eight *) (to) = (sum))
typedef double four __attribute__((vector_size(32), aligned(8), may_alias));
#define ADD_PRODUCTS(sum, x, y) ((sum) += *(const four *) (x) * (y))
#define LANE(sum, i) ((sum)[i])
#else
typedef struct { double of[8]; } sums;
#define ADD_SCALED(sum, a, x) \
    do { for (int l_ = 0; l_ < 8; l_++) (sum).of[l_] += (a) * (x)[l_]; } while (0)
#define ADD(sum, other) \
    do { for (int l_ = 0; l_ < 8; l_++) (sum).of[l_] += (other).of[l_]; } while (0)
#define STORE(to, sum) \
    do { for (int l_ = 0; l_ < 8; l_++) (to)[l_] = (sum).of[l_]; } while (0)
typedef struct { double of[4]; } four;
#define ADD_PRODUCTS(sum, x, y) \
    do { for (int l_ = 0; l_ < 4; l_++) (sum).of[l_] += (x)[l_] * (y).of[l_]; } while (0)
#define LANE(sum, i) ((sum).of[i])
#endif

/* out[0 : lanes] of a row = sum over its entries of value * table[feature]; `lanes` of a table
 * that is 8 * VECTORS wide are wanted. Rows are `stride` apart in out. `unit` is for whole_lanes.h,
 * whose functions are called in the place of these. */
#define DEFINE_LANES(NAME, VECTORS)                                                          \
FOR_EACH_MACHINE                                                                             \
static void NAME(ptrdiff_t n_rows, const int64_t *start, const int64_t *length,              \
                 const int32_t *feature, const void *values, const void *tables,             \
                 double *out, ptrdiff_t stride, ptrdiff_t lanes, double unit)                \
{                                                                                            \
    enum { WIDE = 8 * VECTORS };                                                             \
    const double *value = values, *table = tables;                                           \
    (void) unit;                                                                             \
    for (ptrdiff_t i = 0; i < n_rows; i++) {                                                 \
        sums a[VECTORS] = {0}, b[VECTORS] = {0}, c[VECTORS] = {0}, d[VECTORS] = {0};         \
        ptrdiff_t p = start[i], end = p + length[i];                                         \
        for (; p + 3 < end; p += 4) {                                                        \
            const double *x = table + (ptrdiff_t) feature[p] * WIDE;                         \
            const double *y = table + (ptrdiff_t) feature[p + 1] * WIDE;                     \
            const double *z = table + (ptrdiff_t) feature[p + 2] * WIDE;                     \
            const double *w = table + (ptrdiff_t) feature[p + 3] * WIDE;                     \
            for (int v = 0; v < VECTORS; v++) {                                              \
                ADD_SCALED(a[v], value[p], x + 8 * v);                                       \
                ADD_SCALED(b[v], value[p + 1], y + 8 * v);                                   \
                ADD_SCALED(c[v], value[p + 2], z + 8 * v);                                   \
                ADD_SCALED(d[v], value[p + 3], w + 8 * v);                                   \
            }                                                                                \
        }                                                                                    \
        for (; p < end; p++) {                                                               \
            const double *x = table + (ptrdiff_t) feature[p] * WIDE;                         \
            for (int v = 0; v < VECTORS; v++) ADD_SCALED(a[v], value[p], x + 8 * v);         \
        }                                                                                    \
        double kept[WIDE];                                                                   \
        double *to = lanes == WIDE ? out + i * stride : kept;                                \
        for (int v = 0; v < VECTORS; v++) {                                                  \
            ADD(a[v], b[v]);                                                                 \
            ADD(c[v], d[v]);                                                                 \
            ADD(a[v], c[v]);                                                                 \
            STORE(to + 8 * v, a[v]);                                                         \
        }                                                                                    \
        if (to == kept)                                                                      \
            for (ptrdiff_t l = 0; l < lanes; l++) out[i * stride + l] = kept[l];             \
    }                                                                                        \
}

DEFINE_LANES(in_8_lanes, 1)
DEFINE_LANES(in_16_lanes, 2)
DEFINE_LANES(in_24_lanes, 3)

/* All four sums, with the products of the up to three entries that are left. */
IN_PLACE double total(four sum, ptrdiff_t left, const double *x, const double *y)
{
    double a = LANE(sum, 0);
    if (left > 0) a += x[0] * y[0];
    if (left > 1) a += x[1] * y[1];
    if (left > 2) a += x[2] * y[2];
    return (a + LANE(sum, 1)) + (LANE(sum, 2) + LANE(sum, 3));
}

/* The same for a single vector, which is its own table: the four sums are the lanes. */
FOR_EACH_MACHINE
static void in_1_lane(ptrdiff_t n_rows, const int64_t *start, const int64_t *length,
                      const int32_t *feature, const void *values, const void *tables,
                      double *out, ptrdiff_t stride, ptrdiff_t lanes, double unit)
{
    const double *value = values, *table = tables;
    (void) lanes;
    (void) unit;
    for (ptrdiff_t i = 0; i < n_rows; i++) {
        ptrdiff_t p = start[i], end = p + length[i];
        four sum = {0};
        for (; p + 3 < end; p += 4) {
            four x = {table[feature[p]], table[feature[p + 1]], table[feature[p + 2]],
                      table[feature[p + 3]]};
            ADD_PRODUCTS(sum, value + p, x);
        }
        double rest[3] = {0};
        for (ptrdiff_t r = 0; r < end - p; r++) rest[r] = table[feature[p + r]];
        out[i * stride] = total(sum, end - p, value + p, rest);
    }
}

/* How many of n numbers are not zero. */
FOR_EACH_MACHINE
static ptrdiff_t count_nonzeros(ptrdiff_t n, const double *x)
{
    ptrdiff_t count = 0;
    for (ptrdiff_t i = 0; i < n; i++)
        count += x[i] != 0.0;
    return count;
}

/* out[i] = the squared norm of row i. */
FOR_EACH_MACHINE
static void squared_norms(ptrdiff_t n_rows, const int64_t *start, const int64_t *length,
                          const double *value, double *out)
{
    for (ptrdiff_t i = 0; i < n_rows; i++) {
        ptrdiff_t p = start[i], end = p + length[i];
        four sum = {0};
        for (; p + 3 < end; p += 4) {
            four x = {value[p], value[p + 1], value[p + 2], value[p + 3]};
            ADD_PRODUCTS(sum, value + p, x);
        }
        out[i] = total(sum, end - p, value + p, value + p);
    }
}

#endif
