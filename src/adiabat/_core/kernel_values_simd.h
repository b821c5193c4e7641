/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Kernel values, patch by patch: PATCH_ROWS rows against the columns of one panel of a table. The
 * sums over the features (kernel_sums_simd.h) are made into values while they are in the cache.
 *
 * A patch has lines, each with one norm of its own and one for every place in it. Lines are rows,
 * or columns where these are too few to fill a vector.
 *
 * rbf. With few features, squared distances are sums of squared differences. With more they are
 * ||a||^2 + ||b||^2 - 2 <a, b>, which rounds by about eps (||a||^2 + ||b||^2). What counts is the
 * exponent gamma d^2, of which eps max(1, gamma d^2) is lost in any case. Where the former is more
 * than RBF_LOSS times the latter, the entry is summed from differences. In data that lie far from
 * zero these are nearly all entries, so that differences are summed first, and products only where
 * the distance does not show that the rule would have asked for differences.
 *
 * poly. Where gamma <a, b> + coef0 is small for gamma ||a|| ||b||, the product is summed again, to
 * twice the precision.
 */
#ifndef ADIABAT_KERNEL_VALUES_SIMD_H
#define ADIABAT_KERNEL_VALUES_SIMD_H

#include <stdlib.h>

#include "kernel_sums_simd.h"

enum {
    LIST_COLUMNS = KERNEL_LIST_COLUMNS,
    PATCH_MOST = PATCH_ROWS * PATCH_LANES
};

#define RBF_LOSS 8.0
#define RBF_SURELY 8.1   /* more than rounding of the product away from RBF_LOSS */
#define POLY_LOSS 1024.0

typedef struct {
    const kernel_job *job;
    ptrdiff_t first, m, column, k; /* m rows and k columns, from these on */
    ptrdiff_t wide;                /* lanes of the panel */
    const double *panel;
    const double *row[PATCH_ROWS]; /* where rows are dense */
    double *expanded;              /* room for GROUP_ROWS of them where they are not */
    int by_columns;                /* lines are columns */
    int by_lines;                  /* and summed as such */
    const double *columns[FEW_COLUMNS];
    ptrdiff_t *places[FEW_COLUMNS], n_places[FEW_COLUMNS]; /* where they are not zero */
    ptrdiff_t n_lines, length;     /* of a line, a multiple of VEC */
    const double *line_norm, *place_norm;
    int differences_first;
    double norm[PATCH_ROWS];       /* of the rows, zeros after the last */
    double value[PATCH_MOST], other[PATCH_MOST], sums[PATCH_MOST];
    unsigned char flag[PATCH_MOST / VEC]; /* bit l: lane l is to be computed in another way */
} patch;

static const double *expand(const kernel_rows *rows, ptrdiff_t i, double *dense)
{
    if (!rows->feature)
        return kernel_dense_row(rows, i);
    memset(dense, 0, (size_t) rows->n_features * sizeof(double));
    for (int64_t p = rows->start[i]; p < rows->start[i] + rows->length[i]; p++)
        dense[rows->feature[p]] = rows->value[p];
    return dense;
}

