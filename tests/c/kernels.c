/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The loops of one SIMD level against plain ones, and the thread pool, without Python: so they can
 * be compiled for another CPU and run on an emulator of it. See `make test-c` and `test-aarch64`.
 *
 *     cc -DSIMD_LEVEL=v3 -march=x86-64-v3 -I src/adiabat/_core tests/c/kernels.c \
 *        src/adiabat/_core/simd_level.c src/adiabat/_core/thread_pool.c -lm -lpthread
 */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simd_table.h"
#include "thread_pool.h"
#include "twofold.h"

#define PASTE(LEVEL) simd_table_##LEVEL
#define NAME(LEVEL) PASTE(LEVEL)
#define TABLE NAME(SIMD_LEVEL)
extern const simd_table TABLE;

static int failures;
static thread_pool *pool;

static void expect(int holds, const char *what, long a, long b)
{
    if (!holds && ++failures < 20)
        printf("failed: %s (%ld, %ld)\n", what, a, b);
}

static uint64_t state = 1;

/* Between -1 and 1. */
static double draw(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double) (int64_t) (state >> 11) / (double) (1LL << 52) - 1.0;
}

static double *numbers(ptrdiff_t n)
{
    char *room = malloc((size_t) (n + 32) * sizeof(double));
    if (room == NULL)
        abort();
    double *x = (double *) (room + 64 - (uintptr_t) room % 64); /* never freed: the test is short */
    for (ptrdiff_t i = 0; i < n; i++)
        x[i] = draw();
    return x;
}

static double *copy_of(const double *x, ptrdiff_t n)
{
    return memcpy(numbers(n), x, (size_t) n * sizeof(double));
}

static double largest_difference(ptrdiff_t n, const double *x, const double *y)
{
    double most = 0.0;
    for (ptrdiff_t i = 0; i < n; i++) {
        double off = fabs(x[i] - y[i]);
        most = off > most || off != off ? off : most;
    }
    return most;
}

static int same_bits(ptrdiff_t n, const double *x, const double *y)
{
    return memcmp(x, y, (size_t) n * sizeof(double)) == 0;
}

/* A well-conditioned lower triangle, its columns cap apart; garbage above and below it. */
static double *triangle(ptrdiff_t n, ptrdiff_t cap)
{
    double *L = numbers(cap * cap);
    for (ptrdiff_t j = 0; j < n; j++)
        for (ptrdiff_t i = j; i < n; i++)
            L[j * cap + i] = i == j ? 1.5 + 0.5 * draw() : draw() / sqrt((double) n);
    return L;
}

static ptrdiff_t aligned(ptrdiff_t n) { return ((n + 7) / 8 | 1) * 8; }

/* -- triangular solves ------------------------------------------------------------------------ */

static void join_forward(void *s, ptrdiff_t part)
{
    (void) part;
    TABLE.solve_forward(s);
}

static void join_backward(void *s, ptrdiff_t part)
{
    (void) part;
    TABLE.solve_backward(s);
}

static void plain_forward(ptrdiff_t n, const double *L, ptrdiff_t cap, double *x)
{
    for (ptrdiff_t j = 0; j < n; j++) {
        x[j] /= L[j * cap + j];
        for (ptrdiff_t i = j + 1; i < n; i++)
            x[i] -= L[j * cap + i] * x[j];
    }
}

static void plain_backward(ptrdiff_t n, const double *L, ptrdiff_t cap, double *x)
{
    for (ptrdiff_t j = n - 1; j >= 0; j--) {
        for (ptrdiff_t i = j + 1; i < n; i++)
            x[j] -= L[j * cap + i] * x[i];
        x[j] /= L[j * cap + j];
    }
}

