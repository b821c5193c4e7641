/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A pool of threads that share what an update computes.
 *
 * A product of a tenth of a millisecond is worth sharing only if sharing costs a few microseconds
 * and no thread waits for one that another program keeps off its core. So a thread that is free, the
 * caller first of all, takes the next part of a job. One that comes late finds nothing left to do;
 * the caller waits only for parts that have been begun. To wake a thread takes longer than most jobs,
 * so they can be woken when a large update begins; once awake they watch for jobs until a moment
 * after its end, and yield their cores to other programs.
 *
 * Each part has an owner, by its number, who comes to it first: so a core finds in its cache the rows
 * that it read or wrote in the last job. The others take what its owner has not come to.
 *
 * Where a begun part is waited for so long that its thread must have lost its core (a stall), other
 * programs want the cores. The caller then works alone, for twenty times as long as the stall took:
 * so stalls take a twentieth of the time at most.
 *
 * One job at a time: a caller who finds the pool at work does all parts itself.
 */
#ifndef ADIABAT_THREAD_POOL_H
#define ADIABAT_THREAD_POOL_H

#include <stddef.h>
#include <stdint.h>

enum { POOL_MOST = 16 }; /* threads, the caller included: memory feeds no more */

typedef struct thread_pool thread_pool;
typedef void (*pool_task)(void *context, ptrdiff_t part);

/* A pool of its own for each process; NULL without memory for one. It is never freed: its threads
 * sleep until the process ends. */
thread_pool *pool_new(void);

/* So many threads may work, the caller included. */
void pool_resize(thread_pool *p, int n_threads);
int pool_size(thread_pool *p);

/* Jobs are about to come: those that sleep should wake. */
void pool_wake(thread_pool *p);

/* task(context, part) for every part; returns when all are done, in whatever order. */
void pool_share(thread_pool *p, pool_task task, void *context, ptrdiff_t parts);

/* A thread has waited so long for another, in the midst of a job: the job reports it itself. */
void pool_stalled(thread_pool *p, int64_t nanoseconds);

/* Whether the caller works alone at present, because of a stall. */
int pool_alone(thread_pool *p);

#endif
