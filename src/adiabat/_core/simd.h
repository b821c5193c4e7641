/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Vectors of double precision for the SIMD level that a unit is compiled for.
 *
 * A level has registers: how many doubles each holds (VEC) and how many there are (REGISTERS).
 * Loops take their blocking from both, so that sums stay in registers:
 *
 *     baseline   x86-64: SSE2, 16 x 16 bytes; elsewhere what the compiler makes of 16 bytes
 *     v3         AVX2 and FMA, 16 x 32 bytes
 *     v4         AVX-512, 32 x 64 bytes
 *     neon       32 x 16 bytes
 *
 * vec_muladd and muladd round once (FUSED) or twice, but all of a level alike. Units are compiled
 * without contraction: no other product is fused with a sum.
 */
#ifndef ADIABAT_SIMD_H
#define ADIABAT_SIMD_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "prefetch.h"

#if defined(_MSC_VER) && !defined(__clang__)
#define ALWAYS_INLINE static __forceinline
#define NEVER_INLINE static __declspec(noinline) /* loops that need all registers for themselves */
#pragma fp_contract(off)
#else
#define ALWAYS_INLINE static inline __attribute__((always_inline))
#define NEVER_INLINE static __attribute__((noinline))
#endif

enum { CACHE_LINE = 64 }; /* bytes */
#define CACHE_ALIGNED _Alignas(64)

#if !defined(SIMD_GENERIC) && (defined(__x86_64__) || defined(_M_X64))
#include <immintrin.h>

#if defined(__AVX512F__)

#define VEC 8
#define REGISTERS 32
#define FUSED 1
typedef __m512d vec;
ALWAYS_INLINE vec vec_load(const double *x) { return _mm512_loadu_pd(x); }
ALWAYS_INLINE void vec_store(double *x, vec a) { _mm512_storeu_pd(x, a); }
ALWAYS_INLINE vec vec_setall(double a) { return _mm512_set1_pd(a); }
ALWAYS_INLINE vec vec_add(vec a, vec b) { return _mm512_add_pd(a, b); }
ALWAYS_INLINE vec vec_sub(vec a, vec b) { return _mm512_sub_pd(a, b); }
ALWAYS_INLINE vec vec_mul(vec a, vec b) { return _mm512_mul_pd(a, b); }
ALWAYS_INLINE vec vec_muladd(vec a, vec b, vec c) { return _mm512_fmadd_pd(a, b, c); }
ALWAYS_INLINE vec vec_nmuladd(vec a, vec b, vec c) { return _mm512_fnmadd_pd(a, b, c); }

#elif defined(__AVX2__)

#define VEC 4
#define REGISTERS 16
#define FUSED 1
typedef __m256d vec;
ALWAYS_INLINE vec vec_load(const double *x) { return _mm256_loadu_pd(x); }
ALWAYS_INLINE void vec_store(double *x, vec a) { _mm256_storeu_pd(x, a); }
ALWAYS_INLINE vec vec_setall(double a) { return _mm256_set1_pd(a); }
ALWAYS_INLINE vec vec_add(vec a, vec b) { return _mm256_add_pd(a, b); }
ALWAYS_INLINE vec vec_sub(vec a, vec b) { return _mm256_sub_pd(a, b); }
ALWAYS_INLINE vec vec_mul(vec a, vec b) { return _mm256_mul_pd(a, b); }
ALWAYS_INLINE vec vec_muladd(vec a, vec b, vec c) { return _mm256_fmadd_pd(a, b, c); }
ALWAYS_INLINE vec vec_nmuladd(vec a, vec b, vec c) { return _mm256_fnmadd_pd(a, b, c); }

#else

#define VEC 2
#define REGISTERS 16
#define FUSED 0
typedef __m128d vec;
ALWAYS_INLINE vec vec_load(const double *x) { return _mm_loadu_pd(x); }
ALWAYS_INLINE void vec_store(double *x, vec a) { _mm_storeu_pd(x, a); }
ALWAYS_INLINE vec vec_setall(double a) { return _mm_set1_pd(a); }
ALWAYS_INLINE vec vec_add(vec a, vec b) { return _mm_add_pd(a, b); }
ALWAYS_INLINE vec vec_sub(vec a, vec b) { return _mm_sub_pd(a, b); }
ALWAYS_INLINE vec vec_mul(vec a, vec b) { return _mm_mul_pd(a, b); }
ALWAYS_INLINE vec vec_muladd(vec a, vec b, vec c) { return _mm_add_pd(_mm_mul_pd(a, b), c); }
ALWAYS_INLINE vec vec_nmuladd(vec a, vec b, vec c) { return _mm_sub_pd(c, _mm_mul_pd(a, b)); }

