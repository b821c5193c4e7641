/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Kernel values, patch by patch: PATCH_ROWS rows against the columns of one panel of a table. The
 * sums over the features (kernel_sums_simd.h) become values while they are in the cache.
 *
 * A patch has lines. A line has one row in common, or one column where the columns do not fill a
 * vector; the places of the line are the columns, or the rows.
 *
 * rbf. With at most KERNEL_FEW_FEATURES features, d^2 is a sum of squared differences. With more it
 * is ||a||^2 + ||b||^2 - 2 <a, b>, off by about eps (||a||^2 + ||b||^2). The value exp(-gamma d^2)
 * is known to eps max(1, gamma d^2) at best. Where gamma times the former is more than RBF_LOSS
 * times the latter, the entry is summed again, from differences: by itself where such entries are
 * few, else with its group of rows. In data far from zero that holds for nearly all entries. Then differences are summed first, and products only where it is in doubt
 * which of the two the rule asks for.
 *
 * poly. Where |gamma <a, b> + coef0| is below gamma ||a|| ||b|| / POLY_LOSS, the product is summed
 * again to twice the precision.
 *
 * linear. A product is right to eps ||a|| ||b||, which is all that matters: such an error is that of
 * a kernel matrix of rows changed in their last bits. The same holds for poly above its threshold.
 */
#ifndef ADIABAT_KERNEL_VALUES_SIMD_H
#define ADIABAT_KERNEL_VALUES_SIMD_H

#include <stdlib.h>

#include "kernel_exact_simd.h"
#include "kernel_sums_simd.h"

enum {
    PATCH_MOST = PATCH_ROWS * PATCH_LANES,
    CHAINS = REGISTERS / 2, /* sums side by side of vectors that stand apart, */
    FEW_FLAGGED = 3         /* if no more than this part of them is flagged */
};

#define RBF_LOSS 8.0
#define RBF_SURELY 8.1   /* farther from RBF_LOSS than a product can be off */
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
        for (ptrdiff_t l = 0; l < t->k; l++)
            line_sums(kind, !rows->start, rows->n_features, t->row, t->columns[l], t->n_places[l],
                      t->places[l], to + l * PATCH_ROWS);
        return;
    }
    if (rows->feature && kind == TERM_PRODUCT && t->job->columns.n == 1) {
        memset(to + t->m, 0, (size_t) (PATCH_ROWS - t->m) * sizeof(double));
        entry_line_sums(rows, t->first, t->m, t->columns[0], to);
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

static void powers(ptrdiff_t n, double degree, const double *x, double *to)
{
    const int whole = (int)degree;
    if (whole != degree) { /* of a base below 0 it is not a number, which is reported */
        for (ptrdiff_t i = 0; i < n; i++)
            to[i] = pow(x[i], degree);
        return;
    }
    for (ptrdiff_t i = 0; i < n; i += VEC) {
        vec base = vec_load(x + i), power = whole ? base : vec_setall(1.0);
        for (int d = 1; d < whole; d++)
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

/* Squared differences summed for some vectors of a patch of dense rows, by their places in it; many
 * chains side by side, each in the order of a tile. */
static void some_squares(const patch *t, ptrdiff_t count, const ptrdiff_t *places, double *to)
{
    const ptrdiff_t n_features = t->job->rows.n_features, wide = t->wide, each = wide / VEC;
    for (ptrdiff_t p = 0; p < count; p += CHAINS) {
        const ptrdiff_t some = count - p < CHAINS ? count - p : CHAINS;
        const double *row[CHAINS], *column[CHAINS];
        vec total[CHAINS], sum[CHAINS];
        UNROLL for (int c = 0; c < CHAINS; c++) {
            const ptrdiff_t place = places[p + (c < some ? c : 0)];
            row[c] = t->row[place / each];
            column[c] = t->panel + place % each * VEC;
            total[c] = vec_zero();
        }
        for (ptrdiff_t j = 0; j < n_features;) {
            const ptrdiff_t last = n_features - j > SUM_BLOCK ? j + SUM_BLOCK : n_features;
            UNROLL for (int c = 0; c < CHAINS; c++)
                sum[c] = vec_zero();
            for (; j < last; j++)
                UNROLL for (int c = 0; c < CHAINS; c++)
                    sum[c] = add_term(TERM_SQUARE, vec_setall(row[c][j]),
                                      vec_load(column[c] + j * wide), sum[c]);
            UNROLL for (int c = 0; c < CHAINS; c++)
                total[c] = vec_add(total[c], sum[c]);
        }
        UNROLL for (int c = 0; c < CHAINS; c++)
            if (c < some)
                vec_store(to + places[p + c] * VEC, total[c]);
    }
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
        ptrdiff_t places[PATCH_MOST / VEC], count = 0, vectors = t->n_lines * n / VEC;
        for (ptrdiff_t v = 0; v < vectors; v++) {
            places[count] = v;
            count += t->flag[v] != 0;
        }
        if (!t->differences_first) {
            if (!job->rows.feature && !t->by_columns && FEW_FLAGGED * count <= vectors)
                some_squares(t, count, places, t->other);
            else
                patch_sums(t, TERM_SQUARE, groups, t->other);
        }
        for (ptrdiff_t p = 0; p < count; p++)
            for (int l = 0; l < VEC; l++)
                if (t->flag[places[p]] >> l & 1)
                    t->value[places[p] * VEC + l] = t->other[places[p] * VEC + l];
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
    t->by_lines = job->columns.n <= FEW_COLUMNS && m == PATCH_ROWS && !job->rows.feature;
    if (!job->rows.feature)
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
    ptrdiff_t few = job->columns.n > FEW_COLUMNS ? 0 : job->columns.n;
    size_t numbers = (size_t) ((job->rows.feature ? GROUP_ROWS + few : few) * p);
    double *room = malloc(numbers * sizeof(double) + (size_t) (few * p + 1) * sizeof(ptrdiff_t));
    patch t;
    if (!room) {
        job->no_memory = 1;
        return;
    }
    t.job = job, t.expanded = room + few * p, t.differences_first = 0;
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

#endif