static void test_solves(void)
{
    static const int sizes[] = {1, 2, 7, 8, 9, 31, 63, 64, 65, 100, 129, 200, 391};
    static const int many[] = {1, 2, 3, 4, 5, 8, 9, 16, 31, 64};
    for (size_t a = 0; a < sizeof(sizes) / sizeof(int); a++) {
        ptrdiff_t n = sizes[a], cap = aligned(n);
        double *L = triangle(n, cap);
        for (size_t b = 0; b < sizeof(many) / sizeof(int); b++) {
            ptrdiff_t k = many[b], room = (k + 7) / 8 * 8;
            double *given = numbers(room * n), *plain = copy_of(given, room * n);
            double *single = numbers(n);
            for (ptrdiff_t c = 0; c < k; c++)
                plain_forward(n, L, cap, plain + c * n);
            for (int threads = 1; threads <= 3; threads += 2) {
                double *x = copy_of(given, room * n);
                triangular_solve s = {.L = L, .x = x, .n = n, .cap = cap, .line = n, .k = k};
                wavefront_begin(&s.blocks);
                pool_resize(pool, threads);
                pool_share(pool, join_forward, &s, threads);
                expect(largest_difference(k * n, x, plain) < 1e-11, "forward solve", n, k);
                for (ptrdiff_t c = 0; c < k; c++) { /* its bits are those of a solve by itself */
                    memcpy(single, given + c * n, (size_t) n * sizeof(double));
                    triangular_solve own = {.L = L, .x = single, .n = n, .cap = cap, .k = 1};
                    wavefront_begin(&own.blocks);
                    TABLE.solve_forward(&own);
                    expect(same_bits(n, single, x + c * n), "bits of a forward solve", n, k);
                }
            }
        }
        for (ptrdiff_t first = 0; first < n; first += 1 + n / 5) {
            double *x = numbers(n);
            memset(x, 0, (size_t) first * sizeof(double));
            double *plain = copy_of(x, n);
            triangular_solve s = {.L = L, .x = x, .first = first, .n = n, .cap = cap, .k = 1};
            wavefront_begin(&s.blocks);
            TABLE.solve_forward(&s);
            plain_forward(n, L, cap, plain);
            expect(largest_difference(n, x, plain) < 1e-11, "solve from a row on", n, first);
        }
        double *given = numbers(n), *plain = copy_of(given, n), *once = NULL;
        plain_backward(n, L, cap, plain);
        for (int threads = 1; threads <= 3; threads++) {
            double *x = copy_of(given, n);
            triangular_solve s = {.L = L, .x = x, .n = n, .cap = cap, .k = 1};
            wavefront_begin(&s.blocks);
            pool_resize(pool, threads);
            pool_share(pool, join_backward, &s, threads);
            expect(largest_difference(n, x, plain) < 1e-11, "backward solve", n, threads);
            once = once ? once : x;
            expect(same_bits(n, x, once), "bits of a backward solve", n, threads);
        }
    }
}

/* -- downdates -------------------------------------------------------------------------------- */

static void join_downdate(void *d, ptrdiff_t part)
{
    (void) part;
    TABLE.downdate_join(d);
}

/* (L L')[i, j], i >= j */
static double product(const double *L, ptrdiff_t cap, ptrdiff_t i, ptrdiff_t j)
{
    double sum = 0.0;
    for (ptrdiff_t m = 0; m <= j; m++)
        sum += L[m * cap + i] * L[m * cap + j];
    return sum;
}

