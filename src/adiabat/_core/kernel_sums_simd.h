/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sums over the features of pairs of rows: products, squared differences, and what other kernels
 * are made of. A tile is a few rows against a few vectors of columns; the columns stand in a table
 * (features, lanes), so that a vector holds one feature of VEC of them.
 *
 * An entry is a function of its two rows alone. Its terms are added in the order of the features,
 * SUM_BLOCK of them in one chain, then the chains one after the other; a term of zeros adds nothing.
 * So an entry has the same bits in every tile, in either order of its rows, dense or by nonzero
 * entries, in whichever thread. Short chains keep rounding small.
 */
#ifndef ADIABAT_KERNEL_SUMS_SIMD_H
#define ADIABAT_KERNEL_SUMS_SIMD_H

#include <float.h>
#include <string.h>

#include "kernel_values.h"
#include "simd_math.h"

enum {
    SUM_BLOCK = 128,           /* features in one chain; a table of three vectors stays in L1 */
    PATCH_ROWS = KERNEL_PATCH_ROWS,
    GROUP_ROWS = 8,            /* of these, that are recomputed together */
    TILE_VECTORS = 3,          /* times TILE_ROWS: sums that stay in registers */
    TILE_ROWS = REGISTERS / 4,
    LINE_VECTORS = 4,          /* of rows, against a single column */
    FEW_COLUMNS = VEC > 1 ? 2 : 1, /* in one vector, that are summed by lines */
    ENTRY_VECTORS = 6,         /* the same for one row by its entries */
    PATCH_LANES = ENTRY_VECTORS * VEC
};

typedef enum { TERM_PRODUCT, TERM_SQUARE, TERM_ABSOLUTE, TERM_QUOTIENT } term_kind;

ALWAYS_INLINE vec add_difference(const term_kind kind, vec d, vec sum)
{
    return kind == TERM_SQUARE ? vec_muladd(d, d, sum) : vec_add(sum, vec_abs(d));
}

ALWAYS_INLINE vec add_term(const term_kind kind, vec a, vec b, vec sum)
{
    if (kind == TERM_PRODUCT)
        return vec_muladd(a, b, sum);
    vec d = vec_sub(a, b);
    if (kind == TERM_SQUARE || kind == TERM_ABSOLUTE)
        return add_difference(kind, d, sum);
    /* d / s * d, as d * d might overflow; 0 / 0 is to be 0 */
    return vec_muladd(vec_div(d, vec_max(vec_add(a, b), vec_setall(DBL_MIN))), d, sum);
}

ALWAYS_INLINE double add_one_term(const term_kind kind, double a, double b, double sum)
{
    double d = a - b, s = a + b;
    if (kind == TERM_PRODUCT)
        return muladd(a, b, sum);
    if (kind == TERM_SQUARE)
        return muladd(d, d, sum);
    if (kind == TERM_ABSOLUTE)
        return sum + fabs(d);
    return muladd(d / (s > DBL_MIN ? s : DBL_MIN), d, sum);
}

/* sums[i][l] += terms of rows[i] and lane l of the table, from feature `first` to `last`, or = where
 * that is the first of all; a feature of the table has `wide` lanes, and so has a row of sums. */
ALWAYS_INLINE void tile(const term_kind kind, const int n_rows, const int vectors,
                        const double *const *rows, ptrdiff_t first, ptrdiff_t last,
                        const double *table, ptrdiff_t wide, double *sums)
{
    vec sum[GROUP_ROWS][TILE_VECTORS];
    const double *row[GROUP_ROWS];
    UNROLL for (int i = 0; i < n_rows; i++) {
        row[i] = rows[i];
        UNROLL for (int v = 0; v < vectors; v++)
            sum[i][v] = vec_zero();
    }
    table += first * wide;
    for (ptrdiff_t j = first; j < last; j++, table += wide)
        UNROLL for (int i = 0; i < n_rows; i++) {
            vec a = vec_setall(row[i][j]);
            UNROLL for (int v = 0; v < vectors; v++)
                sum[i][v] = add_term(kind, a, vec_load(table + v * VEC), sum[i][v]);
        }
    UNROLL for (int i = 0; i < n_rows; i++)
        UNROLL for (int v = 0; v < vectors; v++) {
            double *to = sums + i * wide + v * VEC;
            vec_store(to, vec_add(first ? vec_load(to) : vec_zero(), sum[i][v]));
        }
}

/* The tiles of a block of features: m rows (with pointers up to the next multiple of GROUP_ROWS)
 * against all lanes. */