/* Sums of terms for the groups of rows in `groups` (bits), as lines of `to`. */
static void patch_sums(patch *t, term_kind kind, unsigned groups, double *to)
{
    const kernel_rows *rows = &t->job->rows;
    double *sums = t->by_columns ? t->sums : to;
    if (t->by_lines) {
        const double *first = kernel_dense_row(rows, t->first);
        for (ptrdiff_t l = 0; l < t->k; l++)
            line_sums(kind, rows->n_features, first, t->columns[l], t->n_places[l], t->places[l],
                      to + l * PATCH_ROWS);
        return;
    }
    if (!rows->feature && groups == ~0u)
        dense_sums(kind, rows->n_features, t->m, t->row, t->panel, t->wide, sums);
    else if (rows->feature && kind == TERM_PRODUCT)
        entry_sums(rows, t->first, t->m, t->panel, t->wide, sums);
    else
        for (ptrdiff_t i = 0; i < t->m; i += GROUP_ROWS) {
            const double *row[GROUP_ROWS];
            ptrdiff_t m = t->m - i > GROUP_ROWS ? GROUP_ROWS : t->m - i;
            if (!(groups >> (i / GROUP_ROWS) & 1))
                continue;
            for (ptrdiff_t k = 0; k < GROUP_ROWS; k++)
                row[k] = k < m ? expand(rows, t->first + i + k,
                                        t->expanded + k * rows->n_features) : row[0];
            dense_sums(kind, rows->n_features, m, row, t->panel, t->wide, sums + i * t->wide);
        }
    if (t->by_columns)
        for (ptrdiff_t l = 0; l < t->k; l++) {
            for (ptrdiff_t i = 0; i < t->m; i++)
                to[l * PATCH_ROWS + i] = sums[i * t->wide + l];
            for (ptrdiff_t i = t->m; i < PATCH_ROWS; i++)
                to[l * PATCH_ROWS + i] = 0.0;
        }
}

/* ---- from sums to values, a line at a time ---------------------------------------------------- */

static void exponentials(ptrdiff_t n, double gamma, const double *x, double *to)
{
    const vec factor = vec_setall(-gamma);
    for (ptrdiff_t i = 0; i < n; i += VEC) {
        /* 0 times an infinite distance would not be a number */
        vec exponent = gamma > 0.0 ? vec_mul(vec_load(x + i), factor) : vec_zero();
        vec_store(to + i, vec_exp(exponent));
    }
}

static void powers(ptrdiff_t n, int degree, const double *x, double *to)
{
    for (ptrdiff_t i = 0; i < n; i += VEC) {
        vec base = vec_load(x + i), power = degree ? base : vec_setall(1.0);
        for (int d = 1; d < degree; d++)
            power = vec_mul(power, base);
        vec_store(to + i, power);
    }
}

/* Sums into values: distances, bases, products. */
ALWAYS_INLINE void finish(const kernel_job *job, ptrdiff_t n, const double *x, double *to)
{
    if (job->kernel == KERNEL_LINEAR)
        for (ptrdiff_t i = 0; i < n; i += VEC)
            vec_store(to + i, vec_load(x + i));
    else if (job->kernel == KERNEL_POLY)
        powers(n, job->degree, x, to);
    else
        exponentials(n, job->gamma, x, to);
}

/* Whether any of n values is not finite. */
static int not_finite(ptrdiff_t n, const double *x)
{
    unsigned any = 0;
    ptrdiff_t i = 0;
    for (; i + VEC <= n; i += VEC)
        any |= vec_exceeds(vec_abs(vec_load(x + i)), vec_setall(DBL_MAX));
    for (; i < n; i++)
        any |= !(fabs(x[i]) <= DBL_MAX);
    return any != 0;
}

/* Products into squared distances; flags where these must be summed from differences. How many. */
static ptrdiff_t rbf_distances(ptrdiff_t n, double gamma, double norm, const double *norms,
                               double *x, unsigned char *flag)
{
    const vec own = vec_setall(norm), scale = vec_setall(gamma), two = vec_setall(-2.0);
    ptrdiff_t count = 0;
    for (ptrdiff_t i = 0; i < n; i += VEC) {
        vec both = vec_add(own, vec_load(norms + i));
        vec square = vec_max(vec_muladd(two, vec_load(x + i), both), vec_zero());
        vec kept = vec_max(vec_mul(scale, square), vec_setall(1.0));
        unsigned lost = vec_exceeds(vec_mul(scale, both), vec_mul(vec_setall(RBF_LOSS), kept));
        vec_store(x + i, square);
        flag[i / VEC] = (unsigned char) lost;
        for (; lost; lost &= lost - 1)
            count++;
    }
    return count;
}

/* Whether the rule asks for differences in all n of these squared distances, however products round;
 * they are made of differences. */
