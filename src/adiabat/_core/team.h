/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Helpers that take their part in what an update computes.
 *
 * A product of a tenth of a millisecond is worth sharing only if sharing costs a few microseconds
 * and nobody has to wait for a helper that another program keeps off its core. So the parts of a
 * job lie in the open: whoever is free, the caller first of all, takes the next one. One that comes
 * late finds nothing left to do; the caller waits only for parts that somebody has begun. To wake a
 * helper takes longer than most jobs, so they can be called when a large update begins; once awake
 * they watch for jobs until a moment after its end, giving way to whoever else wants the core.
 *
 * Each part has an owner, by its number, who comes to it first: so a core finds in its cache the rows
 * that it read or wrote in the last job. The others take what its owner has not come to.
 *
 * One job at a time: a caller who finds the team at work does all parts himself.
 *
 * Without POSIX threads there are no helpers.
 */
#ifndef ADIABAT_TEAM_H
#define ADIABAT_TEAM_H

#include <stddef.h>
#include <stdint.h>

typedef void (*team_task)(void *context, ptrdiff_t part);

static void team_alone(team_task task, void *context, ptrdiff_t parts)
{
    for (ptrdiff_t part = 0; part < parts; part++)
        task(context, part);
}

#if defined(__unix__) || defined(__APPLE__)

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "atomics.h"

enum {
    TEAM_MOST = 16,          /* threads, the caller included: memory feeds no more */
    TEAM_PARTS = 4095,       /* of one owner; more parts are several jobs */
    TEAM_WATCH = 5000000,    /* nanoseconds without a job after which a helper sleeps all the same */
    TEAM_LINGER = 300000,    /* nanoseconds after an update in which the next may come */
    TEAM_LOOKS = 32,         /* looks for a job before the core is offered to others */
    TEAM_PATIENCE = 2000,    /* looks at a part begun by another before the core is offered to it */
    TEAM_LINE = 64           /* bytes of a line of the cache */
};

/* What one owner has to do: the number of the job (32 bits), threads (8), parts of his (12), the next
 * of them (12): in one word, so that nobody takes a part of one job for that of another. */
typedef struct {
    _Atomic uint64_t word;
    char alone[TEAM_LINE - sizeof(uint64_t)];
} team_board;

typedef struct {
    team_board boards[TEAM_MOST];
    pthread_mutex_t job;     /* held by the caller whose job it is */
    _Atomic(team_task) task;
    _Atomic(void *) context;
    _Atomic ptrdiff_t first; /* part of this job */
    _Atomic uint32_t number; /* of the last job */
    _Atomic ptrdiff_t done;
    _Atomic int threads;     /* that may work, the caller included; one where there is no update */
    _Atomic uint32_t calls;  /* how often they were called */
    int helpers;             /* that were hired */
    pthread_mutex_t door;
    pthread_cond_t bell;
    _Atomic int asleep;
} team;

/* Take parts of one owner until none is left; returns the threads of the job. */
static int team_work_for(team *t, int owner)
{
    uint64_t word = atomic_load(&t->boards[owner].word);
    int threads = (int) (word >> 24 & 0xff);
    while ((word & 0xfff) < (word >> 12 & 0xfff)) {
        team_task task = atomic_load_explicit(&t->task, memory_order_relaxed);
        void *context = atomic_load_explicit(&t->context, memory_order_relaxed);
        ptrdiff_t first = atomic_load_explicit(&t->first, memory_order_relaxed);
        /* a part that can be taken keeps the job from ending: all three were its own */
        if (atomic_compare_exchange_weak(&t->boards[owner].word, &word, word + 1)) {
            threads = (int) (word >> 24 & 0xff);
            task(context, first + (ptrdiff_t) (word & 0xfff) * threads + owner);
            atomic_fetch_add(&t->done, 1);
            word = atomic_load(&t->boards[owner].word);
        }
    }
    return threads;
}

/* One's own parts first, then those of the others. */
static void team_work(team *t, int self)
{
    int threads = team_work_for(t, self);
    for (int i = 1; i < threads; i++)
        team_work_for(t, (self + i) % threads);
}

static int64_t team_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t) now.tv_sec * 1000000000 + now.tv_nsec;
}

typedef struct {
    team *of;
    int number;
} team_helper;

static int team_wants(const team_helper *h) { return h->number < atomic_load(&h->of->threads); }

/* Watch for a job other than the last one seen; 0 if there was none for long, or no update. */
static int team_watch(const team_helper *h, uint32_t seen)
{
    int64_t now = team_now(), until = now + TEAM_WATCH, linger = now + TEAM_LINGER;
    while (now < until && now < linger) {
        for (int looks = 0; looks < TEAM_LOOKS; looks++) {
            if (atomic_load(&h->of->number) != seen && team_wants(h))
                return 1;
            cpu_pause();
        }
        sched_yield();
        now = team_now();
        if (team_wants(h))
            linger = now + TEAM_LINGER;
    }
    return 0;
}

