/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Kernel values of rows against columns: what the caller and the loops of a SIMD level
 * (kernel_values_simd.h) agree on. Columns are rows, too: those that are packed into a table.
 */
#ifndef ADIABAT_KERNEL_VALUES_H
#define ADIABAT_KERNEL_VALUES_H

#include <stddef.h>
#include <stdint.h>

typedef enum { KERNEL_LINEAR, KERNEL_POLY, KERNEL_RBF, KERNEL_LAPLACIAN, KERNEL_CHI2 } kernel_name;

enum {
    KERNEL_FEW_FEATURES = 32, /* up to which an rbf kernel takes differences in any case */
    KERNEL_PATCH_ROWS = 32,   /* rows that go through a table together */
    KERNEL_LIST_COLUMNS = 256 /* columns in lists, at most */
};

/* Rows of features, dense or by their nonzero entries in ascending order. Row i begins at
 * value[start[i]], or at value[i * n_features] where start is NULL. */
typedef struct {
    const double *value;
    const int32_t *feature; /* of each value; NULL where rows are dense */
    const int64_t *start;
    const int64_t *length;  /* entries of each row; NULL where rows are dense */
    const double *norm;     /* for rbf squared norms, for poly norms, else NULL */
    ptrdiff_t n, n_features;
} kernel_rows;

/* Columns by feature, for rows with so few entries that most meet none of the columns': a hash table
 * of features, and for each of them its columns and their values. */
typedef struct {
    int32_t *feature;       /* of a slot; -1 where it is vacant */
    int32_t *list;          /* of a slot */
    int64_t *bound;         /* of a list: entries bound[l] to bound[l + 1] */
    int32_t *column;
    double *value;
    uint32_t mask;          /* 2^bits - 1 slots */
    int bits;
} kernel_lists;

static inline uint32_t kernel_slot(const kernel_lists *lists, int32_t feature)
{
    return (uint32_t) feature * 2654435769u >> (32 - lists->bits);
}

typedef struct {
    kernel_name kernel;
    double degree;
    double gamma, coef0;
    kernel_rows rows, columns;
    const double *table;        /* the columns in lanes (pack_columns), or NULL: by lists or pairs */
    const double *column_norm;  /* with zeros up to a multiple of the lanes of a vector */
    const kernel_lists *lists;
    double *const *out;         /* entry (i, j) is out[j][i * step] */
    ptrdiff_t step;
    ptrdiff_t part_rows;        /* rows of one part */
    int strange;                /* set where a value is not finite */
    int no_memory;              /* set where that was missing */
} kernel_job;

static inline const double *kernel_dense_row(const kernel_rows *rows, ptrdiff_t i)
{
    return rows->value + (rows->start ? rows->start[i] : i * rows->n_features);
}

#endif