static int surely_differences(ptrdiff_t n, double gamma, double norm, const double *norms,
                              const double *x)
{
    const vec own = vec_setall(norm), scale = vec_setall(gamma);
    for (ptrdiff_t i = 0; i < n; i += VEC) {
        vec both = vec_add(own, vec_load(norms + i));
        vec kept = vec_max(vec_mul(scale, vec_load(x + i)), vec_setall(1.0));
        unsigned lost = vec_exceeds(vec_mul(scale, both), vec_mul(vec_setall(RBF_SURELY), kept));
        unsigned all = n - i < VEC ? (1u << (n - i)) - 1 : (1u << VEC) - 1;
        if (all & ~lost)
            return 0;
    }
    return 1;
}

/* Products into gamma <a, b> + coef0; flags where products cancel. Norms are roots here. Whether any
 * is flagged. */
static int poly_bases(ptrdiff_t n, double gamma, double coef0, double norm, const double *norms,
                      double *x, unsigned char *flag)
{
    const vec own = vec_setall(norm), scale = vec_setall(gamma), constant = vec_setall(coef0);
    unsigned any = 0;
    for (ptrdiff_t i = 0; i < n; i += VEC) {
        vec base = vec_muladd(scale, vec_load(x + i), constant);
        vec size = vec_mul(scale, vec_mul(own, vec_load(norms + i)));
        unsigned lost = vec_exceeds(size, vec_mul(vec_setall(POLY_LOSS), vec_abs(base)));
        vec_store(x + i, base);
        flag[i / VEC] = (unsigned char) lost;
        any |= lost;
    }
    return any != 0;
}

/* ---- products to twice the precision ---------------------------------------------------------- */

enum { EXACT_SUMS = 2, EXACT_LANES = EXACT_SUMS * VEC }; /* feature j is added in lane j mod these */

ALWAYS_INLINE double two_sum(double a, double b, double *rest)
{
    double s = a + b, part = s - a;
    *rest += (a - (s - part)) + (b - part);
    return s;
}

ALWAYS_INLINE double two_product(double a, double b, double *rest)
{
    double p = a * b;
#if FUSED
    *rest += muladd(a, b, -p);
#else
    const double splitter = 134217729.0; /* 2^27 + 1: halves of 26 bits (Dekker) */
    double c = splitter * a, a1 = c - (c - a), a2 = a - a1;
    double e = splitter * b, b1 = e - (e - b), b2 = b - b1;
    *rest += a2 * b2 - (((p - a1 * b1) - a2 * b1) - a1 * b2);
#endif
    return p;
}

#if FUSED
static void exact_dense(ptrdiff_t n, const double *a, const double *b, double *sum, double *rest)
{
    vec total[EXACT_SUMS], lost[EXACT_SUMS];
    for (int s = 0; s < EXACT_SUMS; s++)
        total[s] = lost[s] = vec_zero();
    for (; n > 0; n -= EXACT_LANES, a += EXACT_LANES, b += EXACT_LANES) {
        double x[EXACT_LANES] = {0}, y[EXACT_LANES] = {0};
        int whole = n >= EXACT_LANES;
        if (!whole) {
            memcpy(x, a, (size_t) n * sizeof(double));
            memcpy(y, b, (size_t) n * sizeof(double));
        }
        for (int s = 0; s < EXACT_SUMS; s++) {
            vec u = vec_load((whole ? a : x) + s * VEC), v = vec_load((whole ? b : y) + s * VEC);
            vec p = vec_mul(u, v), old = total[s], now = vec_add(old, p), part = vec_sub(now, old);
            lost[s] = vec_sub(lost[s], vec_nmuladd(u, v, p));
            lost[s] = vec_add(lost[s], vec_add(vec_sub(old, vec_sub(now, part)),
                                               vec_sub(p, part)));
            total[s] = now;
        }
    }
    for (int s = 0; s < EXACT_SUMS; s++) {
        vec_store(sum + s * VEC, total[s]);
        vec_store(rest + s * VEC, lost[s]);
    }
}
#else
static void exact_dense(ptrdiff_t n, const double *a, const double *b, double *sum, double *rest)
{
    for (ptrdiff_t j = 0; j < n; j++) {
        double p = two_product(a[j], b[j], rest + j % EXACT_LANES);
        sum[j % EXACT_LANES] = two_sum(sum[j % EXACT_LANES], p, rest + j % EXACT_LANES);
    }
}
#endif

