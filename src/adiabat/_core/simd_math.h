/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Further operations on the vectors of simd.h: quotients, absolute values, comparisons, powers of
 * two, the exponential.
 */
#ifndef ADIABAT_SIMD_MATH_H
#define ADIABAT_SIMD_MATH_H

#include <string.h>

#include "simd.h"

/* Before a loop whose count is known: its sums stay in registers. */
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#elif defined(__GNUC__)
#define UNROLL _Pragma("GCC unroll 16")
#else
#define UNROLL
#endif

/* vec_max(a, b) is b where a is not a number. Bit l of vec_exceeds(a, b) is set unless a <= b in
 * lane l. vec_unless_below(a, x, least) is 0 where x < least, else a. vec_exp2(k), where k is
 * EXP2_SHIFT + a whole number from -1100 to 0, is 2 to the power of that number + EXP2_RAISED. */
#define EXP2_SHIFT 0x1.8p52
#define EXP2_RAISED 128

#if !defined(SIMD_GENERIC) && defined(__AVX512F__)

ALWAYS_INLINE vec vec_div(vec a, vec b) { return _mm512_div_pd(a, b); }
ALWAYS_INLINE vec vec_abs(vec a) { return _mm512_abs_pd(a); }
ALWAYS_INLINE vec vec_max(vec a, vec b) { return _mm512_max_pd(a, b); }
ALWAYS_INLINE unsigned vec_exceeds(vec a, vec b)
{
    return _mm512_cmp_pd_mask(a, b, _CMP_NLE_UQ);
}
ALWAYS_INLINE vec vec_unless_below(vec a, vec x, vec least)
{
    return _mm512_maskz_mov_pd(_mm512_cmp_pd_mask(x, least, _CMP_NLT_UQ), a);
}
ALWAYS_INLINE vec vec_exp2(vec k)
{
    __m512i exponent = _mm512_set1_epi64((int64_t) (1023 + EXP2_RAISED) << 52);
    return _mm512_castsi512_pd(
        _mm512_add_epi64(_mm512_slli_epi64(_mm512_castpd_si512(k), 52), exponent));
}

#elif !defined(SIMD_GENERIC) && defined(__AVX2__)

ALWAYS_INLINE vec vec_div(vec a, vec b) { return _mm256_div_pd(a, b); }
ALWAYS_INLINE vec vec_abs(vec a) { return _mm256_andnot_pd(_mm256_set1_pd(-0.0), a); }
ALWAYS_INLINE vec vec_max(vec a, vec b) { return _mm256_max_pd(a, b); }
ALWAYS_INLINE unsigned vec_exceeds(vec a, vec b)
{
    return (unsigned) _mm256_movemask_pd(_mm256_cmp_pd(a, b, _CMP_NLE_UQ));
}
ALWAYS_INLINE vec vec_unless_below(vec a, vec x, vec least)
{
    return _mm256_and_pd(_mm256_cmp_pd(x, least, _CMP_NLT_UQ), a);
}
ALWAYS_INLINE vec vec_exp2(vec k)
{
    __m256i exponent = _mm256_set1_epi64x((int64_t) (1023 + EXP2_RAISED) << 52);
    return _mm256_castsi256_pd(
        _mm256_add_epi64(_mm256_slli_epi64(_mm256_castpd_si256(k), 52), exponent));
}

#elif !defined(SIMD_GENERIC) && (defined(__x86_64__) || defined(_M_X64))

ALWAYS_INLINE vec vec_div(vec a, vec b) { return _mm_div_pd(a, b); }
ALWAYS_INLINE vec vec_abs(vec a) { return _mm_andnot_pd(_mm_set1_pd(-0.0), a); }
ALWAYS_INLINE vec vec_max(vec a, vec b) { return _mm_max_pd(a, b); }
ALWAYS_INLINE unsigned vec_exceeds(vec a, vec b)
{
    return (unsigned) _mm_movemask_pd(_mm_cmpnle_pd(a, b));
}
ALWAYS_INLINE vec vec_unless_below(vec a, vec x, vec least)
{
    return _mm_and_pd(_mm_cmpnlt_pd(x, least), a);
}
ALWAYS_INLINE vec vec_exp2(vec k)
{
    __m128i exponent = _mm_set1_epi64x((int64_t) (1023 + EXP2_RAISED) << 52);
    return _mm_castsi128_pd(_mm_add_epi64(_mm_slli_epi64(_mm_castpd_si128(k), 52), exponent));
}

#elif !defined(SIMD_GENERIC) && (defined(__aarch64__) || defined(_M_ARM64))

ALWAYS_INLINE vec vec_div(vec a, vec b) { return vdivq_f64(a, b); }
ALWAYS_INLINE vec vec_abs(vec a) { return vabsq_f64(a); }
ALWAYS_INLINE vec vec_max(vec a, vec b) { return vbslq_f64(vcgtq_f64(a, b), a, b); }
ALWAYS_INLINE unsigned vec_exceeds(vec a, vec b)
{
    uint64x2_t within = vcleq_f64(a, b);
    return (vgetq_lane_u64(within, 0) ? 0u : 1u) | (vgetq_lane_u64(within, 1) ? 0u : 2u);
}
ALWAYS_INLINE vec vec_unless_below(vec a, vec x, vec least)
{
    return vbslq_f64(vcltq_f64(x, least), vdupq_n_f64(0.0), a);
}
ALWAYS_INLINE vec vec_exp2(vec k)
{
    int64x2_t exponent = vdupq_n_s64((int64_t) (1023 + EXP2_RAISED) << 52);
    return vreinterpretq_f64_s64(
        vaddq_s64(vshlq_n_s64(vreinterpretq_s64_f64(k), 52), exponent));
}

