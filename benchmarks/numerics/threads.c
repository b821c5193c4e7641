/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The thread pool of the core and OpenMP's at the work of an update; threads.py compiles and runs it.
 *
 *     threads pool|openmp|alone THREADS SECONDS
 *
 * A round of work is what some updates do: SHARED jobs of 16 parts that take some microseconds each,
 * and as many triangular solves with 900 rows, in a wavefront. Output: the mean time of a round and
 * the longest, in microseconds.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simd_table.h"
#include "thread_pool.h"

#define PASTE(LEVEL) simd_table_##LEVEL
#define NAME(LEVEL) PASTE(LEVEL)
#define TABLE NAME(SIMD_LEVEL)
extern const simd_table TABLE;

enum { SHARED = 20, PARTS = 16, N = 900, CAP = 904, ROW = 8192 };

static thread_pool *pool;
static int threads;
static double rows[PARTS][ROW];
static float numbers[ROW];

static void add(void *context, ptrdiff_t part)
{
    (void) context;
    TABLE.whole_add(rows[part], numbers, 0, ROW);
}

static void solve(void *context, ptrdiff_t part)
{
    triangular_solve *s = context;
    (void) part;
    TABLE.solve_forward(s);
    if (word_load(&s->blocks.stalled))
        pool_stalled(pool, word_load(&s->blocks.stalled));
}

static void share_by_openmp(pool_task task, void *context, ptrdiff_t parts)
{
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
    for (ptrdiff_t part = 0; part < parts; part++)
        task(context, part);
}

static void share(char way, pool_task task, void *context, ptrdiff_t parts)
{
    if (way == 'o')
        share_by_openmp(task, context, parts);
    else
        pool_share(pool, task, context, parts);
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    char way = argv[1][0];
    threads = way == 'a' ? 1 : atoi(argv[2]);
    int64_t until = clock_now() + (int64_t) (1e9 * atof(argv[3])), spent = 0, longest = 0;
    long rounds = 0;
    static double L[CAP * CAP], x[N];
    for (int j = 0; j < N; j++)
        for (int i = j; i < N; i++)
            L[j * CAP + i] = i == j ? 1.0 : 1e-3;
    pool = pool_new();
    pool_resize(pool, threads);
    for (; clock_now() < until; rounds++) {
        int64_t started = clock_now();
        pool_wake(pool);
        for (int job = 0; job < SHARED; job++) {
            triangular_solve s = {.L = L, .x = x, .n = N, .cap = CAP, .line = N, .k = 1};
            for (int i = 0; i < N; i++)
                x[i] = 1.0;
            wavefront_begin(&s.blocks);
            share(way, add, NULL, PARTS);
            share(way, solve, &s, threads);
        }
        int64_t taken = clock_now() - started;
        spent += taken;
        longest = taken > longest ? taken : longest;
    }
    printf("%.1f %.1f\n", 1e-3 * (double) spent / (double) rounds, 1e-3 * (double) longest);
    return 0;
}