/* gamma <a, b> + coef0 for row i of A and row j of B, summed to twice the precision. */
static double exact_base(const kernel_rows *A, ptrdiff_t i, const kernel_rows *B, ptrdiff_t j,
                         double gamma, double coef0)
{
    double sum[EXACT_LANES] = {0}, rest[EXACT_LANES] = {0};
    if (!A->feature && !B->feature)
        exact_dense(A->n_features, kernel_dense_row(A, i), kernel_dense_row(B, j), sum, rest);
    else {
        /* entries of one, and the other's by merging or where they are */
        if (!A->feature) {
            const kernel_rows *C = A;
            ptrdiff_t k = i;
            A = B, i = j, B = C, j = k;
        }
        int64_t p = A->start[i], p_end = p + A->length[i];
        int64_t q = B->feature ? B->start[j] : 0, q_end = B->feature ? q + B->length[j] : 0;
        const double *dense = B->feature ? NULL : kernel_dense_row(B, j);
        for (; p < p_end; p++) {
            int32_t f = A->feature[p], lane = f % EXACT_LANES;
            while (q < q_end && B->feature[q] < f)
                q++;
            double b = dense ? dense[f] : q < q_end && B->feature[q] == f ? B->value[q] : 0.0;
            sum[lane] = two_sum(sum[lane], two_product(A->value[p], b, rest + lane), rest + lane);
        }
    }
    double total = sum[0], low = rest[0];
    for (int l = 1; l < EXACT_LANES; l++) {
        total = two_sum(total, sum[l], &low);
        low += rest[l];
    }
    low *= gamma;
    double high = two_product(gamma, total, &low);
    high = two_sum(high, coef0, &low);
    return high + low;
}

/* ---- patches ---------------------------------------------------------------------------------- */

static void patch_rbf(patch *t)
{
    const kernel_job *job = t->job;
    ptrdiff_t real = t->by_columns ? t->m : t->k, flagged = 0, n = t->length;
    if (t->differences_first) {
        int sure = 1;
        patch_sums(t, TERM_SQUARE, ~0u, t->other);
        for (ptrdiff_t i = 0; i < t->n_lines && sure; i++)
            sure = surely_differences(real, job->gamma, t->line_norm[i], t->place_norm,
                                      t->other + i * n);
        if (sure) {
            memcpy(t->value, t->other, (size_t) (t->n_lines * n) * sizeof(double));
            return;
        }
    }
    patch_sums(t, TERM_PRODUCT, ~0u, t->value);
    unsigned groups = 0;
    for (ptrdiff_t i = 0; i < t->n_lines; i++) {
        unsigned char *flag = t->flag + i * n / VEC;
        ptrdiff_t found = rbf_distances(n, job->gamma, t->line_norm[i], t->place_norm,
                                        t->value + i * n, flag);
        flagged += found;
        if (found && !t->by_columns)
            groups |= 1u << (i / GROUP_ROWS);
        for (ptrdiff_t v = 0; v < (found && t->by_columns ? n / VEC : 0); v++)
            groups |= (flag[v] != 0 ? 1u : 0u) << (v * VEC / GROUP_ROWS);
    }
    if (flagged) {
        if (!t->differences_first)
            patch_sums(t, TERM_SQUARE, groups, t->other);
        for (ptrdiff_t v = 0; v < t->n_lines * n / VEC; v++)
            for (int l = 0; l < VEC; l++)
                if (t->flag[v] >> l & 1)
                    t->value[v * VEC + l] = t->other[v * VEC + l];
    }
    t->differences_first = 2 * flagged > t->m * t->k;
}