ALWAYS_INLINE void tiles(const term_kind kind, ptrdiff_t m, const double *const *rows,
                         ptrdiff_t first, ptrdiff_t last, const double *table, ptrdiff_t wide,
                         double *sums)
{
    ptrdiff_t left = wide;
    for (; left >= TILE_VECTORS * VEC; left -= TILE_VECTORS * VEC) {
        for (ptrdiff_t i = 0; i < m; i += TILE_ROWS)
            tile(kind, TILE_ROWS, TILE_VECTORS, rows + i, first, last, table, wide,
                 sums + i * wide);
        table += TILE_VECTORS * VEC, sums += TILE_VECTORS * VEC;
    }
    if (left == 2 * VEC)
        for (ptrdiff_t i = 0; i < m; i += TILE_ROWS)
            tile(kind, TILE_ROWS, 2, rows + i, first, last, table, wide, sums + i * wide);
    else if (left)
        for (ptrdiff_t i = 0; i < m; i += GROUP_ROWS)
            tile(kind, GROUP_ROWS, 1, rows + i, first, last, table, wide, sums + i * wide);
}

/* sums[i][l] = sum over all features of the terms of m dense rows and the lanes of a table. */
static void dense_sums(term_kind kind, ptrdiff_t n_features, ptrdiff_t m,
                       const double *const *rows, const double *table, ptrdiff_t wide,
                       double *sums)
{
    ptrdiff_t first = 0;
    do {
        ptrdiff_t last = n_features - first > SUM_BLOCK ? first + SUM_BLOCK : n_features;
        switch (kind) {
        case TERM_PRODUCT: tiles(TERM_PRODUCT, m, rows, first, last, table, wide, sums); break;
        case TERM_SQUARE: tiles(TERM_SQUARE, m, rows, first, last, table, wide, sums); break;
        case TERM_ABSOLUTE: tiles(TERM_ABSOLUTE, m, rows, first, last, table, wide, sums); break;
        case TERM_QUOTIENT: tiles(TERM_QUOTIENT, m, rows, first, last, table, wide, sums); break;
        }
        first = last;
    } while (first < n_features);
}

/* Features at which VEC of them begin that are not all zero in a column: no other adds to a product.
 * How many. */
static ptrdiff_t nonzero_places(ptrdiff_t n_features, const double *column, ptrdiff_t *places)
{
    ptrdiff_t n = 0;
    for (ptrdiff_t j = 0; j < n_features; j += VEC) {
        int any = 0;
        for (ptrdiff_t l = j; l < n_features && l < j + VEC; l++)
            any |= column[l] != 0.0;
        places[n] = j;
        n += any;
    }
    return n;
}

ALWAYS_INLINE void lines(const term_kind kind, const int together, ptrdiff_t n_features,
                         const double *const *rows, const double *column, ptrdiff_t n_places,
                         const ptrdiff_t *places, double *sums)
{
    const int differs = kind == TERM_SQUARE || kind == TERM_ABSOLUTE;
    vec total[LINE_VECTORS], sum[LINE_VECTORS], x[VEC];
    UNROLL for (int v = 0; v < LINE_VECTORS; v++)
        total[v] = vec_zero();
    for (ptrdiff_t g = 0; g < n_places;) {
        ptrdiff_t j = kind == TERM_PRODUCT ? places[g] : g * VEC;
        ptrdiff_t last = (j / SUM_BLOCK + 1) * SUM_BLOCK;
        UNROLL for (int v = 0; v < LINE_VECTORS; v++)
            sum[v] = vec_zero();
        do {
            const double *at = rows[0] + j, *b = column + j;
            if (j + VEC <= n_features) {
                UNROLL for (int v = 0; v < LINE_VECTORS; v++, at += VEC * n_features) {
                    UNROLL for (int l = 0; l < VEC; l++)
                        x[l] = vec_load(together ? at + l * n_features : rows[v * VEC + l] + j);
                    if (differs)
                        UNROLL for (int l = 0; l < VEC; l++)
                            x[l] = vec_sub(x[l], vec_load(b));
                    vec_transpose(x);
                    UNROLL for (int l = 0; l < VEC; l++)
                        sum[v] = differs ? add_difference(kind, x[l], sum[v]) :
                                 add_term(kind, x[l], vec_setall(b[l]), sum[v]);
                }
            } else
                for (ptrdiff_t i = 0; i < n_features - j; i++)
                    UNROLL for (int v = 0; v < LINE_VECTORS; v++) {
                        double lane[VEC];
                        UNROLL for (int l = 0; l < VEC; l++)
                            lane[l] = rows[v * VEC + l][j + i];
                        sum[v] = add_term(kind, vec_load(lane), vec_setall(b[i]), sum[v]);
                    }
            g++;
            j = kind != TERM_PRODUCT ? j + VEC : g < n_places ? places[g] : last;
        } while (j < last && g < n_places);
        UNROLL for (int v = 0; v < LINE_VECTORS; v++)
            total[v] = vec_add(total[v], sum[v]);
    }
    UNROLL for (int v = 0; v < LINE_VECTORS; v++)
        vec_store(sums + v * VEC, total[v]);
}

