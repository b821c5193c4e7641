/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The unit that is compiled once for each SIMD level: SIMD_LEVEL is its name, and the compiler may
 * use the instructions of that level. It defines one thing, the table of its functions.
 */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif

#include "downdate_simd.h"
#include "kernel_lists_simd.h"
#include "pairs_simd.h"
#include "panels_simd.h"
#include "simd_table.h"
#include "sparse_rows_simd.h"
#include "triangular_solve_simd.h"
#include "twofold_simd.h"
#include "whole_simd.h"

#define SIMD_PASTE(LEVEL) simd_table_##LEVEL
#define SIMD_NAME(LEVEL) SIMD_PASTE(LEVEL)
#define SIMD_ENTRY(RESULT, NAME, ARGUMENTS) NAME,

extern const simd_table SIMD_NAME(SIMD_LEVEL);
const simd_table SIMD_NAME(SIMD_LEVEL) = {VEC, SIMD_FUNCTIONS(SIMD_ENTRY)};
