/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Times of the core's kernels and of the same work done by BLAS; kernels.py compiles and runs it.
 *
 *     kernels BLAS PREFIX SUFFIX THREADS SECONDS N ...
 *
 * BLAS is a shared library, whose functions are called PREFIXdtrsvSUFFIX and so on, with integers of
 * 32 bits. Each line of output: kernel, how many at once, rows, microseconds of ours on one thread,
 * of BLAS, and both on THREADS threads.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simd_table.h"
#include "thread_pool.h"

#define PASTE(LEVEL) simd_table_##LEVEL
#define NAME(LEVEL) PASTE(LEVEL)
#define TABLE NAME(SIMD_LEVEL)
extern const simd_table TABLE;

typedef const int *integer;
typedef const double *number;
static void (*trsv)(const char *, const char *, const char *, integer, number, integer, double *,
                    integer);
static void (*trsm)(const char *, const char *, const char *, const char *, integer, integer,
                    number, number, integer, double *, integer);
static void (*rot)(integer, double *, integer, double *, integer, number, number);
static void (*gemm)(const char *, const char *, integer, integer, integer, number, number, integer,
                    number, integer, number, double *, integer);
static void (*gemv)(const char *, integer, integer, number, number, integer, number, integer,
                    number, double *, integer);
static double (*dot)(integer, number, integer, number, integer);

static thread_pool *pool;
static int threads;
static double seconds;
static const int one = 1;

static double *room(size_t n)
{
    void *x = NULL;
    if (posix_memalign(&x, 64, (n + 64) * sizeof(double)) != 0)
        abort();
    return memset(x, 0, (n + 64) * sizeof(double));
}

static double draw(void) { return rand() / (RAND_MAX + 1.0) - 0.5; }

/* The least time of work, in microseconds, each time after begin. */
static double least(void (*begin)(void *), void (*work)(void *), void *context)
{
    int64_t best = INT64_MAX, until = clock_now() + (int64_t) (1e9 * seconds);
    for (int times = 0; times < 5 || clock_now() < until; times++) {
        begin(context);
        int64_t started = clock_now();
        work(context);
        int64_t taken = clock_now() - started;
        best = taken < best ? taken : best;
    }
    return 1e-3 * (double) best;
}

static void report(const char *kernel, int k, int n, void (*begin)(void *), void (*ours)(void *),
                   void (*blas)(void *), void *context)
{
    pool_resize(pool, 1);
    double alone = least(begin, ours, context), other = least(begin, blas, context);
    pool_resize(pool, threads);
    double shared = least(begin, ours, context), other_shared = least(begin, blas, context);
    printf("%s,%d,%d,%.2f,%.2f,%.2f,%.2f\n", kernel, k, n, alone, other, shared, other_shared);
    fflush(stdout);
}

static double *triangle(int n, int cap)
{
    double *L = room((size_t) cap * cap);
    for (int j = 0; j < n; j++)
        for (int i = j; i < n; i++)
            L[(size_t) j * cap + i] = i == j ? 2.0 + draw() : draw() / sqrt(n);
    return L;
}

/* -- triangular solves ------------------------------------------------------------------------ */

typedef struct {
    triangular_solve s;
    const double *given;
    int n, k, cap;
} solve;

static void begin_solve(void *context)
{
    solve *t = context;
    memcpy(t->s.x, t->given, sizeof(double) * (size_t) t->n * (size_t) t->k);
    wavefront_begin(&t->s.blocks);
}

static void join_forward(void *s, ptrdiff_t part) { (void) part, TABLE.solve_forward(s); }
static void join_backward(void *s, ptrdiff_t part) { (void) part, TABLE.solve_backward(s); }

/* More than eight x are divided among the threads, as triangle.pyx does. */
static void some_forward(void *context, ptrdiff_t part)
{
    solve *t = context;
    int step = (t->k / 8 + pool_size(pool) - 1) / pool_size(pool) * 8;
    triangular_solve own = t->s;
    own.x += part * step * t->n;
    own.k = t->k - part * step < step ? t->k - part * step : step;
    wavefront_begin(&own.blocks);
    if (own.k > 0)
        TABLE.solve_forward(&own);
}

static void ours_forward(void *context)
{
    solve *t = context;
    pool_share(pool, t->k > 8 ? some_forward : join_forward, context, pool_size(pool));
}

static void ours_backward(void *context)
{
    pool_share(pool, join_backward, context, pool_size(pool));
}

static void some_trsm(void *context, ptrdiff_t part)
{
    solve *t = context;
    int parts = pool_size(pool), first = (int) part * t->k / parts;
    int k = ((int) part + 1) * t->k / parts - first;
    double alpha = 1.0;
    if (t->k == 1 && k)
        trsv("L", "N", "N", &t->n, t->s.L, &t->cap, t->s.x, &one);
    else if (k)
        trsm("L", "L", "N", "N", &t->n, &k, &alpha, t->s.L, &t->cap, t->s.x + (size_t) first * t->n,
             &t->n);
}

static void blas_forward(void *context) { pool_share(pool, some_trsm, context, pool_size(pool)); }