ALWAYS_INLINE void some_lines(const term_kind kind, int together, ptrdiff_t n_features,
                              const double *const *rows, const double *column, ptrdiff_t n,
                              const ptrdiff_t *places, double *sums)
{
    if (together)
        lines(kind, 1, n_features, rows, column, n, places, sums);
    else
        lines(kind, 0, n_features, rows, column, n, places, sums);
}

/* sums[i] = sum over all features of the terms of PATCH_ROWS dense rows, which may stand `together`,
 * one after the other in memory, and one column, whose n places that are not zero are given. */
static void line_sums(term_kind kind, int together, ptrdiff_t n_features,
                      const double *const *rows, const double *column, ptrdiff_t n,
                      const ptrdiff_t *places, double *sums)
{
    const ptrdiff_t p = n_features, all = (p + VEC - 1) / VEC;
    const int t = together;
    for (ptrdiff_t i = 0; i < PATCH_ROWS; i += LINE_VECTORS * VEC) {
        double *to = sums + i;
        switch (kind) {
        case TERM_PRODUCT: some_lines(TERM_PRODUCT, t, p, rows, column, n, places, to); break;
        case TERM_SQUARE: some_lines(TERM_SQUARE, t, p, rows, column, all, NULL, to); break;
        case TERM_ABSOLUTE: some_lines(TERM_ABSOLUTE, t, p, rows, column, all, NULL, to); break;
        case TERM_QUOTIENT: some_lines(TERM_QUOTIENT, t, p, rows, column, all, NULL, to); break;
        }
        rows += LINE_VECTORS * VEC;
    }
}

ALWAYS_INLINE void entry_tiles(const int vectors, const kernel_rows *rows, ptrdiff_t first,
                               ptrdiff_t m, const double *table, double *sums)
{
    const ptrdiff_t wide = vectors * VEC;
    const int32_t *feature = rows->feature;
    int64_t at[PATCH_ROWS], end[PATCH_ROWS];
    for (ptrdiff_t i = 0; i < m; i++) {
        at[i] = rows->start[first + i];
        end[i] = at[i] + rows->length[first + i];
    }
    memset(sums, 0, (size_t) (m * wide) * sizeof(double));
    for (ptrdiff_t last = SUM_BLOCK; last < rows->n_features + SUM_BLOCK; last += SUM_BLOCK)
        for (ptrdiff_t i = 0; i < m; i++) {
            int64_t p = at[i];
            if (p == end[i] || feature[p] >= last)
                continue;
            vec sum[ENTRY_VECTORS];
            UNROLL for (int v = 0; v < vectors; v++)
                sum[v] = vec_zero();
            do {
                const double *x = table + feature[p] * wide;
                vec a = vec_setall(rows->value[p]);
                UNROLL for (int v = 0; v < vectors; v++)
                    sum[v] = vec_muladd(a, vec_load(x + v * VEC), sum[v]);
                p++;
            } while (p < end[i] && feature[p] < last);
            at[i] = p;
            UNROLL for (int v = 0; v < vectors; v++) {
                double *to = sums + i * wide + v * VEC;
                vec_store(to, vec_add(vec_load(to), sum[v]));
            }
        }
}

/* sums[i][l] = sum over the features of the products of m rows by their entries, from the first on,
 * and the lanes of a table. */
static void entry_sums(const kernel_rows *rows, ptrdiff_t first, ptrdiff_t m, const double *table,
                       ptrdiff_t wide, double *sums)
{
    switch (wide / VEC) {
    case 1: entry_tiles(1, rows, first, m, table, sums); break;
    case 2: entry_tiles(2, rows, first, m, table, sums); break;
    case 3: entry_tiles(3, rows, first, m, table, sums); break;
    case 4: entry_tiles(4, rows, first, m, table, sums); break;
    case 5: entry_tiles(5, rows, first, m, table, sums); break;
    default: entry_tiles(ENTRY_VECTORS, rows, first, m, table, sums);
    }
}

/* sums[i] = the same for a single column, which as a lane of a table would crowd out the rows. */
static void entry_line_sums(const kernel_rows *rows, ptrdiff_t first, ptrdiff_t m,
                            const double *column, double *sums)
{
    const int32_t *feature = rows->feature;
    for (ptrdiff_t i = 0; i < m; i++) {
        int64_t p = rows->start[first + i], end = p + rows->length[first + i];
        double total = 0.0;
        while (p < end) {
            int64_t last = (feature[p] / SUM_BLOCK + 1) * SUM_BLOCK;
            double sum = 0.0;
            for (; p < end && feature[p] < last; p++)
                sum = muladd(rows->value[p], column[feature[p]], sum);
            total += sum;
        }
        sums[i] = total;
    }
}