static void check_downdate(ptrdiff_t n, ptrdiff_t k)
{
    ptrdiff_t cap = aligned(n), whole = (n + DOWNDATE_BLOCK - 1) / DOWNDATE_BLOCK * DOWNDATE_BLOCK;
    double *given = triangle(n, cap), *z = numbers(n), *products = numbers(n * n), *once = NULL;
    for (ptrdiff_t j = 0; j < n; j++)
        for (ptrdiff_t i = j; i < n; i++)
            products[j * n + i] = product(given, cap, i, j);
    long long *removed = malloc((size_t) k * sizeof(long long));
    char *gone = calloc(1, (size_t) n);
    for (ptrdiff_t c = 0; c < k; c++) { /* some neighbours, some apart */
        removed[c] = c * n / k + (c % 3 == 1 ? (long long) (n / k / 2) : 0);
        gone[removed[c]] = 1;
    }
    for (int threads = 1; threads <= 3; threads++) {
        double *L = copy_of(given, cap * cap), *row = copy_of(z, n);
        downdate d = {.L = L, .z = row, .removed = removed, .k = k, .size = n, .cap = cap};
        d.room = numbers(DOWNDATE_GROUPS * DOWNDATE_KEPT * whole);
        wavefront_begin(&d.blocks);
        for (int g = 0; g < DOWNDATE_GROUPS; g++)
            word_store(&d.done[g], 0);
        pool_resize(pool, threads);
        pool_share(pool, join_downdate, &d, n - removed[0] > DOWNDATE_SMALL ? threads : 1);
        for (ptrdiff_t j = 0; j < n; j++)
            for (ptrdiff_t i = j; i < n; i++)
                if (gone[i] || gone[j])
                    expect(L[j * cap + i] == (i == j), "identity of a removed row", n, k);
                else
                    expect(fabs(product(L, cap, i, j) - products[j * n + i]) < 1e-12,
                           "L L' of those that stay", n, k);
        for (ptrdiff_t i = 0; i < n; i++) { /* z is a further row: L z stays, of rows that stay */
            double before = 0.0, after = 0.0;
            for (ptrdiff_t j = 0; j <= i; j++) {
                before += given[j * cap + i] * z[j];
                after += L[j * cap + i] * row[j];
            }
            expect(gone[i] ? row[i] == 0.0 : fabs(before - after) < 1e-12, "L z", n, k);
        }
        once = once ? once : L;
        for (ptrdiff_t j = 0; j < n; j++)
            expect(same_bits(n - j, L + j * cap + j, once + j * cap + j), "bits", n, threads);
    }
    free(removed);
    free(gone);
}

static void test_downdates(void)
{
    static const int many[] = {1, 2, 3, 4, 5, 8, 9, 17, 33};
    static const int sizes[] = {1, 5, 32, 33, 64, 71, 100, 150, 340};
    for (size_t a = 0; a < sizeof(sizes) / sizeof(int); a++)
        for (size_t b = 0; b < sizeof(many) / sizeof(int); b++)
            if (2 * many[b] <= sizes[a] || many[b] == 1)
                check_downdate(sizes[a], many[b]);
}

/* -- products --------------------------------------------------------------------------------- */

static void test_runs(void)
{
    enum { WIDTH = 128, PANELS = 3, RUNS = 6, ROWS = 20 };
    double *data[PANELS], *coef = numbers(WIDTH * PANELS), out[ROWS];
    ptrdiff_t panel[RUNS] = {2, 0, 0, 1, 1, 1}, from[RUNS] = {0, 8, 64, 0, 24, 120};
    ptrdiff_t length[RUNS] = {WIDTH, 8, 40, 16, 72, 8}, first[RUNS];
    const double *top[RUNS];
    long long rows[ROWS];
    for (int p = 0; p < PANELS; p++)
        data[p] = numbers(2 * ROWS * WIDTH);
    for (int i = 0; i < ROWS; i++)
        rows[i] = (7 * i + 3) % (2 * ROWS);
    for (int k = 0; k < RUNS; k++)
        top[k] = data[panel[k]] + from[k], first[k] = panel[k] * WIDTH + from[k];
    for (ptrdiff_t n = 0; n <= RUNS; n++) {
        TABLE.multiply_runs(top, first, length, n, WIDTH, rows, ROWS, coef, out);
        for (int i = 0; i < ROWS; i++) {
            double sum = 0.0;
            for (ptrdiff_t k = 0; k < n; k++)
                for (int j = 0; j < length[k]; j++)
                    sum += top[k][rows[i] * WIDTH + j] * coef[first[k] + j];
            expect(fabs(out[i] - sum) < 1e-12, "rows of runs", n, i);
        }
    }
}

/* -- kernel values ---------------------------------------------------------------------------- */

enum { N_KERNELS = 5, N_ROWS = 70, N_COLUMNS = 53 };

