# SPDX-License-Identifier: BSD-3-Clause
"""The SIMD level in use: the highest that this CPU can run, or the one that ADIABAT_SIMD names.

It is chosen when this module is imported, once for the process. `simd_table.h` lists what is
compiled for each level, `simd_level.c` is the unit that is compiled for it.
"""

from libc.stdlib cimport getenv

cdef extern from "simd_cpu.h":
    enum:
        SIMD_N_LEVELS
    ctypedef struct simd_level:
        const char* name
        const simd_table* table
        bint (*runs)() noexcept nogil
    const simd_level* simd_levels

cdef extern from *:
    """
    #if defined(__clang__)
    #define ADIABAT_COMPILER "Clang " __clang_version__
    #elif defined(__GNUC__)
    #define ADIABAT_COMPILER "GCC " __VERSION__
    #elif defined(_MSC_VER)
    #define ADIABAT_STRING(x) #x
    #define ADIABAT_QUOTED(x) ADIABAT_STRING(x)
    #define ADIABAT_COMPILER "MSVC " ADIABAT_QUOTED(_MSC_VER)
    #else
    #define ADIABAT_COMPILER "unknown"
    #endif
    """
    const char* ADIABAT_COMPILER
    int CYTHON_HEX_VERSION

VARIABLE = "ADIABAT_SIMD"

cdef const simd_level* _level = NULL


def levels():
    """Names of the levels that this CPU can run, the lowest first."""
    return [simd_levels[i].name.decode() for i in range(SIMD_N_LEVELS) if simd_levels[i].runs()]


def level():
    """Name of the level in use."""
    return _level.name.decode()


def wanted():
    """The level that the environment asks for; None if it does not."""
    cdef const char* value = getenv(VARIABLE.encode())
    return value.decode(errors="replace") if value != NULL and value[0] else None


def built_with():
    """Versions of Cython and the C compiler that the core was built with."""
    parts = [CYTHON_HEX_VERSION >> shift & 255 for shift in (24, 16, 8)]
    return {"Cython": ".".join(map(str, parts)), "compiler": ADIABAT_COMPILER.decode().strip()}


cdef int choose() except -1:
    global simd, _level
    cdef Py_ssize_t i
    here = levels()
    name = wanted() or here[len(here) - 1]
    if name not in here:
        raise ValueError(
            f"{VARIABLE}={name!r} names no SIMD level of this CPU, which has "
            f"{', '.join(here)}; set it to one of these, or not at all")
    for i in range(SIMD_N_LEVELS):
        if simd_levels[i].name.decode() == name:
            _level = &simd_levels[i]
    simd = _level.table
    return 0


choose()
