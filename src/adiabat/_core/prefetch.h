/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory that is read soon, here and there, is asked for ahead: where rows stand in no order, the
 * CPU cannot guess the next one.
 */
#ifndef ADIABAT_PREFETCH_H
#define ADIABAT_PREFETCH_H

#include <stddef.h>

#if defined(__GNUC__)
#define PREFETCH(place) __builtin_prefetch(place)
#elif defined(_M_X64)
#include <intrin.h>
#define PREFETCH(place) _mm_prefetch((const char *) (place), _MM_HINT_T0)
#else
#define PREFETCH(place) ((void) 0)
#endif

/* Ask for so many doubles. */
static inline void prefetch_doubles(const double *first, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i += 8)
        PREFETCH(first + i);
}

#endif
