/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The pool of threads, see thread_pool.h.
 */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif

#include "thread_pool.h"

#include <stdlib.h>

#include "threads.h"

enum {
    POOL_PARTS = 4095,       /* of one owner; more parts are several jobs */
    POOL_WATCH = 5000000,    /* nanoseconds without a job after which a thread sleeps all the same */
    POOL_LINGER = 300000,    /* nanoseconds after an update in which the next may come */
    POOL_LOOKS = 32,         /* looks for a job before the core is yielded */
    POOL_PATIENCE = 2000,    /* looks at a part begun by another before the core is yielded */
    POOL_STALL = 500000,     /* nanoseconds to wait for a part, besides those worked: a stall */
    POOL_ALONE = 20,         /* times as long as a stall took the caller works alone */
    POOL_LINE = 64           /* bytes of a cache line */
};

/* What one owner has to do: the number of the job (32 bits), threads (8), its parts (12), the next
 * of them (12): in one word, so that no part of one job is taken for that of another. */
typedef struct {
    atomic_word word;
    char apart[POOL_LINE - sizeof(atomic_word)];
} pool_board;

struct thread_pool {
    pool_board boards[POOL_MOST];
    thread_mutex job;    /* held by the caller whose job it is */
    atomic_word task, context;
    atomic_word first;   /* part of this job */
    atomic_word number;  /* of the last job */
    atomic_word done;
    atomic_word size;    /* threads that may work, the caller included; one where there is no update */
    atomic_word calls;   /* how often they were woken */
    atomic_word alone;   /* until when the caller works alone; 0: it does not */
    atomic_word stalled; /* nanoseconds, in the present job */
    int started;         /* threads */
    thread_mutex door;
    thread_condition bell;
    atomic_word asleep;
};

static void run_alone(pool_task task, void *context, ptrdiff_t parts)
{
    for (ptrdiff_t part = 0; part < parts; part++)
        task(context, part);
}

static int64_t part_of(uint64_t word) { return (int64_t) (word & 0xfff); }
static int64_t parts_of(uint64_t word) { return (int64_t) (word >> 12 & 0xfff); }
static int threads_of(uint64_t word) { return (int) (word >> 24 & 0xff); }

/* Take parts of one owner until none is left; returns the threads of the job. */
static int work_for(thread_pool *p, int owner)
{
    atomic_word *board = &p->boards[owner].word;
    int64_t seen = word_load(board);
    int threads = threads_of((uint64_t) seen);
    while (part_of((uint64_t) seen) < parts_of((uint64_t) seen)) {
        pool_task task = (pool_task) (intptr_t) word_load(&p->task);
        void *context = (void *) (intptr_t) word_load(&p->context);
        ptrdiff_t first = (ptrdiff_t) word_load(&p->first);
        /* a part that can be taken keeps the job from ending: all three were its own */
        if (word_exchange(board, &seen, seen + 1)) {
            threads = threads_of((uint64_t) seen);
            task(context, first + (ptrdiff_t) part_of((uint64_t) seen) * threads + owner);
            word_add(&p->done, 1);
            seen = word_load(board);
        }
    }
    return threads;
}

/* A thread's own parts first, then those of the others. */
static void work(thread_pool *p, int self)
{
    int threads = work_for(p, self);
    for (int i = 1; i < threads; i++)
        work_for(p, (self + i) % threads);
}

typedef struct {
    thread_pool *pool;
    int number; /* 0 is the caller */
} pool_worker;

static int is_wanted(const pool_worker *w)
{
    return w->number < word_load(&w->pool->size) && word_load(&w->pool->alone) == 0;
}

/* Watch for a job other than the last one seen; 0 if there was none for long, or no update. */
static int watch(const pool_worker *w, int64_t seen)
{
    int64_t now = clock_now(), until = now + POOL_WATCH, linger = now + POOL_LINGER;
    while (now < until && now < linger) {
        for (int looks = 0; looks < POOL_LOOKS; looks++) {
            if (word_load(&w->pool->number) != seen && is_wanted(w))
                return 1;
            cpu_pause();
        }
        thread_yield();
        now = clock_now();
        if (is_wanted(w))
            linger = now + POOL_LINGER;
    }
    return 0;
}

