/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Atomic words of 64 bits, what a thread does between two looks at one, and a clock.
 *
 * C11's atomics, or Windows' where a compiler has none. All operations are sequentially consistent.
 * A unit that includes this first defines _POSIX_C_SOURCE, for the clock.
 */
#ifndef ADIABAT_ATOMICS_H
#define ADIABAT_ATOMICS_H

#include <stdint.h>

#if defined(_WIN32)
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <windows.h>
#else
#include <sched.h>
#include <time.h>
#endif

#if defined(_MSC_VER) && !defined(__clang__) || defined(ADIABAT_WIN32_ATOMICS)

typedef volatile LONG64 atomic_word;

static inline int64_t word_load(atomic_word *w) { return InterlockedOr64(w, 0); }
static inline void word_store(atomic_word *w, int64_t value) { InterlockedExchange64(w, value); }
static inline int64_t word_add(atomic_word *w, int64_t by) { return InterlockedExchangeAdd64(w, by); }

/* w = value if w is `expected`; else `expected` is what w is, and the result 0. */
static inline int word_exchange(atomic_word *w, int64_t *expected, int64_t value)
{
    int64_t before = InterlockedCompareExchange64(w, value, *expected);
    int same = before == *expected;
    *expected = before;
    return same;
}

#else
#include <stdatomic.h>

typedef _Atomic int64_t atomic_word;

static inline int64_t word_load(atomic_word *w) { return atomic_load(w); }
static inline void word_store(atomic_word *w, int64_t value) { atomic_store(w, value); }
static inline int64_t word_add(atomic_word *w, int64_t by) { return atomic_fetch_add(w, by); }

/* w = value if w is `expected`; else `expected` is what w is, and the result 0. */
static inline int word_exchange(atomic_word *w, int64_t *expected, int64_t value)
{
    return atomic_compare_exchange_strong(w, expected, value);
}

#endif

/* Between two looks: the other thread of this core may have it for a moment. */
static inline void cpu_pause(void)
{
#if defined(_WIN32)
    YieldProcessor();
#elif defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

/* Let another thread have the core. */
static inline void thread_yield(void)
{
#if defined(_WIN32)
    SwitchToThread();
#else
    sched_yield();
#endif
}

/* Nanoseconds since some moment. */
static inline int64_t clock_now(void)
{
#if defined(_WIN32)
    LARGE_INTEGER ticks, per_second;
    QueryPerformanceCounter(&ticks);
    QueryPerformanceFrequency(&per_second);
    return (int64_t) ((double) ticks.QuadPart * (1e9 / (double) per_second.QuadPart));
#else
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t) now.tv_sec * 1000000000 + now.tv_nsec;
#endif
}

#endif