#endif

#if !defined(__AVX2__)
ALWAYS_INLINE double muladd(double a, double b, double c) { return a * b + c; }
#elif defined(__GNUC__) /* of which compilers make vectors, too */
ALWAYS_INLINE double muladd(double a, double b, double c) { return __builtin_fma(a, b, c); }
#else
ALWAYS_INLINE double muladd(double a, double b, double c)
{
    return _mm_cvtsd_f64(_mm_fmadd_sd(_mm_set_sd(a), _mm_set_sd(b), _mm_set_sd(c)));
}
#endif

#elif !defined(SIMD_GENERIC) && (defined(__aarch64__) || defined(_M_ARM64))
#include <arm_neon.h>

#define VEC 2
#define REGISTERS 32
#define FUSED 1
typedef float64x2_t vec;
ALWAYS_INLINE vec vec_load(const double *x) { return vld1q_f64(x); }
ALWAYS_INLINE void vec_store(double *x, vec a) { vst1q_f64(x, a); }
ALWAYS_INLINE vec vec_setall(double a) { return vdupq_n_f64(a); }
ALWAYS_INLINE vec vec_add(vec a, vec b) { return vaddq_f64(a, b); }
ALWAYS_INLINE vec vec_sub(vec a, vec b) { return vsubq_f64(a, b); }
ALWAYS_INLINE vec vec_mul(vec a, vec b) { return vmulq_f64(a, b); }
ALWAYS_INLINE vec vec_muladd(vec a, vec b, vec c) { return vfmaq_f64(c, a, b); }
ALWAYS_INLINE vec vec_nmuladd(vec a, vec b, vec c) { return vfmsq_f64(c, a, b); }
ALWAYS_INLINE double muladd(double a, double b, double c) { return fma(a, b, c); }

#elif defined(__GNUC__)

#ifndef SIMD_BYTES
#define SIMD_BYTES 16
#endif
#ifndef SIMD_REGISTERS
#define SIMD_REGISTERS 16
#endif
#define VEC (SIMD_BYTES / 8)
#define REGISTERS SIMD_REGISTERS
#define FUSED 0
typedef double vec __attribute__((vector_size(SIMD_BYTES)));
typedef double vec_anywhere __attribute__((vector_size(SIMD_BYTES), aligned(8), may_alias));
ALWAYS_INLINE vec vec_load(const double *x) { return *(const vec_anywhere *) x; }
ALWAYS_INLINE void vec_store(double *x, vec a) { *(vec_anywhere *) x = a; }
ALWAYS_INLINE vec vec_setall(double a) { return a - (vec) {0}; }
ALWAYS_INLINE vec vec_add(vec a, vec b) { return a + b; }
ALWAYS_INLINE vec vec_sub(vec a, vec b) { return a - b; }
ALWAYS_INLINE vec vec_mul(vec a, vec b) { return a * b; }
ALWAYS_INLINE vec vec_muladd(vec a, vec b, vec c) { return a * b + c; }
ALWAYS_INLINE vec vec_nmuladd(vec a, vec b, vec c) { return c - a * b; }
ALWAYS_INLINE double muladd(double a, double b, double c) { return a * b + c; }

#else /* one at a time */

#define VEC 1
#define REGISTERS 16
#define FUSED 0
typedef double vec;
ALWAYS_INLINE vec vec_load(const double *x) { return *x; }
ALWAYS_INLINE void vec_store(double *x, vec a) { *x = a; }
ALWAYS_INLINE vec vec_setall(double a) { return a; }
ALWAYS_INLINE vec vec_add(vec a, vec b) { return a + b; }
ALWAYS_INLINE vec vec_sub(vec a, vec b) { return a - b; }
ALWAYS_INLINE vec vec_mul(vec a, vec b) { return a * b; }
ALWAYS_INLINE vec vec_muladd(vec a, vec b, vec c) { return a * b + c; }
ALWAYS_INLINE vec vec_nmuladd(vec a, vec b, vec c) { return c - a * b; }
ALWAYS_INLINE double muladd(double a, double b, double c) { return a * b + c; }