static void blas_backward(void *context)
{
    solve *t = context;
    trsv("L", "T", "N", &t->n, t->s.L, &t->cap, t->s.x, &one);
}

static void measure_solves(int n, int cap, const double *L)
{
    static const int many[] = {1, 2, 4, 8, 16, 32, 64};
    double *x = room((size_t) n * 64), *given = room((size_t) n * 64);
    for (int i = 0; i < 64 * n; i++)
        given[i] = draw();
    solve t = {{.L = L, .x = x, .n = n, .cap = cap, .line = n}, given, n, 1, cap};
    for (size_t a = 0; a < sizeof(many) / sizeof(int); a++) {
        t.k = many[a], t.s.k = many[a];
        report("forward solve", t.k, n, begin_solve, ours_forward, blas_forward, &t);
    }
    t.k = 1, t.s.k = 1;
    report("backward solve", 1, n, begin_solve, ours_backward, blas_backward, &t);
    free(x);
    free(given);
}

/* -- downdates -------------------------------------------------------------------------------- */

typedef struct {
    downdate d;
    const double *given;
    double *w;
    int n, cap;
} removal;

static void begin_downdate(void *context)
{
    removal *t = context;
    memcpy(t->d.L, t->given, sizeof(double) * (size_t) t->cap * (size_t) t->cap);
    wavefront_begin(&t->d.blocks);
    for (int g = 0; g < DOWNDATE_GROUPS; g++)
        word_store(&t->d.done[g], 0);
}

static void join_downdate(void *d, ptrdiff_t part) { (void) part, TABLE.downdate_join(d); }

static void ours_downdate(void *context)
{
    removal *t = context;
    int worth = t->n - t->d.removed[0] > DOWNDATE_SMALL; /* as triangle.pyx has it */
    pool_share(pool, join_downdate, context, worth ? pool_size(pool) : 1);
}

/* Rotations of each column against that of the row, the last row first. */
static void blas_downdate(void *context)
{
    removal *t = context;
    for (ptrdiff_t c = t->d.k - 1; c >= 0; c--) {
        int g = (int) t->d.removed[c];
        double *column = t->d.L + (size_t) g * t->cap, *w = t->w;
        memcpy(w + g + 1, column + g + 1, sizeof(double) * (size_t) (t->n - g - 1));
        for (int j = g + 1; j < t->n; j++) {
            double *l = t->d.L + (size_t) j * t->cap + j, r = sqrt(*l * *l + w[j] * w[j]);
            double cosine = *l / r, sine = w[j] / r;
            int left = t->n - j;
            rot(&left, l, &one, w + j, &one, &cosine, &sine);
        }
    }
}

static void measure_downdates(int n, int cap, const double *L)
{
    static const int many[] = {1, 2, 4, 8, 16, 32};
    double *own = room((size_t) cap * cap), *z = room((size_t) n), *w = room((size_t) n);
    double *kept = room((size_t) DOWNDATE_GROUPS * DOWNDATE_KEPT * (size_t) (n + DOWNDATE_BLOCK));
    for (size_t a = 0; a < sizeof(many) / sizeof(int); a++) {
        long long removed[32];
        for (int c = 0; c < many[a]; c++)
            removed[c] = (long long) (c + 1) * n / (many[a] + 1);
        removal t = {{.L = own, .z = z, .removed = removed, .k = many[a], .size = n, .cap = cap,
                      .room = kept}, L, w, n, cap};
        report("downdate", many[a], n, begin_downdate, ours_downdate, blas_downdate, &t);
    }
    free(own);
    free(z);
    free(w);
    free(kept);
}

/* -- rows of kernel panels -------------------------------------------------------------------- */

enum { WIDTH = 128, SAMPLES = 3000, WATCHED = 400, FEATURES = 800, ROWS = 1000 };

typedef struct {
    double **data, *coef, *out;
    ptrdiff_t *first, *length, n_panels;
    long long *rows;
} panels;

static void nothing(void *context) { (void) context; }

static void some_panels(void *context, ptrdiff_t part)
{
    panels *t = context;
    ptrdiff_t first = part * WATCHED / 8, last = (part + 1) * WATCHED / 8;
    TABLE.multiply_runs((const double *const *) t->data, t->first, t->length, t->n_panels, WIDTH,
                        t->rows + first, last - first, t->coef, t->out + first);
}

static void some_dots(void *context, ptrdiff_t part)
{
    panels *t = context;
    const int width = WIDTH;
    for (ptrdiff_t i = part * WATCHED / 8; i < (part + 1) * WATCHED / 8; i++) {
        t->out[i] = 0.0;
        for (ptrdiff_t p = 0; p < t->n_panels; p++)
            t->out[i] += dot(&width, t->data[p] + t->rows[i] * WIDTH, &one, t->coef + p * WIDTH,
                             &one);
    }
}

static void ours_panels(void *context) { pool_share(pool, some_panels, context, 8); }
static void blas_panels(void *context) { pool_share(pool, some_dots, context, 8); }