static double plain_value(const kernel_job *job, const double *a, const double *b)
{
    long double product = 0.0L, square = 0.0L, size = 0.0L, quotient = 0.0L;
    for (ptrdiff_t j = 0; j < job->rows.n_features; j++) {
        long double d = (long double) a[j] - b[j], s = (long double) a[j] + b[j];
        product += (long double) a[j] * b[j];
        square += d * d;
        size += d < 0.0L ? -d : d;
        quotient += s > 0.0L ? d * d / s : 0.0L;
    }
    switch (job->kernel) {
    case KERNEL_LINEAR: return (double) product;
    case KERNEL_POLY: return pow((double) (job->gamma * product + job->coef0), job->degree);
    case KERNEL_RBF: return exp((double) (-job->gamma * square));
    case KERNEL_LAPLACIAN: return exp((double) (-job->gamma * size));
    default: return exp((double) (-job->gamma * quotient));
    }
}

/* Kernel values of rows and columns into out (rows, columns), part by part. */
static void evaluate(kernel_job *job, kernel_rows rows, kernel_rows columns, double *out)
{
    ptrdiff_t lanes = (columns.n + TABLE.vec - 1) / TABLE.vec * TABLE.vec;
    double *table = numbers(lanes * rows.n_features), *norm = numbers(lanes);
    double *row_norm = numbers(rows.n), *tops[N_COLUMNS];
    memset(norm, 0, (size_t) lanes * sizeof(double));
    TABLE.kernel_norms(&rows, 0, rows.n, row_norm);
    TABLE.kernel_norms(&columns, 0, columns.n, norm);
    for (ptrdiff_t j = 0; j < columns.n; j++) {
        tops[j] = out + j;
        if (job->kernel == KERNEL_POLY)
            norm[j] = sqrt(norm[j]);
    }
    for (ptrdiff_t i = 0; i < rows.n; i++)
        if (job->kernel == KERNEL_POLY)
            row_norm[i] = sqrt(row_norm[i]);
    TABLE.kernel_pack(&columns, rows.feature == NULL, table);
    rows.norm = row_norm;
    job->rows = rows, job->columns = columns, job->table = table, job->column_norm = norm;
    job->out = tops, job->step = columns.n, job->part_rows = 2 * KERNEL_PATCH_ROWS;
    for (ptrdiff_t part = 0; part * job->part_rows < rows.n; part++)
        TABLE.kernel_values(job, part);
    expect(!job->strange && !job->no_memory, "finite values", job->kernel, rows.n_features);
}

static void test_kernel_values(void)
{
    static const ptrdiff_t features[] = {1, 3, 32, 33, 129, 300};
    for (int f = 0; f < 6; f++) {
        ptrdiff_t p = features[f];
        double *dense = numbers(N_ROWS * p), value[N_ROWS * 300];
        double out[N_ROWS * N_COLUMNS], other[N_ROWS * N_COLUMNS];
        int64_t start[N_ROWS], length[N_ROWS], entries = 0;
        int32_t feature[N_ROWS * 300];
        for (int i = 0; i < N_ROWS; i++) {
            start[i] = entries;
            for (ptrdiff_t j = 0; j < p; j++) {
                double *x = dense + i * p + j;
                *x = draw() < 0.03 * i - 0.8 ? fabs(*x) + (i % 3 == 0 ? 100.0 : 0.0) : 0.0;
                if (*x != 0.0) {
                    feature[entries] = (int32_t) j;
                    value[entries++] = *x;
                }
            }
            length[i] = entries - start[i];
            expect(TABLE.count_nonzeros(p, dense + i * p) == length[i], "nonzeros", i, p);
        }
        memcpy(dense + (N_ROWS - 1) * p, dense, (size_t) p * sizeof(double));
        kernel_rows rows = {dense, NULL, NULL, NULL, NULL, N_ROWS - 1, p};
        kernel_rows sparse = {value, feature, start, length, NULL, N_ROWS - 1, p};
        for (int kernel = 0; kernel < N_KERNELS; kernel++)
            for (ptrdiff_t k = 1; k <= N_COLUMNS; k = k < 14 ? k + 1 : k + 13) {
                kernel_job job = {.kernel = (kernel_name) kernel, .degree = 3,
                                  .gamma = 0.5 / (double) p, .coef0 = 0.25};
                kernel_rows columns = rows, sparse_columns = sparse;
                columns.n = sparse_columns.n = k;
                evaluate(&job, rows, columns, out);
                for (int i = 0; i < N_ROWS - 1; i++)
                    for (ptrdiff_t j = 0; j < k; j++) {
                        double right = plain_value(&job, dense + i * p, dense + j * p);
                        double lost = kernel > 1 && right > 0.0 ? 1.0 - log(right) : 1.0;
                        /* 1e-14 times a value below 1e-308 would round to 0. */
                        expect(fabs(out[i * k + j] - right) <= 1e-14 * lost * fabs(right),
                               "kernel value", kernel, p);
                        if (i < k)
                            expect(out[i * k + j] == out[j * k + i], "k(a, b) = k(b, a)", i, j);
                        if (kernel > 1 && i == j)
                            expect(out[i * k + j] == 1.0, "k(x, x) = 1", kernel, i);
                    }
                evaluate(&job, sparse, sparse_columns, other);
                expect(same_bits((N_ROWS - 1) * k, out, other), "by entries", kernel, k);
                evaluate(&job, sparse, columns, other);
                expect(same_bits((N_ROWS - 1) * k, out, other), "against dense", kernel, k);
            }
    }
}

