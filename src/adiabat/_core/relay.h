/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Blocks of work of which each needs what all before it found, done by several threads at once.
 *
 * Whoever is free takes the next block, does what it can with the results that are there, and waits
 * for those that are not: somebody has begun them, since blocks are taken in their order. So one
 * thread alone never waits, and one that comes late helps with what is left.
 */
#ifndef ADIABAT_RELAY_H
#define ADIABAT_RELAY_H

#include <stddef.h>

#if defined(__unix__) || defined(__APPLE__)

#include <sched.h>
#include <stdatomic.h>

#include "pause.h"

enum { RELAY_PATIENCE = 2000 }; /* looks at a block begun by another before the core is offered */

typedef _Atomic ptrdiff_t relay_count;

static void relay_set(relay_count *c, ptrdiff_t value) { atomic_store(c, value); }

/* The number of a block that nobody else has. */
static ptrdiff_t relay_take(relay_count *next) { return atomic_fetch_add(next, 1); }

/* How many blocks are done: more than `known`, and somebody has begun those. */
static ptrdiff_t relay_wait(relay_count *done, ptrdiff_t known)
{
    ptrdiff_t value;
    for (int looks = 0; (value = atomic_load(done)) <= known; looks++) {
        PAUSE();
        if (looks > RELAY_PATIENCE)
            sched_yield();
    }
    return value;
}

#else /* one thread */

typedef ptrdiff_t relay_count;

static void relay_set(relay_count *c, ptrdiff_t value) { *c = value; }
static ptrdiff_t relay_take(relay_count *next) { return (*next)++; }
static ptrdiff_t relay_wait(relay_count *done, ptrdiff_t known) { (void) known; return *done; }

#endif

typedef struct {
    relay_count next, done; /* the block to take next; all before it are done */
} relay;

static void relay_begin(relay *r)
{
    relay_set(&r->next, 0);
    relay_set(&r->done, 0);
}

/* One's own block is done, as all before it are. */
static void relay_pass(relay *r, ptrdiff_t block) { relay_set(&r->done, block + 1); }

#endif