static void measure_panels(int n)
{
    ptrdiff_t n_panels = (n + WIDTH - 1) / WIDTH, first[64], length[64];
    double *data[64];
    long long rows[WATCHED];
    for (ptrdiff_t p = 0; p < n_panels; p++) {
        data[p] = room((size_t) SAMPLES * WIDTH);
        first[p] = p * WIDTH, length[p] = WIDTH;
    }
    for (int i = 0; i < WATCHED; i++)
        rows[i] = (long long) i * 769 % SAMPLES;
    panels t = {data, room((size_t) n_panels * WIDTH), room(WATCHED), first, length, n_panels, rows};
    report("rows of panels", WATCHED, n, nothing, ours_panels, blas_panels, &t);
    for (ptrdiff_t p = 0; p < n_panels; p++)
        free(data[p]);
    free(t.coef);
    free(t.out);
}

/* -- products of sparse rows, a fifth of whose entries are not 0 ------------------------------- */

typedef struct {
    kernel_job job;
    double *table, *dense, *others, *out, *tops[128];
    int k;
} sparse;

static void some_sparse(void *context, ptrdiff_t part)
{
    TABLE.kernel_values(&((sparse *) context)->job, part);
}

static void some_dense(void *context, ptrdiff_t part)
{
    sparse *t = context;
    ptrdiff_t first = part * ROWS / 8;
    int n = ROWS / 8, features = FEATURES;
    double alpha = 1.0, beta = 0.0; /* out' = others dense' */
    if (t->k == 1) {
        gemv("T", &features, &n, &alpha, t->dense + first * FEATURES, &features, t->others, &one,
             &beta, t->out + first, &one);
        return;
    }
    gemm("T", "N", &t->k, &n, &features, &alpha, t->others, &features, t->dense + first * FEATURES,
         &features, &beta, t->out + first * t->k, &t->k);
}

static void ours_sparse(void *context)
{
    sparse *t = context;
    TABLE.kernel_pack(&t->job.columns, 0, t->table);
    pool_share(pool, some_sparse, context, 8);
}

static void blas_sparse(void *context) { pool_share(pool, some_dense, context, 8); }

static void measure_sparse(void)
{
    static const int many[] = {1, 2, 4, 8, 16, 32, 100};
    int64_t *start = malloc(sizeof(int64_t) * ROWS), *length = malloc(sizeof(int64_t) * ROWS);
    int32_t *feature = malloc(sizeof(int32_t) * ROWS * FEATURES);
    double *value = room(ROWS * FEATURES);
    sparse t = {.table = room(128 * FEATURES), .dense = room(ROWS * FEATURES),
                .others = room(128 * FEATURES), .out = room(ROWS * 128)};
    int64_t entries = 0;
    for (int i = 0; i < ROWS; i++) {
        start[i] = entries;
        for (int j = 0; j < FEATURES; j++)
            if (rand() % 5 == 0) {
                feature[entries] = j;
                value[entries++] = t.dense[i * FEATURES + j] = draw();
            }
        length[i] = entries - start[i];
    }
    for (int i = 0; i < 128 * FEATURES; i++)
        t.others[i] = draw();
    t.job.kernel = KERNEL_LINEAR;
    t.job.rows = (kernel_rows) {value, feature, start, length, NULL, ROWS, FEATURES};
    t.job.table = t.table, t.job.column_norm = t.others, t.job.out = t.tops;
    t.job.part_rows = ROWS / 8;
    for (size_t a = 0; a < sizeof(many) / sizeof(int); a++) {
        t.k = many[a];
        t.job.columns = (kernel_rows) {t.others, NULL, NULL, NULL, NULL, t.k, FEATURES};
        t.job.step = t.k;
        for (int j = 0; j < t.k; j++)
            t.tops[j] = t.out + j;
        report("sparse products", t.k, ROWS, nothing, ours_sparse, blas_sparse, &t);
    }
}

int main(int argc, char **argv)
{
    if (argc < 7)
        return 2;
    void *library = dlopen(argv[1], RTLD_NOW);
    const char *names[] = {"dtrsv", "dtrsm", "drot", "dgemm", "ddot", "dgemv"};
    void *places[] = {&trsv, &trsm, &rot, &gemm, &dot, &gemv};
    for (int a = 0; a < 6; a++) {
        char name[80];
        snprintf(name, sizeof(name), "%s%s%s", argv[2], names[a], argv[3]);
        void *found = library ? dlsym(library, name) : NULL;
        if (found == NULL) {
            fprintf(stderr, "%s has no %s\n", argv[1], name);
            return 2;
        }
        memcpy(places[a], &found, sizeof(found));
    }
    threads = atoi(argv[4]);
    seconds = atof(argv[5]);
    pool = pool_new();
    for (int a = 6; a < argc; a++) {
        int n = atoi(argv[a]), cap = ((n + 7) / 8 | 1) * 8;
        double *L = triangle(n, cap);
        measure_solves(n, cap, L);
        measure_downdates(n, cap, L);
        measure_panels(n);
        free(L);
    }
    measure_sparse();
    return 0;
}