/* -- twice the precision ---------------------------------------------------------------------- */

static void test_twofold(void)
{
    enum { N = 45 };
    double *hi = numbers(N), *lo = numbers(N), *z = numbers(N), *rest = numbers(N);
    double upper[N], lower[N], h[N], l[N], out[N], a = 1.0 / 3.0, a_rest = 1e-17;
    for (int j = 0; j < N; j++) {
        lo[j] = hi[j] * 1e-17 * lo[j];
        rest[j] = z[j] * 1e-17 * rest[j];
        upper[j] = upper_half(z[j]);
        lower[j] = z[j] - upper[j];
    }
    double a_upper = upper_half(a), a_lower = a - upper_half(a);
    for (int start = 0; start < 9; start++) {
        memcpy(h, hi, sizeof(h));
        memcpy(l, lo, sizeof(l));
        TABLE.twofold_add_row(h, l, z, upper, lower, a, a_rest, start, N);
        TABLE.twofold_centre_row(out, hi, lo, z, upper, lower, rest, a, a_rest, start, N);
        for (int j = start; j < N; j++) { /* all errors are exact: the same bits at every level */
            double s = hi[j], t = lo[j], p = a * z[j];
            double e = product_error(p, a_upper, a_lower, upper[j], lower[j]);
            accumulate(&s, &t, p, e + a_rest * z[j]);
            expect(h[j] == s && l[j] == t, "row added to twice the precision", start, j);
            s = hi[j], t = lo[j];
            accumulate(&s, &t, p, e + a_rest * z[j] + a * rest[j]);
            expect(out[j] == s + t, "row centred to twice the precision", start, j);
        }
        memcpy(h, hi, sizeof(h));
        memcpy(l, lo, sizeof(l));
        TABLE.twofold_add_terms(h, l, z, start % 2 ? NULL : rest, -1.0, start, N);
        for (int j = start; j < N; j++) {
            double s = hi[j], t = lo[j];
            accumulate(&s, &t, -z[j], start % 2 ? 0.0 : -rest[j]);
            expect(h[j] == s && l[j] == t, "terms added to twice the precision", start, j);
        }
        double y[N] = {0}, y_rest[N] = {0}, plain[N] = {0}, plain_rest[N] = {0};
        TABLE.twofold_multiply_row(hi, lo, z, upper, lower, start, N, y, y_rest);
        for (int j = start; j < N; j++)
            for (int side = j == start; side < 2; side++) { /* the row, and its mirror image */
                int to = side ? start : j, from = side ? j : start;
                double p = hi[j] * z[from], u = upper_half(hi[j]);
                double e = product_error(p, u, hi[j] - u, upper[from], lower[from]);
                gather(&plain[to], &plain_rest[to], p, e + lo[j] * z[from]);
            }
        for (int j = 0; j < N; j++)
            expect(fabs((y[j] - plain[j]) + (y_rest[j] - plain_rest[j])) < 1e-30,
                   "product to twice the precision", start, j);
    }
}

