/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The SIMD levels that the package was built with, and which of them the CPU at hand can run.
 */
#ifndef ADIABAT_SIMD_CPU_H
#define ADIABAT_SIMD_CPU_H

#include <stddef.h>
#include <stdint.h>

#include "simd_levels.h"
#include "simd_table.h"

#if defined(__x86_64__) || defined(_M_X64)

#if defined(__GNUC__)
#include <cpuid.h>
#else
#include <intrin.h>
#endif

typedef struct {
    uint32_t a, b, c, d;
} cpu_registers;

static inline cpu_registers cpu_id(uint32_t leaf)
{
    cpu_registers r = {0, 0, 0, 0};
#if defined(__GNUC__)
    __get_cpuid_count(leaf, 0, &r.a, &r.b, &r.c, &r.d); /* zeros, if there is no such leaf */
#else
    int found[4];
    __cpuidex(found, (int) (leaf & 0x80000000u), 0);
    if ((uint32_t) found[0] >= leaf) {
        __cpuidex(found, (int) leaf, 0);
        r.a = found[0], r.b = found[1], r.c = found[2], r.d = found[3];
    }
#endif
    return r;
}

/* What the operating system saves of the registers. */
static inline uint64_t cpu_saved(void)
{
#if defined(__GNUC__)
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t) high << 32 | low;
#else
    return _xgetbv(0);
#endif
}

static inline int cpu_has_baseline(void) { return 1; }

/* All that compilers take for x86-64-v3. */
static inline int cpu_has_v3(void)
{
    const uint32_t one = 1u << 0 | 1u << 9 | 1u << 12 | 1u << 13 | 1u << 19 | 1u << 20 | 1u << 22
        | 1u << 23 | 1u << 27 | 1u << 28 | 1u << 29; /* SSE3 to SSE4.2, FMA, POPCNT, AVX, F16C ... */
    const uint32_t seven = 1u << 3 | 1u << 5 | 1u << 8; /* BMI1, AVX2, BMI2 */
    const uint32_t extended = 1u << 0 | 1u << 5;        /* LAHF, LZCNT */
    return (cpu_id(1).c & one) == one && (cpu_id(7).b & seven) == seven
        && (cpu_id(0x80000001u).c & extended) == extended && (cpu_saved() & 0x6) == 0x6;
}

/* And for x86-64-v4: AVX-512 F, DQ, CD, BW, VL, and their registers saved. */
static inline int cpu_has_v4(void)
{
    const uint32_t seven = 1u << 16 | 1u << 17 | 1u << 28 | 1u << 30 | 1u << 31;
    return cpu_has_v3() && (cpu_id(7).b & seven) == seven && (cpu_saved() & 0xe6) == 0xe6;
}

#else

static inline int cpu_has_baseline(void) { return 1; }
static inline int cpu_has_neon(void) { return 1; } /* every 64-bit ARM has it */

#endif

#define SIMD_DECLARE(LEVEL) extern const simd_table simd_table_##LEVEL;
SIMD_LEVELS(SIMD_DECLARE)

typedef struct {
    const char *name;
    const simd_table *table;
    int (*runs)(void);
} simd_level;

#define SIMD_ROW(LEVEL) {#LEVEL, &simd_table_##LEVEL, cpu_has_##LEVEL},
static const simd_level simd_levels[] = {SIMD_LEVELS(SIMD_ROW)};
enum { SIMD_N_LEVELS = sizeof(simd_levels) / sizeof(simd_levels[0]) };

#endif
