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

typedef struct {
    _Atomic ptrdiff_t next, done;
} relay;

static void relay_begin(relay *r)
{
    atomic_init(&r->next, 0);
    atomic_init(&r->done, 0);
}

/* The number of a block that nobody else has. */
static ptrdiff_t relay_take(relay *r) { return atomic_fetch_add(&r->next, 1); }

/* How many blocks are done: more than `known`, which is less than the number of one's own. */
static ptrdiff_t relay_wait(relay *r, ptrdiff_t known)
{
    ptrdiff_t done;
    for (int looks = 0; (done = atomic_load(&r->done)) <= known; looks++) {
        PAUSE();
        if (looks > RELAY_PATIENCE)
            sched_yield();
    }
    return done;
}

/* One's own block is done, as all before it are. */
static void relay_pass(relay *r, ptrdiff_t block) { atomic_store(&r->done, block + 1); }

#else /* one thread */

typedef struct {
    ptrdiff_t next, done;
} relay;

static void relay_begin(relay *r) { r->next = r->done = 0; }
static ptrdiff_t relay_take(relay *r) { return r->next++; }
static ptrdiff_t relay_wait(relay *r, ptrdiff_t known) { (void) known; return r->done; }
static void relay_pass(relay *r, ptrdiff_t block) { r->done = block + 1; }

#endif
#endif
