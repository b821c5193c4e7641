/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Products of rows to twice the precision, for entries in which terms cancel. Feature j is added in
 * lane j mod EXACT_LANES, so that dense rows and entries have the same bits.
 */
#ifndef ADIABAT_KERNEL_EXACT_SIMD_H
#define ADIABAT_KERNEL_EXACT_SIMD_H

#include <string.h>

#include "kernel_values.h"
#include "simd.h"
#include "twofold.h"

enum { EXACT_SUMS = 2, EXACT_LANES = EXACT_SUMS * VEC };

/* sum + rest += a * b */
ALWAYS_INLINE void add_exact_product(double a, double b, double *sum, double *rest)
{
    double p = a * b;
#if FUSED
    gather(sum, rest, p, muladd(a, b, -p));
#else
    double a_upper = upper_half(a), b_upper = upper_half(b);
    gather(sum, rest, p, product_error(p, a_upper, a - a_upper, b_upper, b - b_upper));
#endif
}

static void add_dense_products(ptrdiff_t n, const double *a, const double *b, double *sum,
                               double *rest)
{
    ptrdiff_t j = 0;
#if FUSED
    vec total[EXACT_SUMS], lost[EXACT_SUMS];
    for (int s = 0; s < EXACT_SUMS; s++)
        total[s] = lost[s] = vec_zero();
    for (; j + EXACT_LANES <= n; j += EXACT_LANES)
        for (int s = 0; s < EXACT_SUMS; s++) { /* gather() in vectors */
            vec x = vec_load(a + j + s * VEC), y = vec_load(b + j + s * VEC), p = vec_mul(x, y);
            vec now = vec_add(total[s], p), part = vec_sub(now, total[s]);
            vec error = vec_add(vec_sub(total[s], vec_sub(now, part)), vec_sub(p, part));
            lost[s] = vec_add(lost[s], vec_sub(error, vec_nmuladd(x, y, p)));
            total[s] = now;
        }
    for (int s = 0; s < EXACT_SUMS; s++) {
        vec_store(sum + s * VEC, total[s]);
        vec_store(rest + s * VEC, lost[s]);
    }
#endif
    for (; j < n; j++)
        add_exact_product(a[j], b[j], sum + j % EXACT_LANES, rest + j % EXACT_LANES);
}

/* Entries of a row of A, times those of a row of B, dense or by entries. */
static void add_entry_products(const kernel_rows *A, ptrdiff_t i, const kernel_rows *B,
                               ptrdiff_t j, double *sum, double *rest)
{
    int64_t q = B->feature ? B->start[j] : 0, q_end = B->feature ? q + B->length[j] : 0;
    const double *dense = B->feature ? NULL : kernel_dense_row(B, j);
    for (int64_t p = A->start[i]; p < A->start[i] + A->length[i]; p++) {
        int32_t f = A->feature[p], lane = f % EXACT_LANES;
        while (q < q_end && B->feature[q] < f)
            q++;
        double b = dense ? dense[f] : q < q_end && B->feature[q] == f ? B->value[q] : 0.0;
        add_exact_product(A->value[p], b, sum + lane, rest + lane);
    }
}

/* gamma <a, b> + coef0 for row i of A and row j of B, rounded once but for what cancels twice over. */
static double exact_base(const kernel_rows *A, ptrdiff_t i, const kernel_rows *B, ptrdiff_t j,
                         double gamma, double coef0)
{
    double sum[EXACT_LANES] = {0}, rest[EXACT_LANES] = {0};
    if (A->feature)
        add_entry_products(A, i, B, j, sum, rest);
    else if (B->feature)
        add_entry_products(B, j, A, i, sum, rest);
    else
        add_dense_products(A->n_features, kernel_dense_row(A, i), kernel_dense_row(B, j), sum,
                           rest);
    for (int l = 1; l < EXACT_LANES; l++)
        gather(sum, rest, sum[l], rest[l]);
    double base = coef0, low = gamma * rest[0];
    add_exact_product(gamma, sum[0], &base, &low);
    return base + low;
}

#endif