ALWAYS_INLINE double merge(const term_kind kind, const kernel_rows *A, ptrdiff_t i,
                           const kernel_rows *B, ptrdiff_t j)
{
    int64_t p = A->start[i], p_end = p + A->length[i];
    int64_t q = B->start[j], q_end = q + B->length[j];
    double total = 0.0, sum = 0.0;
    int64_t last = 0;
    while (p < p_end || q < q_end) {
        int64_t f = p < p_end ? A->feature[p] : INT64_MAX, g = q < q_end ? B->feature[q] : INT64_MAX;
        int64_t next = f < g ? f : g;
        if (next >= last) {
            total += sum;
            sum = 0.0;
            last = (next / SUM_BLOCK + 1) * SUM_BLOCK;
        }
        double a = f == next ? A->value[p++] : 0.0, b = g == next ? B->value[q++] : 0.0;
        sum = add_one_term(kind, a, b, sum);
    }
    return total + sum;
}

/* The sum over the features of the terms of two rows by their entries, which need no room for the
 * zeros between them. */
static double merged_sum(term_kind kind, const kernel_rows *A, ptrdiff_t i, const kernel_rows *B,
                         ptrdiff_t j)
{
    switch (kind) {
    case TERM_SQUARE: return merge(TERM_SQUARE, A, i, B, j);
    case TERM_ABSOLUTE: return merge(TERM_ABSOLUTE, A, i, B, j);
    case TERM_QUOTIENT: return merge(TERM_QUOTIENT, A, i, B, j);
    default: return merge(TERM_PRODUCT, A, i, B, j);
    }
}

/* norm[i] = squared norms of rows first + i, the bits of their products with themselves. */
static void kernel_norms(const kernel_rows *rows, ptrdiff_t first, ptrdiff_t m, double *norm)
{
    if (rows->feature) {
        for (ptrdiff_t i = 0; i < m; i++) {
            int64_t p = rows->start[first + i], end = p + rows->length[first + i];
            double total = 0.0;
            while (p < end) {
                int64_t last = (rows->feature[p] / SUM_BLOCK + 1) * SUM_BLOCK;
                double sum = 0.0;
                for (; p < end && rows->feature[p] < last; p++)
                    sum = muladd(rows->value[p], rows->value[p], sum);
                total += sum;
            }
            norm[i] = total;
        }
        return;
    }
    for (ptrdiff_t i = 0; i < m; i += GROUP_ROWS) {
        const double *row[GROUP_ROWS];
        double total[GROUP_ROWS] = {0};
        ptrdiff_t some = m - i > GROUP_ROWS ? GROUP_ROWS : m - i;
        for (ptrdiff_t k = 0; k < GROUP_ROWS; k++)
            row[k] = kernel_dense_row(rows, first + i + (k < some ? k : 0));
        for (ptrdiff_t j = 0; j < rows->n_features;) {
            ptrdiff_t last = rows->n_features - j > SUM_BLOCK ? j + SUM_BLOCK : rows->n_features;
            double sum[GROUP_ROWS] = {0};
            for (; j < last; j++)
                UNROLL for (int k = 0; k < GROUP_ROWS; k++)
                    sum[k] = muladd(row[k][j], row[k][j], sum[k]);
            for (int k = 0; k < GROUP_ROWS; k++)
                total[k] += sum[k];
        }
        for (ptrdiff_t k = 0; k < some; k++)
            norm[i + k] = total[k];
    }
}

/* out[i] = the product of a row of X and another[i], k of these, in the order of a tile. */
static void kernel_row_products(ptrdiff_t n_features, const double *X, ptrdiff_t row,
                                const long long *others, ptrdiff_t k, double *out)
{
    const double *a = X + row * n_features, *b[GROUP_ROWS];
    for (ptrdiff_t i = 0; i < k; i += GROUP_ROWS) {
        ptrdiff_t some = k - i > GROUP_ROWS ? GROUP_ROWS : k - i;
        double total[GROUP_ROWS] = {0};
        for (ptrdiff_t l = 0; l < GROUP_ROWS; l++)
            b[l] = X + others[i + (l < some ? l : 0)] * n_features;
        for (ptrdiff_t j = 0; j < n_features;) {
            ptrdiff_t last = n_features - j > SUM_BLOCK ? j + SUM_BLOCK : n_features;
            double sum[GROUP_ROWS] = {0};
            for (; j < last; j++)
                UNROLL for (int l = 0; l < GROUP_ROWS; l++)
                    sum[l] = muladd(a[j], b[l][j], sum[l]);
            for (int l = 0; l < GROUP_ROWS; l++)
                total[l] += sum[l];
        }
        for (ptrdiff_t l = 0; l < some; l++)
            out[i + l] = total[l];
    }
}

#endif