#endif

ALWAYS_INLINE vec vec_zero(void) { return vec_setall(0.0); }

/* The sum over the lanes of a. */
#if defined(SIMD_GENERIC) || !defined(__AVX2__)
ALWAYS_INLINE double vec_sum(vec a)
{
    double lane[VEC], total = 0.0;
    vec_store(lane, a);
    for (int l = 0; l < VEC; l++)
        total += lane[l];
    return total;
}
#else
ALWAYS_INLINE double vec_sum(vec a)
{
#if VEC == 8
    __m256d b = _mm256_add_pd(_mm512_castpd512_pd256(a), _mm512_extractf64x4_pd(a, 1));
#else
    __m256d b = a;
#endif
    __m128d c = _mm_add_pd(_mm256_castpd256_pd128(b), _mm256_extractf128_pd(b, 1));
    return _mm_cvtsd_f64(_mm_add_sd(c, _mm_unpackhi_pd(c, c)));
}
#endif

/* Rows a[0 .. VEC) become columns. */
#if !defined(SIMD_GENERIC) && (defined(__aarch64__) || defined(_M_ARM64))
ALWAYS_INLINE void vec_transpose(vec *a)
{
    vec b = vzip1q_f64(a[0], a[1]);
    a[1] = vzip2q_f64(a[0], a[1]);
    a[0] = b;
}
#elif defined(SIMD_GENERIC) || !(defined(__x86_64__) || defined(_M_X64))
ALWAYS_INLINE void vec_transpose(vec *a)
{
    double rows[VEC][VEC], columns[VEC][VEC];
    for (int i = 0; i < VEC; i++)
        vec_store(rows[i], a[i]);
    for (int i = 0; i < VEC; i++)
        for (int j = 0; j < VEC; j++)
            columns[j][i] = rows[i][j];
    for (int i = 0; i < VEC; i++)
        a[i] = vec_load(columns[i]);
}
#elif VEC == 2
ALWAYS_INLINE void vec_transpose(vec *a)
{
    vec b = _mm_unpacklo_pd(a[0], a[1]);
    a[1] = _mm_unpackhi_pd(a[0], a[1]);
    a[0] = b;
}
#elif VEC == 4
ALWAYS_INLINE void vec_transpose(vec *a)
{
    vec b = _mm256_unpacklo_pd(a[0], a[1]), c = _mm256_unpackhi_pd(a[0], a[1]);
    vec d = _mm256_unpacklo_pd(a[2], a[3]), e = _mm256_unpackhi_pd(a[2], a[3]);
    a[0] = _mm256_permute2f128_pd(b, d, 0x20);
    a[1] = _mm256_permute2f128_pd(c, e, 0x20);
    a[2] = _mm256_permute2f128_pd(b, d, 0x31);
    a[3] = _mm256_permute2f128_pd(c, e, 0x31);
}
#else
ALWAYS_INLINE void vec_transpose(vec *a)
{
    vec b[8], c[8];
    for (int i = 0; i < 8; i += 2) { /* pairs of lanes, then quarters, then halves */
        b[i] = _mm512_unpacklo_pd(a[i], a[i + 1]);
        b[i + 1] = _mm512_unpackhi_pd(a[i], a[i + 1]);
    }
    for (int i = 0; i < 8; i += 4)
        for (int j = 0; j < 2; j++) {
            c[i + j] = _mm512_shuffle_f64x2(b[i + j], b[i + j + 2], 0x88);
            c[i + j + 2] = _mm512_shuffle_f64x2(b[i + j], b[i + j + 2], 0xdd);
        }
    for (int j = 0; j < 4; j++) {
        a[j] = _mm512_shuffle_f64x2(c[j], c[j + 4], 0x88);
        a[j + 4] = _mm512_shuffle_f64x2(c[j], c[j + 4], 0xdd);
    }
}
#endif

#endif
