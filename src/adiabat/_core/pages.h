/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory in large pages, where the system has them: Linux provides a page of 2 MB in the time of a
 * hundred of 4 KB.
 */
#ifndef ADIABAT_PAGES_H
#define ADIABAT_PAGES_H

#include <stddef.h>

#ifdef __linux__

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/* Ask for large pages in all of this memory that is whole small ones. */
static inline void pages_ask(void *memory, size_t bytes)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t first = ((uintptr_t)memory + page - 1) / page * page;
    uintptr_t last = ((uintptr_t)memory + bytes) / page * page;
#ifdef MADV_HUGEPAGE
    if (first < last)
        (void)madvise((void *)first, last - first, MADV_HUGEPAGE);
#endif
}

#else

static inline void pages_ask(void *memory, size_t bytes)
{
    (void)memory;
    (void)bytes;
}

#endif
#endif
