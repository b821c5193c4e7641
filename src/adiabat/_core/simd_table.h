/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The functions that are compiled once for each SIMD level, and the table of them that each level
 * has. A function is added by a line here and one in simd.pxd; it is defined, `static`, in a header
 * that simd_level.c includes.
 */
#ifndef ADIABAT_SIMD_TABLE_H
#define ADIABAT_SIMD_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "downdate.h"
#include "kernel_values.h"
#include "pairs.h"
#include "triangular_solve.h"

#define SIMD_FUNCTIONS(FUNCTION)                                                                  \
    FUNCTION(void, solve_forward, (triangular_solve *))                                           \
    FUNCTION(void, solve_backward, (triangular_solve *))                                          \
    FUNCTION(void, downdate_join, (downdate *))                                                   \
    FUNCTION(void, multiply_runs,                                                                 \
             (const double *const *, const ptrdiff_t *, const ptrdiff_t *, ptrdiff_t, ptrdiff_t,  \
              const long long *, ptrdiff_t, const double *, double *))                            \
    FUNCTION(ptrdiff_t, pairs_descend, (pair_descent *))                                          \
    FUNCTION(void, pairs_move_together,                                                           \
             (pair_descent *, const long long *, const double *, ptrdiff_t))                      \
    FUNCTION(void, kernel_values, (kernel_job *, ptrdiff_t))                                      \
    FUNCTION(void, kernel_values_by_lists, (kernel_job *, ptrdiff_t))                             \
    FUNCTION(void, kernel_pack, (const kernel_rows *, int, double *))                             \
    FUNCTION(void, kernel_diagonal, (kernel_job *, ptrdiff_t, const double *, double *))          \
    FUNCTION(void, kernel_row_products,                                                           \
             (ptrdiff_t, const double *, ptrdiff_t, const long long *, ptrdiff_t, double *))      \
    FUNCTION(void, kernel_norms, (const kernel_rows *, ptrdiff_t, ptrdiff_t, double *))           \
    FUNCTION(ptrdiff_t, count_nonzeros, (ptrdiff_t, const double *))                              \
    FUNCTION(void, whole_convert, (ptrdiff_t, const double *, float *, int *, int *))             \
    FUNCTION(void, whole_add, (double *, const float *, ptrdiff_t, ptrdiff_t))                    \
    FUNCTION(void, twofold_add_row,                                                               \
             (double *, double *, const double *, const double *, const double *, double, double, \
              ptrdiff_t, ptrdiff_t))                                                              \
    FUNCTION(void, twofold_add_terms,                                                             \
             (double *, double *, const double *, const double *, double, ptrdiff_t, ptrdiff_t))  \
    FUNCTION(void, twofold_multiply_row,                                                          \
             (const double *, const double *, const double *, const double *, const double *,     \
              ptrdiff_t, ptrdiff_t, double *, double *))                                          \
    FUNCTION(void, twofold_centre_row,                                                            \
             (double *, const double *, const double *, const double *, const double *,           \
              const double *, const double *, double, double, ptrdiff_t, ptrdiff_t))

#define SIMD_MEMBER(RESULT, NAME, ARGUMENTS) RESULT (*NAME) ARGUMENTS;

typedef struct {
    ptrdiff_t vec; /* numbers of double precision in a register */
    SIMD_FUNCTIONS(SIMD_MEMBER)
} simd_table;

#endif
