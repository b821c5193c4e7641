# SPDX-License-Identifier: BSD-3-Clause
"""The table of the SIMD level in use, for other modules of the core.

    simd.solve_forward(&s)

calls the function that was compiled for it.
"""

from libc.stdint cimport int32_t, int64_t, uint32_t

cdef extern from "wavefront.h":
    ctypedef struct atomic_word:
        pass
    ctypedef struct wavefront:
        atomic_word stalled
    void wavefront_begin(wavefront* w) noexcept nogil
    Py_ssize_t wavefront_take(wavefront* w) noexcept nogil
    Py_ssize_t wavefront_wait(wavefront* w, Py_ssize_t known) noexcept nogil
    void wavefront_pass(wavefront* w, Py_ssize_t block) noexcept nogil
    void word_store(atomic_word* word, int64_t value) noexcept nogil
    int64_t word_load(atomic_word* word) noexcept nogil

cdef extern from "triangular_solve.h":
    enum:
        SOLVE_STEP, SOLVE_MOST
    ctypedef struct triangular_solve:
        const double* L
        double* x
        Py_ssize_t first, n, cap, line, k
        wavefront blocks

cdef extern from "downdate.h":
    enum:
        DOWNDATE_GROUPS, DOWNDATE_LINE, DOWNDATE_BLOCK, DOWNDATE_KEPT, DOWNDATE_SMALL
    ctypedef struct downdate:
        double* L
        double* z
        const long long* removed
        Py_ssize_t k, size, cap
        double* room
        wavefront blocks
        atomic_word[DOWNDATE_GROUPS] done

cdef extern from "pairs.h":
    enum:
        PAIRS_BLOCK, PAIRS_DONE, PAIRS_LIMIT, PAIRS_PAUSE
    ctypedef struct pair_descent:
        Py_ssize_t n
        const double** row
        const double* diagonal
        const double* lo
        const double* hi
        const double* kink
        const double* jump
        double* u
        double* rise
        double* fall
        double* best
        double flat, tolerance, span
        Py_ssize_t steps, pause

cdef extern from "kernel_values.h":
    enum:
        KERNEL_FEW_FEATURES, KERNEL_PATCH_ROWS, KERNEL_LIST_COLUMNS
    ctypedef enum kernel_name:
        KERNEL_LINEAR, KERNEL_POLY, KERNEL_RBF, KERNEL_LAPLACIAN, KERNEL_CHI2
    ctypedef struct kernel_rows:
        const double* value
        const int32_t* feature
        const int64_t* start
        const int64_t* length
        const double* norm
        Py_ssize_t n, n_features
    ctypedef struct kernel_lists:
        int32_t* feature
        int32_t* list
        const int64_t* bound
        const int32_t* column
        const double* value
        uint32_t mask
        int bits
    uint32_t kernel_slot(const kernel_lists* lists, int32_t feature) noexcept nogil
    ctypedef struct kernel_job:
        kernel_name kernel
        double degree
        double gamma, coef0
        kernel_rows rows, columns
        const double* table
        const double* column_norm
        const kernel_lists* lists
        double** out
        Py_ssize_t step, part_rows
        bint strange, no_memory

cdef extern from "simd_table.h":
    ctypedef struct simd_table:
        Py_ssize_t vec
        void (*solve_forward)(triangular_solve*) noexcept nogil
        void (*solve_backward)(triangular_solve*) noexcept nogil
        void (*downdate_join)(downdate*) noexcept nogil
        void (*multiply_runs)(
            const double**, const Py_ssize_t*, const Py_ssize_t*, Py_ssize_t, Py_ssize_t,
            const long long*, Py_ssize_t, const double*, double*) noexcept nogil
        Py_ssize_t (*pairs_descend)(pair_descent*) noexcept nogil
        void (*pairs_move_together)(
            pair_descent*, const long long*, const double*, Py_ssize_t) noexcept nogil
        void (*kernel_values)(kernel_job*, Py_ssize_t) noexcept nogil
        void (*kernel_values_by_lists)(kernel_job*, Py_ssize_t) noexcept nogil
        void (*kernel_pack)(const kernel_rows*, bint, double*) noexcept nogil
        void (*kernel_diagonal)(
            kernel_job*, Py_ssize_t, const double*, double*) noexcept nogil
        void (*kernel_row_products)(
            Py_ssize_t, const double*, Py_ssize_t, const long long*, Py_ssize_t,
            double*) noexcept nogil
        void (*kernel_norms)(const kernel_rows*, Py_ssize_t, Py_ssize_t, double*) noexcept nogil
        Py_ssize_t (*count_nonzeros)(Py_ssize_t, const double*) noexcept nogil
        void (*whole_convert)(Py_ssize_t, const double*, float*, int*, int*) noexcept nogil
        void (*whole_add)(double*, const float*, Py_ssize_t, Py_ssize_t) noexcept nogil
        void (*twofold_add_row)(
            double*, double*, const double*, const double*, const double*, double, double,
            Py_ssize_t, Py_ssize_t) noexcept nogil
        void (*twofold_add_terms)(
            double*, double*, const double*, const double*, double, Py_ssize_t,
            Py_ssize_t) noexcept nogil
        void (*twofold_multiply_row)(
            const double*, const double*, const double*, const double*, const double*, Py_ssize_t,
            Py_ssize_t, double*, double*) noexcept nogil
        void (*twofold_centre_row)(
            double*, const double*, const double*, const double*, const double*, const double*,
            const double*, double, double, Py_ssize_t, Py_ssize_t) noexcept nogil

cdef const simd_table* simd