THREAD_FUNCTION(serve, given)
{
    const pool_worker *w = given;
    thread_pool *p = w->pool;
    int64_t seen = 0, answered = 0;
    for (;;) {
        if (watch(w, seen)) {
            seen = word_load(&p->number);
            work(p, w->number);
            continue;
        }
        mutex_lock(&p->door);
        word_add(&p->asleep, 1);
        while (!is_wanted(w)
               || (word_load(&p->calls) == answered && word_load(&p->number) == seen))
            condition_wait(&p->bell, &p->door);
        answered = word_load(&p->calls);
        word_add(&p->asleep, -1);
        mutex_unlock(&p->door);
    }
    THREAD_RETURN;
}

thread_pool *pool_new(void)
{
    char *room = calloc(1, sizeof(thread_pool) + POOL_LINE);
    if (room == NULL)
        return NULL;
    thread_pool *p = (thread_pool *) (room + POOL_LINE - (uintptr_t) room % POOL_LINE);
    mutex_init(&p->job);
    mutex_init(&p->door);
    condition_init(&p->bell);
    word_store(&p->size, 1);
    return p;
}

/* So many threads besides the caller, or as many as can be had. */
static void start_threads(thread_pool *p, int threads)
{
    while (p->started < threads) {
        pool_worker *w = malloc(sizeof *w);
        if (w == NULL)
            return;
        w->pool = p;
        w->number = p->started + 1;
        if (!thread_start(serve, w)) {
            free(w);
            return;
        }
        p->started++;
    }
}

static void ring(thread_pool *p)
{
    if (word_load(&p->asleep) > 0) {
        mutex_lock(&p->door);
        condition_broadcast(&p->bell);
        mutex_unlock(&p->door);
    }
}

void pool_resize(thread_pool *p, int n_threads)
{
    if (p != NULL)
        word_store(&p->size, n_threads < 1 ? 1 : n_threads < POOL_MOST ? n_threads : POOL_MOST);
}

int pool_size(thread_pool *p) { return p == NULL ? 1 : (int) word_load(&p->size); }

int pool_alone(thread_pool *p)
{
    int64_t until = word_load(&p->alone);
    if (until == 0)
        return 0;
    if (clock_now() < until)
        return 1;
    word_store(&p->alone, 0);
    return 0;
}

void pool_wake(thread_pool *p)
{
    if (pool_size(p) > 1 && !pool_alone(p)) {
        word_add(&p->calls, 1);
        ring(p);
    }
}

void pool_stalled(thread_pool *p, int64_t nanoseconds)
{
    if (p != NULL)
        word_add(&p->stalled, nanoseconds);
}

/* One job: parts first .. first + parts. */
static void run(thread_pool *p, ptrdiff_t first, ptrdiff_t parts, int threads)
{
    int64_t began = clock_now();
    word_store(&p->first, first);
    word_store(&p->done, 0);
    int64_t number = (word_load(&p->number) + 1) & 0xffffffff;
    for (int owner = 0; owner < threads; owner++) {
        int64_t own = (parts + threads - 1 - owner) / threads;
        uint64_t word = (uint64_t) number << 32 | (uint64_t) threads << 24 | (uint64_t) own << 12;
        word_store(&p->boards[owner].word, (int64_t) word);
    }
    word_store(&p->number, number);
    ring(p);
    work(p, 0);
    if (word_load(&p->done) == parts)
        return;
    int64_t worked = clock_now(), patience = worked - began + POOL_STALL;
    for (int looks = 0; word_load(&p->done) < parts; looks++) {
        cpu_pause();
        if (looks > POOL_PATIENCE)
            thread_yield();
    }
    int64_t waited = clock_now() - worked;
    if (waited > patience)
        pool_stalled(p, waited);
}

void pool_share(thread_pool *p, pool_task task, void *context, ptrdiff_t parts)
{
    int threads = pool_size(p);
    if (parts <= 1 || threads <= 1 || pool_alone(p) || !mutex_trylock(&p->job)) {
        run_alone(task, context, parts);
        return;
    }
    start_threads(p, threads - 1);
    word_store(&p->stalled, 0);
    word_store(&p->task, (int64_t) (intptr_t) task);
    word_store(&p->context, (int64_t) (intptr_t) context);
    for (ptrdiff_t first = 0, some; first < parts; first += some) {
        some = parts - first < POOL_PARTS ? parts - first : POOL_PARTS;
        run(p, first, some, threads);
    }
    int64_t stalled = word_load(&p->stalled);
    if (stalled > 0)
        word_store(&p->alone, clock_now() + POOL_ALONE * stalled);
    mutex_unlock(&p->job);
}
