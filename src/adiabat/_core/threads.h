/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Threads, locks, conditions and a clock: those of POSIX, or of Windows.
 */
#ifndef ADIABAT_THREADS_H
#define ADIABAT_THREADS_H

#include <stdint.h>

#include "atomics.h"

#if defined(_WIN32)

#include <process.h>

typedef SRWLOCK thread_mutex;
typedef CONDITION_VARIABLE thread_condition;

static inline void mutex_init(thread_mutex *m) { InitializeSRWLock(m); }
static inline void mutex_lock(thread_mutex *m) { AcquireSRWLockExclusive(m); }
static inline int mutex_trylock(thread_mutex *m) { return TryAcquireSRWLockExclusive(m) != 0; }
static inline void mutex_unlock(thread_mutex *m) { ReleaseSRWLockExclusive(m); }

static inline void condition_init(thread_condition *c) { InitializeConditionVariable(c); }
static inline void condition_broadcast(thread_condition *c) { WakeAllConditionVariable(c); }
static inline void condition_wait(thread_condition *c, thread_mutex *m)
{
    SleepConditionVariableSRW(c, m, INFINITE, 0);
}

#define THREAD_FUNCTION(NAME, ARGUMENT) static unsigned __stdcall NAME(void *ARGUMENT)
#define THREAD_RETURN return 0

/* A thread that runs until the process ends; 0 if there can be none. */
static inline int thread_start(unsigned(__stdcall *function)(void *), void *argument)
{
    uintptr_t handle = _beginthreadex(NULL, 0, function, argument, 0, NULL);
    if (handle == 0)
        return 0;
    CloseHandle((HANDLE) handle);
    return 1;
}

#else

#include <pthread.h>
#include <signal.h>

typedef pthread_mutex_t thread_mutex;
typedef pthread_cond_t thread_condition;

static inline void mutex_init(thread_mutex *m) { pthread_mutex_init(m, NULL); }
static inline void mutex_lock(thread_mutex *m) { pthread_mutex_lock(m); }
static inline int mutex_trylock(thread_mutex *m) { return pthread_mutex_trylock(m) == 0; }
static inline void mutex_unlock(thread_mutex *m) { pthread_mutex_unlock(m); }

static inline void condition_init(thread_condition *c) { pthread_cond_init(c, NULL); }
static inline void condition_broadcast(thread_condition *c) { pthread_cond_broadcast(c); }
static inline void condition_wait(thread_condition *c, thread_mutex *m)
{
    pthread_cond_wait(c, m);
}

#define THREAD_FUNCTION(NAME, ARGUMENT) static void *NAME(void *ARGUMENT)
#define THREAD_RETURN return NULL

/* A thread that runs until the process ends; 0 if there can be none. Signals are for the others. */
static inline int thread_start(void *(*function)(void *), void *argument)
{
    sigset_t all, before;
    pthread_t thread;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&thread, NULL, function, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed)
        return 0;
    pthread_detach(thread);
    return 1;
}

#endif
#endif
