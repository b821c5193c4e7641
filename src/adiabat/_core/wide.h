/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Eight numbers at a time. GCC compiles a function marked FOR_EACH_MACHINE for the widest registers
 * of its day, and the loader takes the one that the machine at hand can run; elsewhere it is an
 * ordinary function, and `eight` may be one number.
 */
#ifndef ADIABAT_WIDE_H
#define ADIABAT_WIDE_H

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#if __GNUC__ >= 12
#define FOR_EACH_MACHINE \
    __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif
#endif
#ifndef FOR_EACH_MACHINE
#define FOR_EACH_MACHINE
#endif

#ifdef __GNUC__
#define IN_PLACE static inline __attribute__((always_inline))
#define LINED __attribute__((aligned(64))) /* begins at a line of the cache */
#define AHEAD(place) __builtin_prefetch(place) /* it will be read soon */
typedef double eight __attribute__((vector_size(64), aligned(8), may_alias));
#else
#define IN_PLACE static inline
#define LINED
#define AHEAD(place) ((void) 0)
typedef double eight;
#endif
enum { LANES = sizeof(eight) / sizeof(double) };

/* The function for the next power of two from k, at most 8, on. */
#define OF_SIZE(NAME, k) \
    ((k) <= 1 ? NAME##_1 : (k) <= 2 ? NAME##_2 : (k) <= 4 ? NAME##_4 : NAME##_8)

#endif
