/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Kernel values without a table, for rows that have many features and so few entries that most of
 * these meet none of the columns'. Columns are listed by feature; a row looks up its own features.
 * Values have the same bits as with a table.
 */
#ifndef ADIABAT_KERNEL_LISTS_SIMD_H
#define ADIABAT_KERNEL_LISTS_SIMD_H

#include "kernel_values_simd.h"

enum { LIST_COLUMNS = KERNEL_LIST_COLUMNS };

ALWAYS_INLINE int32_t find_list(const kernel_lists *lists, int32_t feature)
{
    uint32_t slot = kernel_slot(lists, feature);
    for (; lists->feature[slot] != feature; slot = (slot + 1) & lists->mask)
        if (lists->feature[slot] < 0)
            return -1;
    return lists->list[slot];
}

/* sums[j] = the products of a row with all columns, where they have features in common. */
static void list_products(const kernel_job *job, ptrdiff_t row, double *sums)
{
    double chain[LIST_COLUMNS] = {0};
    int32_t block[LIST_COLUMNS] = {0};
    const kernel_lists *lists = job->lists;
    int64_t p = job->rows.start[row], end = p + job->rows.length[row];
    for (ptrdiff_t j = 0; j < job->columns.n; j++)
        sums[j] = 0.0;
    for (; p < end; p++) {
        int32_t list = find_list(lists, job->rows.feature[p]);
        if (list < 0)
            continue;
        int32_t own = job->rows.feature[p] / SUM_BLOCK;
        for (int64_t q = lists->bound[list]; q < lists->bound[list + 1]; q++) {
            int32_t j = lists->column[q];
            if (block[j] != own) {
                sums[j] += chain[j];
                chain[j] = 0.0;
                block[j] = own;
            }
            chain[j] = muladd(job->rows.value[p], lists->value[q], chain[j]);
        }
    }
    for (ptrdiff_t j = 0; j < job->columns.n; j++)
        sums[j] += chain[j];
}

/* The same as kernel_values, for columns in lists: all rows and columns are given by entries. */
static void kernel_values_by_lists(kernel_job *job, ptrdiff_t part)
{
    const kernel_rows *rows = &job->rows, *columns = &job->columns;
    ptrdiff_t row = part * job->part_rows, k = columns->n, n = (k + VEC - 1) / VEC * VEC;
    ptrdiff_t last = row + job->part_rows < rows->n ? row + job->part_rows : rows->n;
    double line[LIST_COLUMNS] = {0};
    unsigned char flag[LIST_COLUMNS / VEC];
    for (; row < last; row++) {
        double norm = rows->norm ? rows->norm[row] : 0.0;
        int flagged = 0;
        if (job->kernel == KERNEL_LAPLACIAN || job->kernel == KERNEL_CHI2)
            for (ptrdiff_t j = 0; j < k; j++)
                line[j] = merged_sum(job->kernel == KERNEL_CHI2 ? TERM_QUOTIENT : TERM_ABSOLUTE,
                                     rows, row, columns, j);
        else
            list_products(job, row, line);
        if (job->kernel == KERNEL_RBF)
            flagged = rbf_distances(n, job->gamma, norm, job->column_norm, line, flag) != 0;
        if (job->kernel == KERNEL_POLY)
            flagged = poly_bases(n, job->gamma, job->coef0, norm, job->column_norm, line, flag);
        for (ptrdiff_t j = 0; j < (flagged ? k : 0); j++)
            if (flag[j / VEC] >> j % VEC & 1)
                line[j] = job->kernel == KERNEL_RBF
                    ? merged_sum(TERM_SQUARE, rows, row, columns, j)
                    : exact_base(rows, row, columns, j, job->gamma, job->coef0);
        finish(job, n, line, line);
        if (not_finite(k, line))
            job->strange = 1;
        for (ptrdiff_t j = 0; j < k; j++)
            job->out[j][row * job->step] = line[j];
    }
}

#endif
