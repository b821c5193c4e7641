/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A wavefront: blocks of work of which each needs the results of all before it, on several threads.
 *
 * A thread takes the next block, does what it can with the results that are there, and waits for
 * those that are not. Blocks are taken in order, so another thread is at work on them. One thread
 * alone never waits; one that comes late takes what is left.
 */
#ifndef ADIABAT_WAVEFRONT_H
#define ADIABAT_WAVEFRONT_H

#include <stddef.h>

#include "atomics.h"

enum {
    WAVEFRONT_SPINS = 2000,  /* looks at a block of another thread before the core is yielded */
    WAVEFRONT_STALL = 500000 /* nanoseconds to wait for it: its thread must have lost its core */
};

typedef struct {
    atomic_word next, done; /* the block to take next; how many are done, from the first on */
    atomic_word stalled;    /* nanoseconds that threads waited, where it was so long */
} wavefront;

static inline void wavefront_begin(wavefront *w)
{
    word_store(&w->next, 0);
    word_store(&w->done, 0);
    word_store(&w->stalled, 0);
}

/* The number of a block that no other thread has. */
static inline ptrdiff_t wavefront_take(wavefront *w) { return (ptrdiff_t) word_add(&w->next, 1); }

/* Wait until `done` is more than `known`; returns what it is. */
static inline ptrdiff_t wavefront_wait_for(wavefront *w, atomic_word *done, ptrdiff_t known)
{
    ptrdiff_t value;
    int64_t since = 0;
    for (int looks = 0; (value = (ptrdiff_t) word_load(done)) <= known; looks++) {
        cpu_pause();
        if (looks < WAVEFRONT_SPINS)
            continue;
        if (since == 0)
            since = clock_now();
        thread_yield();
    }
    int64_t waited = since == 0 ? 0 : clock_now() - since;
    if (waited > WAVEFRONT_STALL)
        word_add(&w->stalled, waited);
    return value;
}

/* How many blocks are done: more than `known`. */
static inline ptrdiff_t wavefront_wait(wavefront *w, ptrdiff_t known)
{
    return wavefront_wait_for(w, &w->done, known);
}

/* A block is done, as all before it are. */
static inline void wavefront_pass(wavefront *w, ptrdiff_t block) { word_store(&w->done, block + 1); }

#endif