#else /* lane by lane */

#define VEC_EACH(result, expression)                                                         \
    double result##_lanes[VEC];                                                              \
    for (int l = 0; l < VEC; l++)                                                            \
        result##_lanes[l] = expression;                                                      \
    vec result = vec_load(result##_lanes)
#define VEC_LANES(a)                                                                         \
    double a##_lanes[VEC];                                                                   \
    vec_store(a##_lanes, a)

ALWAYS_INLINE vec vec_div(vec a, vec b)
{
    VEC_LANES(a);
    VEC_LANES(b);
    VEC_EACH(c, a_lanes[l] / b_lanes[l]);
    return c;
}
ALWAYS_INLINE vec vec_abs(vec a)
{
    VEC_LANES(a);
    VEC_EACH(c, fabs(a_lanes[l]));
    return c;
}
ALWAYS_INLINE vec vec_max(vec a, vec b)
{
    VEC_LANES(a);
    VEC_LANES(b);
    VEC_EACH(c, a_lanes[l] > b_lanes[l] ? a_lanes[l] : b_lanes[l]);
    return c;
}
ALWAYS_INLINE unsigned vec_exceeds(vec a, vec b)
{
    unsigned mask = 0;
    VEC_LANES(a);
    VEC_LANES(b);
    for (int l = 0; l < VEC; l++)
        mask |= (a_lanes[l] <= b_lanes[l] ? 0u : 1u) << l;
    return mask;
}
ALWAYS_INLINE vec vec_unless_below(vec a, vec x, vec least)
{
    VEC_LANES(a);
    VEC_LANES(x);
    VEC_LANES(least);
    VEC_EACH(c, x_lanes[l] < least_lanes[l] ? 0.0 : a_lanes[l]);
    return c;
}
ALWAYS_INLINE vec vec_exp2(vec k)
{
    VEC_LANES(k);
    uint64_t bits[VEC];
    double c[VEC];
    memcpy(bits, k_lanes, sizeof bits);
    for (int l = 0; l < VEC; l++)
        bits[l] = (bits[l] << 52) + ((uint64_t) (1023 + EXP2_RAISED) << 52);
    memcpy(c, bits, sizeof c);
    return vec_load(c);
}

#endif

/* exp(x) for x <= 0, to about one unit in the last place, and 1 at 0. Results below the smallest
 * normal number are rounded as they should be; below half of the smallest number they are 0.
 *
 * exp(x) = 2^k exp(r), r = x - k log 2, |r| <= log(2) / 2, and exp(r) = 1 + (r + r^2 p(r)), where
 * p is the polynomial whose largest relative error in exp(r) is smallest: 3.6e-18. log 2 is taken
 * in two parts, the first with so few digits that its product with k is exact. */
ALWAYS_INLINE vec vec_exp(vec x)
{
    const vec shift = vec_setall(EXP2_SHIFT), least = vec_setall(-0x1.74910d52d3051p9);
    vec within = vec_unless_below(x, x, least); /* nothing infinite from here on */
    vec shifted = vec_muladd(within, vec_setall(0x1.71547652b82fep0), shift);
    vec k = vec_sub(shifted, shift);
    vec r = vec_nmuladd(k, vec_setall(0x1.62e42feep-1), within);
    r = vec_nmuladd(k, vec_setall(0x1.a39ef35793c76p-33), r);
    vec p = vec_setall(0x1.ad7f6c6c7fa5ep-26);
    p = vec_muladd(p, r, vec_setall(0x1.28ad72d279198p-22));
    p = vec_muladd(p, r, vec_setall(0x1.71df2553cc5bdp-19));
    p = vec_muladd(p, r, vec_setall(0x1.a0199a0c60f6fp-16));
    p = vec_muladd(p, r, vec_setall(0x1.a01a012a5709fp-13));
    p = vec_muladd(p, r, vec_setall(0x1.6c16c1842a13fp-10));
    p = vec_muladd(p, r, vec_setall(0x1.1111111127be7p-7));
    p = vec_muladd(p, r, vec_setall(0x1.555555555087cp-5));
    p = vec_muladd(p, r, vec_setall(0x1.55555555554fap-3));
    p = vec_muladd(p, r, vec_setall(0x1.000000000000ap-1));
    vec y = vec_add(vec_muladd(vec_mul(r, r), p, r), vec_setall(1.0));
    /* in two steps, of which only the last may leave the normal numbers: it rounds once */
    vec scale = vec_unless_below(vec_exp2(shifted), x, least);
    return vec_mul(vec_mul(y, scale), vec_setall(0x1p-128));
}

#endif
