/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a thread does between two looks at what another is about to write.
 */
#ifndef ADIABAT_PAUSE_H
#define ADIABAT_PAUSE_H

#if defined(__x86_64__) && defined(__GNUC__)
#define PAUSE() __builtin_ia32_pause()
#elif defined(__aarch64__) && defined(__GNUC__)
#define PAUSE() __asm__ __volatile__("yield")
#else
#define PAUSE() ((void) 0)
#endif

#endif
