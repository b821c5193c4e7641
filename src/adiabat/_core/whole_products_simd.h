/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Products as in sparse_products_simd.h, of rows whose entries are whole numbers up to 255 (pixels,
 * counts, one-hot columns), in single precision: twice as many in a register, and half the bytes.
 *
 * They are exact: no sum of 256 products reaches 2^24, up to which single precision has every whole
 * number, and after that many the sums are added up in double precision. So any order of the
 * additions will do.
 */
#ifndef ADIABAT_WHOLE_PRODUCTS_SIMD_H
#define ADIABAT_WHOLE_PRODUCTS_SIMD_H

#include "simd.h"

enum {
    WHOLE_MOST = 255,
    WHOLE_SAFE = 256,  /* entries whose products may be added up */
    WHOLE_LOOK = 1024, /* entries between two looks at whether all are whole */
    WHOLE_SUMS = 4,
    WHOLE_VECTORS = 3  /* 12 sums of vectors in registers, at most */
};

/* whole[i] = per * value[i]; whether all of these are whole, but for rounding, and small. */
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

ALWAYS_INLINE void whole_lanes(const int vectors, ptrdiff_t n_rows, const int64_t *start,
                               const int64_t *length, const int32_t *feature, const float *value,
                               const float *table, double *out, ptrdiff_t stride, ptrdiff_t lanes,
                               double unit)
{
    const ptrdiff_t wide = VECF * vectors;
    for (ptrdiff_t i = 0; i < n_rows; i++) {
        double total[VECF * WHOLE_VECTORS] = {0};
        ptrdiff_t p = start[i], end = p + length[i];
        while (p < end) {
            ptrdiff_t stop = end - p > WHOLE_SAFE ? p + WHOLE_SAFE : end;
            vecf sum[WHOLE_SUMS][WHOLE_VECTORS];
            for (int s = 0; s < WHOLE_SUMS; s++)
                for (int v = 0; v < vectors; v++)
                    sum[s][v] = vecf_setall(0.0f);
            for (; p + WHOLE_SUMS <= stop; p += WHOLE_SUMS)
                for (int s = 0; s < WHOLE_SUMS; s++) {
                    const float *x = table + feature[p + s] * wide;
                    vecf factor = vecf_setall(value[p + s]);
                    for (int v = 0; v < vectors; v++)
                        sum[s][v] = vecf_muladd(factor, vecf_load(x + VECF * v), sum[s][v]);
                }
            for (; p < stop; p++) {
                const float *x = table + feature[p] * wide;
                vecf factor = vecf_setall(value[p]);
                for (int v = 0; v < vectors; v++)
                    sum[0][v] = vecf_muladd(factor, vecf_load(x + VECF * v), sum[0][v]);
            }
            for (int v = 0; v < vectors; v++) {
                float of[VECF];
                vecf_store(of, vecf_add(vecf_add(sum[0][v], sum[1][v]),
                                        vecf_add(sum[2][v], sum[3][v])));
                for (int l = 0; l < VECF; l++)
                    total[VECF * v + l] += of[l];
            }
        }
        for (ptrdiff_t l = 0; l < lanes; l++)
            out[i * stride + l] = unit * total[l];
    }
}

/* The same for a single vector, which is its own table. */
static void whole_single(ptrdiff_t n_rows, const int64_t *start, const int64_t *length,
                         const int32_t *feature, const float *value, const float *table,
                         double *out, ptrdiff_t stride, double unit)
{
    for (ptrdiff_t i = 0; i < n_rows; i++) {
        double total = 0.0;
        ptrdiff_t p = start[i], end = p + length[i];
        while (p < end) {
            ptrdiff_t stop = end - p > WHOLE_SAFE ? p + WHOLE_SAFE : end;
            float sum[8] = {0};
            for (; p + 8 <= stop; p += 8)
                for (int s = 0; s < 8; s++)
                    sum[s] += value[p + s] * table[feature[p + s]];
            for (; p < stop; p++)
                sum[0] += value[p] * table[feature[p]];
            for (int s = 0; s < 8; s++)
                total += sum[s];
        }
        out[i * stride] = unit * total;
    }
}

/* out[0 : lanes] of a row = unit * sum over its entries of value * table[feature]; `lanes` of a
 * table that has `vectors` of VECF are wanted, or a single one of a table of one. */
static void whole_products(ptrdiff_t vectors, ptrdiff_t n_rows, const int64_t *start,
                           const int64_t *length, const int32_t *feature, const float *value,
                           const float *table, double *out, ptrdiff_t stride, ptrdiff_t lanes,
                           double unit)
{
    if (vectors == 0)
        whole_single(n_rows, start, length, feature, value, table, out, stride, unit);
    else if (vectors == 1)
        whole_lanes(1, n_rows, start, length, feature, value, table, out, stride, lanes, unit);
    else if (vectors == 2)
        whole_lanes(2, n_rows, start, length, feature, value, table, out, stride, lanes, unit);
    else
        whole_lanes(3, n_rows, start, length, feature, value, table, out, stride, lanes, unit);
}

/* out[i] = unit * the squared norm of row i. */
static void whole_norms(ptrdiff_t n_rows, const int64_t *start, const int64_t *length,
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

/* z = x and squares += x * x; strange[0] is set if x is not small and whole */
static void whole_convert(ptrdiff_t n, const double *x, float *z, int *squares, int *strange)
{
    int other = 0;
    for (ptrdiff_t j = 0; j < n; j++) {
        double inside = x[j] >= -WHOLE_MOST && x[j] <= WHOLE_MOST ? x[j] : 0.5;
        int k = (int) inside;
        other |= k != inside;
        z[j] = (float) k;
        squares[j] += k * k;
    }
    *strange |= other;
}

/* total[j] += part[j], j in [start, stop) */
static void whole_add(double *total, const float *part, ptrdiff_t start, ptrdiff_t stop)
{
    for (ptrdiff_t j = start; j < stop; j++)
        total[j] += part[j];
}

#endif