static void patch_poly(patch *t)
{
    const kernel_job *job = t->job;
    ptrdiff_t n = t->length;
    patch_sums(t, TERM_PRODUCT, ~0u, t->value);
    for (ptrdiff_t i = 0; i < t->n_lines; i++) {
        double *line = t->value + i * n;
        if (poly_bases(n, job->gamma, job->coef0, t->line_norm[i], t->place_norm, line, t->flag))
            for (ptrdiff_t j = 0; j < (t->by_columns ? t->m : t->k); j++)
                if (t->flag[j / VEC] >> j % VEC & 1) {
                    ptrdiff_t row = t->by_columns ? j : i, column = t->by_columns ? i : j;
                    line[j] = exact_base(&job->rows, t->first + row, &job->columns,
                                         t->column + column, job->gamma, job->coef0);
                }
    }
}

/* Lines into values, where they belong; whether one of them is not finite. */
static int patch_finish(patch *t)
{
    const kernel_job *job = t->job;
    double *const *out = job->out + t->column;
    ptrdiff_t step = job->step, at = t->first * step, real = t->by_columns ? t->m : t->k;
    int checked = job->kernel == KERNEL_LINEAR || job->kernel == KERNEL_POLY, strange = 0;
    int in_place = t->by_columns ? step == 1 : out[t->k - 1] == out[0] + t->k - 1;
    for (ptrdiff_t l = 1; l < (in_place && !t->by_columns ? t->k : 0); l++)
        in_place &= out[l] == out[0] + l;
    for (ptrdiff_t i = 0; i < t->n_lines; i++) {
        double *line = t->value + i * t->length;
        double *to = !in_place ? line : t->by_columns ? out[i] + at : out[0] + at + i * step;
        if (real == t->length)
            finish(job, real, line, to);
        else {
            finish(job, t->length, line, line);
            if (in_place)
                memcpy(to, line, (size_t) real * sizeof(double));
        }
        if (checked)
            strange |= not_finite(real, to);
    }
    if (!in_place && t->by_columns)
        for (ptrdiff_t l = 0; l < t->k; l++)
            for (ptrdiff_t i = 0; i < t->m; i++)
                out[l][at + i * step] = t->value[l * t->length + i];
    else if (!in_place)
        for (ptrdiff_t l = 0; l < t->k; l++)
            for (ptrdiff_t i = 0; i < t->m; i++)
                out[l][at + i * step] = t->value[i * t->length + l];
    return strange;
}

/* The values of m rows and all columns. */
static int patches(patch *t, ptrdiff_t first, ptrdiff_t m)
{
    const kernel_job *job = t->job;
    ptrdiff_t panel = (job->rows.feature ? ENTRY_VECTORS : TILE_VECTORS) * VEC;
    int strange = 0;
    t->first = first, t->m = m;
    t->by_lines = job->columns.n <= FEW_COLUMNS && m == PATCH_ROWS && !job->rows.feature &&
                  !job->rows.start;
    if (!job->rows.feature && !t->by_lines)
        for (ptrdiff_t i = 0; i < PATCH_ROWS; i++)
            t->row[i] = kernel_dense_row(&job->rows, first + (i < m ? i : 0));
    if (job->rows.norm) {
        memset(t->norm + m, 0, (size_t) (PATCH_ROWS - m) * sizeof(double));
        memcpy(t->norm, job->rows.norm + first, (size_t) m * sizeof(double));
    }
    for (t->column = 0; t->column < job->columns.n; t->column += panel) {
        t->k = job->columns.n - t->column < panel ? job->columns.n - t->column : panel;
        t->wide = (t->k + VEC - 1) / VEC * VEC;
        t->panel = job->table + t->column * job->rows.n_features;
        t->by_columns = t->wide == VEC;
        t->n_lines = t->by_columns ? t->k : m;
        t->length = t->by_columns ? PATCH_ROWS : t->wide;
        t->line_norm = t->by_columns ? job->column_norm + t->column : t->norm;
        t->place_norm = t->by_columns ? t->norm : job->column_norm + t->column;
        switch (job->kernel) {
        case KERNEL_LINEAR: patch_sums(t, TERM_PRODUCT, ~0u, t->value); break;
        case KERNEL_POLY: patch_poly(t); break;
        case KERNEL_LAPLACIAN: patch_sums(t, TERM_ABSOLUTE, ~0u, t->value); break;
        case KERNEL_CHI2: patch_sums(t, TERM_QUOTIENT, ~0u, t->value); break;
        case KERNEL_RBF:
            if (job->rows.n_features > KERNEL_FEW_FEATURES)
                patch_rbf(t);
            else
                patch_sums(t, TERM_SQUARE, ~0u, t->value);
        }
        strange |= patch_finish(t);
    }
    return strange;
}

