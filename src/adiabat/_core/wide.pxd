# SPDX-License-Identifier: BSD-3-Clause
"""Loops compiled once for each width of vector register, chosen when the program starts.

A function that returns `wide_void` is cloned by GCC for AVX2 and AVX-512, where the C library can
choose (GNU's on x86-64); elsewhere it is an ordinary function. All clones round alike: the core is
built without fused multiply-add.
"""

cdef extern from *:
    """
    #if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
    #define ADIABAT_WIDE __attribute__((target_clones("avx512f", "avx2", "default")))
    #else
    #define ADIABAT_WIDE
    #endif
    """
    ctypedef void wide_void "ADIABAT_WIDE void"