static void *team_help(void *given)
{
    const team_helper *h = given;
    team *t = h->of;
    uint32_t seen = 0, answered = 0;
    for (;;) {
        if (team_watch(h, seen)) {
            seen = atomic_load(&t->number);
            team_work(t, h->number);
            continue;
        }
        pthread_mutex_lock(&t->door);
        atomic_fetch_add(&t->asleep, 1);
        while (!team_wants(h)
               || (atomic_load(&t->calls) == answered && atomic_load(&t->number) == seen))
            pthread_cond_wait(&t->bell, &t->door);
        answered = atomic_load(&t->calls);
        atomic_fetch_sub(&t->asleep, 1);
        pthread_mutex_unlock(&t->door);
    }
    return NULL;
}

/* A team of its own for each process; NULL without memory for one. Never freed: helpers sleep at
 * its door until the process ends. */
static team *team_new(void)
{
    void *room = NULL;
    if (posix_memalign(&room, TEAM_LINE, sizeof(team)) != 0)
        return NULL;
    team *t = room;
    for (int i = 0; i < TEAM_MOST; i++)
        atomic_init(&t->boards[i].word, 0);
    pthread_mutex_init(&t->job, NULL);
    pthread_mutex_init(&t->door, NULL);
    pthread_cond_init(&t->bell, NULL);
    atomic_init(&t->first, 0);
    atomic_init(&t->number, 0);
    atomic_init(&t->done, 0);
    atomic_init(&t->threads, 1);
    atomic_init(&t->calls, 0);
    atomic_init(&t->asleep, 0);
    t->helpers = 0;
    return t;
}

/* So many helpers, or as many as can be had. Signals are for the threads of the program. */
static void team_hire(team *t, int helpers)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (t->helpers < helpers) {
        pthread_t thread;
        team_helper *h = malloc(sizeof *h);
        if (h == NULL)
            break;
        h->of = t;
        h->number = t->helpers + 1; /* 0 is the caller */
        if (pthread_create(&thread, NULL, team_help, h) != 0) {
            free(h);
            break;
        }
        pthread_detach(thread);
        t->helpers++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void team_wake(team *t)
{
    if (atomic_load(&t->asleep) > 0) {
        pthread_mutex_lock(&t->door);
        pthread_cond_broadcast(&t->bell);
        pthread_mutex_unlock(&t->door);
    }
}

/* So many threads may work, the caller included. */
static void team_resize(team *t, int threads)
{
    if (t != NULL)
        atomic_store(&t->threads, threads < TEAM_MOST ? threads : TEAM_MOST);
}

/* Jobs are about to come: those who sleep should wake. */
static void team_call(team *t)
{
    if (t != NULL && atomic_load(&t->threads) > 1) {
        atomic_fetch_add(&t->calls, 1);
        team_wake(t);
    }
}

static int team_size(team *t) { return t == NULL ? 1 : atomic_load(&t->threads); }

/* One job: parts first .. first + parts. */
static void team_run(team *t, ptrdiff_t first, ptrdiff_t parts, int threads)
{
    atomic_store_explicit(&t->first, first, memory_order_relaxed);
    atomic_store(&t->done, 0);
    uint32_t number = atomic_load(&t->number) + 1;
    for (int owner = 0; owner < threads; owner++) {
        uint64_t his = (uint64_t) (parts + threads - 1 - owner) / threads;
        atomic_store(&t->boards[owner].word,
                     (uint64_t) number << 32 | (uint64_t) threads << 24 | his << 12);
    }
    atomic_store(&t->number, number);
    team_wake(t);
    team_work(t, 0);
    for (int looks = 0; atomic_load(&t->done) < parts; looks++) {
        cpu_pause();
        if (looks > TEAM_PATIENCE)
            sched_yield();
    }
}

/* task(context, part) for every part, by whoever is free; returns when all are done. */
static void team_share(team *t, team_task task, void *context, ptrdiff_t parts)
{
    int threads = team_size(t);
    if (parts <= 1 || threads <= 1 || pthread_mutex_trylock(&t->job) != 0) {
        team_alone(task, context, parts);
        return;
    }
    if (t->helpers < threads - 1)
        team_hire(t, threads - 1);
    atomic_store_explicit(&t->task, task, memory_order_relaxed);
    atomic_store_explicit(&t->context, context, memory_order_relaxed);
    for (ptrdiff_t first = 0, some; first < parts; first += some) {
        some = parts - first < TEAM_PARTS ? parts - first : TEAM_PARTS;
        team_run(t, first, some, threads);
    }
    pthread_mutex_unlock(&t->job);
}

#else

typedef int team;
static team *team_new(void) { return NULL; }
static void team_resize(team *t, int threads) { (void) t, (void) threads; }
static void team_call(team *t) { (void) t; }
static int team_size(team *t) { (void) t; return 1; }
static void team_share(team *t, team_task task, void *context, ptrdiff_t parts)
{
    (void) t;
    team_alone(task, context, parts);
}

#endif
#endif