/* The values of the rows of one part, `part_rows` of them, against the columns of a table. */
static void kernel_values(kernel_job *job, ptrdiff_t part)
{
    ptrdiff_t p = job->rows.n_features, first = part * job->part_rows;
    ptrdiff_t last = first + job->part_rows < job->rows.n ? first + job->part_rows : job->rows.n;
    ptrdiff_t few = job->rows.feature || job->columns.n > FEW_COLUMNS ? 0 : job->columns.n;
    size_t numbers = (size_t) (job->rows.feature ? GROUP_ROWS * p : few * p);
    double *room = malloc(numbers * sizeof(double) + (size_t) (few * p + 1) * sizeof(ptrdiff_t));
    patch t;
    if (!room) {
        job->no_memory = 1;
        return;
    }
    t.job = job, t.expanded = room, t.differences_first = 0;
    for (ptrdiff_t l = 0; l < few; l++) {
        double *column = room + l * p;
        for (ptrdiff_t j = 0; j < p; j++)
            column[j] = job->table[j * VEC + l];
        t.columns[l] = column;
        t.places[l] = (ptrdiff_t *) (room + numbers) + l * p;
        t.n_places[l] = nonzero_places(p, column, t.places[l]);
    }
    for (; first < last; first += PATCH_ROWS)
        if (patches(&t, first, last - first < PATCH_ROWS ? last - first : PATCH_ROWS))
            job->strange = 1;
    free(room);
}

/* How many lanes a table of n columns has. */
static ptrdiff_t kernel_lanes(ptrdiff_t n) { return (n + VEC - 1) / VEC * VEC; }

/* Columns into a table of panels, each (features, lanes), with zeros after the last column. Panels
 * are narrower where the rows are dense. */
static void kernel_pack(const kernel_rows *columns, int dense_rows, double *table)
{
    ptrdiff_t n_features = columns->n_features;
    ptrdiff_t panel = (dense_rows ? TILE_VECTORS : ENTRY_VECTORS) * VEC;
    for (ptrdiff_t first = 0; first < columns->n; first += panel, table += panel * n_features) {
        ptrdiff_t k = columns->n - first < panel ? columns->n - first : panel;
        ptrdiff_t wide = kernel_lanes(k);
        if (columns->feature || k < wide)
            memset(table, 0, (size_t) (wide * n_features) * sizeof(double));
        if (columns->feature)
            for (ptrdiff_t l = 0; l < k; l++) {
                int64_t p = columns->start[first + l], end = p + columns->length[first + l];
                for (; p < end; p++)
                    table[columns->feature[p] * wide + l] = columns->value[p];
            }
        else
            for (ptrdiff_t l = 0; l < k; l++) {
                const double *row = kernel_dense_row(columns, first + l);
                for (ptrdiff_t j = 0; j < n_features; j++)
                    table[j * wide + l] = row[j];
            }
    }
}

/* Squared norms of n rows into their values with themselves. */
static void kernel_diagonal(kernel_job *job, ptrdiff_t n, const double *norm, double *out)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        double line[VEC] = {0};
        line[0] = job->kernel == KERNEL_POLY ? muladd(job->gamma, norm[i], job->coef0) : norm[i];
        finish(job, VEC, line, line);
        out[i] = line[0];
    }
    job->strange = not_finite(n, out);
}

/* ---- without a table, where features are many and entries few --------------------------------- */

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
