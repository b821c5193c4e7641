/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Products as in lanes.h, of rows whose entries are whole numbers up to 255 (pixels, counts, one-hot
 * columns), in single precision: twice as many in a register, and half as many bytes of a table.
 *
 * They are exact: no sum of 256 products reaches 2^24, up to which single precision has every whole
 * number, and after that many the sums are added up in double precision. So the order of the
 * additions is nobody's concern.
 */
#ifndef ADIABAT_WHOLE_LANES_H
#define ADIABAT_WHOLE_LANES_H

#include <stddef.h>
#include <stdint.h>

#include "wide.h"

enum {
    WHOLE_MOST = 255,
    WHOLE_SAFE = 256,  /* entries whose products may be added up */
    WHOLE_LOOK = 1024  /* entries between two looks at whether all are whole */
};

#ifdef __GNUC__
typedef float sixteen __attribute__((vector_size(64), aligned(4), may_alias));
typedef float four_floats __attribute__((vector_size(16), aligned(4), may_alias));
#define ADD_FOUR(sum, x, y) ((sum) += *(const four_floats *) (x) * (y))
#define FOUR(sum, i) ((double) (sum)[i])
#else
typedef float sixteen;
typedef struct { float of[4]; } four_floats;
#define ADD_FOUR(sum, x, y) \
    do { for (int l_ = 0; l_ < 4; l_++) (sum).of[l_] += (x)[l_] * (y).of[l_]; } while (0)
#define FOUR(sum, i) ((double) (sum).of[i])
#endif
enum { WHOLE_LANES = sizeof(sixteen) / sizeof(float) };

/* whole[i] = per * value[i]; whether all of these are whole, but for rounding, and small. */
FOR_EACH_MACHINE
static int as_whole(ptrdiff_t n, const double *value, double per, float *whole)
{
    const double shift = 0x1.8p52, rounding = 0x1p-50;
    for (ptrdiff_t first = 0; first < n; first += WHOLE_LOOK) {
        ptrdiff_t last = n - first > WHOLE_LOOK ? first + WHOLE_LOOK : n;
        int strange = 0;
        for (ptrdiff_t i = first; i < last; i++) {
            double x = per * value[i], k = x + shift - shift;
            double off = x > k ? x - k : k - x, size = k < 0.0 ? -k : k;
            strange |= !(off <= rounding * size) | !(size <= WHOLE_MOST);
            whole[i] = (float) k;
        }
        if (strange)
            return 0;
    }
    return 1;
}

/* out[0 : lanes] of a row = unit * sum over its entries of value * table[feature]; `lanes` of a
 * table that is WHOLE_LANES * VECTORS wide are wanted. Rows are `stride` apart in out. */
#define DEFINE_WHOLE_LANES(NAME, VECTORS, SUMS)                                              \
FOR_EACH_MACHINE                                                                             \
static void NAME(ptrdiff_t n_rows, const int64_t *start, const int64_t *length,              \
                 const int32_t *feature, const void *values, const void *tables,             \
                 double *out, ptrdiff_t stride, ptrdiff_t lanes, double unit)                \
{                                                                                            \
    enum { WIDE = WHOLE_LANES * VECTORS };                                                   \
    const float *value = values, *table = tables;                                            \
    for (ptrdiff_t i = 0; i < n_rows; i++) {                                                 \
        double total[WIDE] = {0};                                                            \
        ptrdiff_t p = start[i], end = p + length[i];                                         \
        while (p < end) {                                                                    \
            ptrdiff_t stop = end - p > WHOLE_SAFE ? p + WHOLE_SAFE : end;                    \
            sixteen sum[SUMS][VECTORS];                                                      \
            for (int s = 0; s < SUMS; s++)                                                   \
                for (int v = 0; v < VECTORS; v++)                                            \
                    sum[s][v] = (sixteen) {0};                                               \
            for (; p + SUMS <= stop; p += SUMS)                                              \
                for (int s = 0; s < SUMS; s++) {                                             \
                    const float *x = table + (ptrdiff_t) feature[p + s] * WIDE;              \
                    for (int v = 0; v < VECTORS; v++)                                        \
                        sum[s][v] += value[p + s] * *(const sixteen *) (x + WHOLE_LANES * v); \
                }                                                                            \
            for (; p < stop; p++) {                                                          \
                const float *x = table + (ptrdiff_t) feature[p] * WIDE;                      \
                for (int v = 0; v < VECTORS; v++)                                            \
                    sum[0][v] += value[p] * *(const sixteen *) (x + WHOLE_LANES * v);        \
            }                                                                                \
            for (int s = 1; s < SUMS; s++)                                                   \
                for (int v = 0; v < VECTORS; v++)                                            \
                    sum[0][v] += sum[s][v];                                                  \
            const float *of = (const float *) &sum[0][0];                                    \
            for (int l = 0; l < WIDE; l++)                                                   \
                total[l] += of[l];                                                           \
        }                                                                                    \
        for (ptrdiff_t l = 0; l < lanes; l++)                                                \
            out[i * stride + l] = unit * total[l];                                           \
    }                                                                                        \
}

DEFINE_WHOLE_LANES(whole_in_16_lanes, 16 / WHOLE_LANES, 4)
DEFINE_WHOLE_LANES(whole_in_32_lanes, 32 / WHOLE_LANES, 2)
DEFINE_WHOLE_LANES(whole_in_48_lanes, 48 / WHOLE_LANES, 2)

/* The same for a single vector, which is its own table. */
FOR_EACH_MACHINE
static void whole_in_1_lane(ptrdiff_t n_rows, const int64_t *start, const int64_t *length,
                            const int32_t *feature, const void *values, const void *tables,
                            double *out, ptrdiff_t stride, ptrdiff_t lanes, double unit)
{
    const float *value = values, *table = tables;
    (void) lanes;
    for (ptrdiff_t i = 0; i < n_rows; i++) {
        double total = 0.0;
        ptrdiff_t p = start[i], end = p + length[i];
        while (p < end) {
            ptrdiff_t stop = end - p > WHOLE_SAFE ? p + WHOLE_SAFE : end;
            four_floats sum = {0}, other = {0};
            for (; p + 8 <= stop; p += 8) {
                const int32_t *f = feature + p;
                four_floats x = {table[f[0]], table[f[1]], table[f[2]], table[f[3]]};
                four_floats y = {table[f[4]], table[f[5]], table[f[6]], table[f[7]]};
                ADD_FOUR(sum, value + p, x);
                ADD_FOUR(other, value + p + 4, y);
            }
            for (; p < stop; p++) total += (double) value[p] * (double) table[feature[p]];
            total += FOUR(sum, 0) + FOUR(sum, 1) + FOUR(sum, 2) + FOUR(sum, 3);
            total += FOUR(other, 0) + FOUR(other, 1) + FOUR(other, 2) + FOUR(other, 3);
        }
        out[i * stride] = unit * total;
    }
}

/* out[i] = unit * the squared norm of row i. */
static void whole_squared_norms(ptrdiff_t n_rows, const int64_t *start, const int64_t *length,
                                const float *value, double *out, double unit)
{
    for (ptrdiff_t i = 0; i < n_rows; i++) {
        int64_t total = 0;
        for (ptrdiff_t p = start[i]; p < start[i] + length[i]; p++) {
            int64_t k = (int64_t) value[p];
            total += k * k;
        }
        out[i] = unit * (double) total;
    }
}

#endif
