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

enum { WAVEFRONT_SPINS = 2000 }; /* looks at a block of another thread before the core is yielded */

typedef struct {
    atomic_word next, done; /* the block to take next; how many are done, from the first on */
} wavefront;

static inline void wavefront_begin(wavefront *w)
{
    word_store(&w->next, 0);
    word_store(&w->done, 0);
}

/* The number of a block that no other thread has. */
static inline ptrdiff_t wavefront_take(atomic_word *next) { return (ptrdiff_t) word_add(next, 1); }

/* How many blocks are done: more than `known`. */
static inline ptrdiff_t wavefront_wait(atomic_word *done, ptrdiff_t known)
{
    ptrdiff_t value;
    for (int looks = 0; (value = (ptrdiff_t) word_load(done)) <= known; looks++) {
        cpu_pause();
        if (looks > WAVEFRONT_SPINS)
            thread_yield();
    }
    return value;
}

/* A block is done, as all before it are. */
static inline void wavefront_pass(wavefront *w, ptrdiff_t block) { word_store(&w->done, block + 1); }

#endif
