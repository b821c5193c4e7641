/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Products of sparse rows with several dense vectors at a time, the vectors in lanes: table[j] has
 * the j-th entries of all of them side by side. A row's entry is read once and multiplies a whole
 * table[j]; the sums stay in registers, and the table in the second-level cache.
 *
 * Entries take turns among four sums, so that no addition waits for the last. All functions add in
 * the same order and round alike. So a product has the same bits in whatever company it is computed,
 * and that of a row with itself, or with its double, those of its squared norm: their distance is 0.
 */
#ifndef ADIABAT_SPARSE_PRODUCTS_SIMD_H
#define ADIABAT_SPARSE_PRODUCTS_SIMD_H

#include "simd.h"

enum { SPARSE_SUMS = 4, SPARSE_VECTORS = 3 }; /* 12 sums of vectors in registers, at most */

ALWAYS_INLINE void sparse_lanes(const int vectors, ptrdiff_t n_rows, const int64_t *start,
                                const int64_t *length, const int32_t *feature,
                                const double *value, const double *table, double *out,
                                ptrdiff_t stride, ptrdiff_t lanes)
{
    const ptrdiff_t wide = VEC * vectors;
    for (ptrdiff_t i = 0; i < n_rows; i++) {
        vec sum[SPARSE_SUMS][SPARSE_VECTORS];
        ptrdiff_t p = start[i], end = p + length[i];
        for (int s = 0; s < SPARSE_SUMS; s++)
            for (int v = 0; v < vectors; v++)
                sum[s][v] = vec_zero();
        for (; p + SPARSE_SUMS <= end; p += SPARSE_SUMS)
            for (int s = 0; s < SPARSE_SUMS; s++) {
                const double *x = table + feature[p + s] * wide;
                vec factor = vec_setall(value[p + s]);
                for (int v = 0; v < vectors; v++)
                    sum[s][v] = vec_muladd(factor, vec_load(x + VEC * v), sum[s][v]);
            }
        for (; p < end; p++) {
            const double *x = table + feature[p] * wide;
            vec factor = vec_setall(value[p]);
            for (int v = 0; v < vectors; v++)
                sum[0][v] = vec_muladd(factor, vec_load(x + VEC * v), sum[0][v]);
        }
        double kept[VEC * SPARSE_VECTORS], *to = lanes == wide ? out + i * stride : kept;
        for (int v = 0; v < vectors; v++)
            vec_store(to + VEC * v, vec_add(vec_add(sum[0][v], sum[1][v]),
                                            vec_add(sum[2][v], sum[3][v])));
        if (to == kept)
            for (ptrdiff_t l = 0; l < lanes; l++)
                out[i * stride + l] = kept[l];
    }
}

/* A single vector, which is its own table. */
static void sparse_single(ptrdiff_t n_rows, const int64_t *start, const int64_t *length,
                          const int32_t *feature, const double *value, const double *table,
                          double *out, ptrdiff_t stride)
{
    for (ptrdiff_t i = 0; i < n_rows; i++) {
        double sum[SPARSE_SUMS] = {0};
        ptrdiff_t p = start[i], end = p + length[i];
        for (; p + SPARSE_SUMS <= end; p += SPARSE_SUMS)
            for (int s = 0; s < SPARSE_SUMS; s++)
                sum[s] = muladd(value[p + s], table[feature[p + s]], sum[s]);
        for (; p < end; p++)
            sum[0] = muladd(value[p], table[feature[p]], sum[0]);
        out[i * stride] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    }
}

/* out[0 : lanes] of a row = sum over its entries of value * table[feature]; `lanes` of a table that
 * has `vectors` of VEC are wanted, or a single one of a table of one. Rows are `stride` apart in out. */
static void sparse_products(ptrdiff_t vectors, ptrdiff_t n_rows, const int64_t *start,
                            const int64_t *length, const int32_t *feature, const double *value,
                            const double *table, double *out, ptrdiff_t stride, ptrdiff_t lanes)
{
    if (vectors == 0)
        sparse_single(n_rows, start, length, feature, value, table, out, stride);
    else if (vectors == 1)
        sparse_lanes(1, n_rows, start, length, feature, value, table, out, stride, lanes);
    else if (vectors == 2)
        sparse_lanes(2, n_rows, start, length, feature, value, table, out, stride, lanes);
    else
        sparse_lanes(3, n_rows, start, length, feature, value, table, out, stride, lanes);
}

/* out[i] = the squared norm of row i. */
static void sparse_norms(ptrdiff_t n_rows, const int64_t *start, const int64_t *length,
                         const double *value, double *out)
{
    for (ptrdiff_t i = 0; i < n_rows; i++) {
        double sum[SPARSE_SUMS] = {0};
        ptrdiff_t p = start[i], end = p + length[i];
        for (; p + SPARSE_SUMS <= end; p += SPARSE_SUMS)
            for (int s = 0; s < SPARSE_SUMS; s++)
                sum[s] = muladd(value[p + s], value[p + s], sum[s]);
        for (; p < end; p++)
            sum[0] = muladd(value[p], value[p], sum[0]);
        out[i] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    }
}

/* How many of n numbers are not zero. */
static ptrdiff_t count_nonzeros(ptrdiff_t n, const double *x)
{
    ptrdiff_t count = 0;
    for (ptrdiff_t i = 0; i < n; i++)
        count += x[i] != 0.0;
    return count;
}

#endif