static void test_whole(void)
{
    enum { N = 37 };
    double x[N], total[N] = {0};
    float z[N];
    int squares[N] = {0}, strange = 0;
    for (int j = 0; j < N; j++)
        x[j] = 14 * j - 255;
    TABLE.whole_convert(N, x, z, squares, &strange);
    TABLE.whole_add(total, z, 3, N);
    for (int j = 0; j < N; j++) {
        expect((double) z[j] == x[j] && squares[j] == (int) (x[j] * x[j]), "whole number", j, 0);
        expect(total[j] == (j < 3 ? 0.0 : x[j]), "sum of whole numbers", j, 0);
    }
    expect(!strange, "all are whole", 0, 0);
    static const double odd[] = {0.5, 256.0, -256.0, NAN, INFINITY, 1e300};
    for (size_t a = 0; a < sizeof(odd) / sizeof(double); a++) {
        strange = 0;
        x[N - 1] = odd[a];
        TABLE.whole_convert(N, x, z, squares, &strange);
        expect(strange, "one is not whole, or not small", (long) a, 0);
    }
}

/* -- the thread pool -------------------------------------------------------------------------- */

enum { PARTS = 10000 };
static atomic_word times[PARTS];

static void count(void *context, ptrdiff_t part)
{
    (void) context;
    word_add(&times[part], 1);
}

static void nest(void *context, ptrdiff_t part)
{
    pool_share(context, count, NULL, 10);
    (void) part;
}

static atomic_word begun;

/* The second part takes long; the first ends as soon as that has begun, on another thread. */
static void lag(void *context, ptrdiff_t part)
{
    int64_t until = clock_now() + 3000000;
    (void) context;
    if (part == 1)
        word_store(&begun, 1);
    while (part == 0 ? word_load(&begun) == 0 : clock_now() < until)
        thread_yield();
}

static void report(void *context, ptrdiff_t part)
{
    if (part == 0)
        pool_stalled(context, 1000000);
}

/* Whether the caller is alone after a job, or so late that it need not be any more. */
static int alone_after(pool_task task, int64_t after)
{
    int64_t started = clock_now();
    word_store(&begun, 0);
    pool_share(pool, task, pool, 2);
    return pool_alone(pool) || clock_now() - started > 20 * after;
}

static void test_stalls(void)
{
    int noticed = 0;
    pool_resize(pool, 2);
    expect(!pool_alone(pool), "threads work together", 0, 0);
    expect(alone_after(report, 1000000), "alone after a stall", 0, 0);
    for (int64_t until = clock_now() + 22000000; clock_now() < until;)
        thread_yield();
    expect(!pool_alone(pool), "together again", 0, 0);
    for (int tries = 0; tries < 100 && !noticed; tries++) /* on a busy machine work takes long, too */
        noticed = alone_after(lag, 3000000);
    expect(noticed, "a long wait is noticed", 0, 0);
    while (pool_alone(pool))
        thread_yield();
}

static void test_pool(void)
{
    for (int threads = 1; threads <= 5; threads++)
        for (ptrdiff_t parts = 0; parts <= PARTS; parts = 7 * parts / 3 + 1) {
            pool_resize(pool, threads);
            pool_wake(pool);
            for (int i = 0; i < PARTS; i++)
                word_store(&times[i], 0);
            pool_share(pool, count, NULL, parts);
            for (int i = 0; i < PARTS; i++)
                expect(word_load(&times[i]) == (i < parts), "each part once", parts, i);
        }
    for (int i = 0; i < PARTS; i++)
        word_store(&times[i], 0);
    pool_share(pool, nest, pool, 30);
    for (int i = 0; i < 10; i++)
        expect(word_load(&times[i]) == 30, "a job within a job", i, 0);
    pool_resize(pool, 100);
    expect(pool_size(pool) == POOL_MOST, "so many threads and no more", pool_size(pool), 0);
}

int main(void)
{
    pool = pool_new();
    test_pool();
    test_stalls();
    test_solves();
    test_downdates();
    test_runs();
    test_kernel_values();
    test_twofold();
    test_whole();
    printf("%s: %d numbers in a register, %s\n", __FILE__, (int) TABLE.vec,
           failures ? "FAILED" : "all as plain loops have it");
    return failures > 0;
}
