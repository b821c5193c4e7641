# SPDX-License-Identifier: BSD-3-Clause
"""Dense linear algebra by its mathematical name: the only file that names BLAS or LAPACK.

Each function is one line of NumPy, written in the comment under its signature; the operand that
is overwritten comes last, or is said to be. Sizes are Py_ssize_t and become the integer type of
SciPy's BLAS here and nowhere else.

Storage. Matrices are taken column by column (Fortran order: entry i, j is A[i + j * lda]).

Invariant: an empty dimension means what NumPy says it means (an empty product is 0, an empty
system has nothing to solve).

Cimport by name, `from adiabat._core.blas cimport dot`: in that form alone does the build notice
an edit of this file.
"""

from scipy.linalg.cython_blas cimport (
    dasum, daxpy, ddot, dgemm, dgemv, dtrsv, ssyrk,
)
from scipy.linalg.cython_lapack cimport dpotrf

include "_blas_int.pxi"


cdef inline blas_int leading(Py_ssize_t ld) noexcept nogil:
    # max(ld, 1): BLAS refuses a leading dimension of 0, even for an empty matrix
    return <blas_int> (ld if ld > 1 else 1)


# ---- vectors ------------------------------------------------------------------------------------

cdef inline double dot(Py_ssize_t n, const double* x, const double* y) noexcept nogil:
    # x @ y
    cdef blas_int size = <blas_int> n, one = 1
    return ddot(&size, <double*> x, &one, <double*> y, &one)


cdef inline double asum(Py_ssize_t n, const double* x) noexcept nogil:
    # abs(x).sum()
    cdef blas_int size = <blas_int> n, one = 1
    return dasum(&size, <double*> x, &one)


cdef inline void axpy(Py_ssize_t n, double a, const double* x, double* y) noexcept nogil:
    # y += a * x
    cdef blas_int size = <blas_int> n, one = 1
    daxpy(&size, &a, <double*> x, &one, y, &one)


# ---- a lower-triangular factor L (n, n), column-major -------------------------------------------

cdef inline void trsv_lower(Py_ssize_t n, const double* L, Py_ssize_t ldl,
                            double* x) noexcept nogil:
    # x = solve(L, x)                   forward substitution
    cdef blas_int size = <blas_int> n, ld = leading(ldl), one = 1
    cdef char uplo = b'L', trans = b'N', diag = b'N'
    dtrsv(&uplo, &trans, &diag, &size, <double*> L, &ld, x, &one)


cdef inline Py_ssize_t potrf(Py_ssize_t n, double* A, Py_ssize_t lda) noexcept nogil:
    # tril(A) = cholesky(A)             0, or the 1-based order of the minor that is not positive
    cdef blas_int size = <blas_int> n, ld = leading(lda), info = 0
    cdef char uplo = b'L'
    dpotrf(&uplo, &size, A, &ld, &info)
    return <Py_ssize_t> info


# ---- column-major products ----------------------------------------------------------------------

cdef inline void gemm(bint trans_a, bint trans_b, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k,
                      double alpha, const double* A, Py_ssize_t lda,
                      const double* B, Py_ssize_t ldb,
                      double beta, double* C, Py_ssize_t ldc) noexcept nogil:
    # C = alpha * op(A) @ op(B) + beta * C      op(A) (m, k), op(B) (k, n), C (m, n)
    cdef blas_int rows = <blas_int> m, columns = <blas_int> n, inner = <blas_int> k
    cdef blas_int ld_a = leading(lda), ld_b = leading(ldb), ld_c = leading(ldc)
    cdef char op_a = b'T' if trans_a else b'N'
    cdef char op_b = b'T' if trans_b else b'N'
    dgemm(&op_a, &op_b, &rows, &columns, &inner, &alpha, <double*> A, &ld_a, <double*> B, &ld_b,
          &beta, C, &ld_c)


cdef inline void gemv(Py_ssize_t m, Py_ssize_t n, const double* A, Py_ssize_t lda,
                      const double* x, double* y) noexcept nogil:
    # y = A @ x                                 A (m, n)
    cdef blas_int rows = <blas_int> m, columns = <blas_int> n, ld = leading(lda), step = 1
    cdef char trans = b'N'
    cdef double one = 1.0, zero = 0.0
    dgemv(&trans, &rows, &columns, &one, <double*> A, &ld, <double*> x, &step, &zero, y, &step)


cdef inline void gemv_t(Py_ssize_t m, Py_ssize_t n, double alpha, const double* A, Py_ssize_t lda,
                        const double* x, double* y) noexcept nogil:
    # y += alpha * A.T @ x                      A (m, n)
    cdef blas_int rows = <blas_int> m, columns = <blas_int> n, ld = leading(lda), step = 1
    cdef char trans = b'T'
    cdef double one = 1.0
    dgemv(&trans, &rows, &columns, &alpha, <double*> A, &ld, <double*> x, &step, &one, y, &step)


cdef inline void ssyrk_lower(Py_ssize_t n, Py_ssize_t k, const float* A, Py_ssize_t lda,
                             float* C, Py_ssize_t ldc) noexcept nogil:
    # tril(C) = A @ A.T                         A (n, k), in single precision
    cdef blas_int size = <blas_int> n, inner = <blas_int> k
    cdef blas_int ld_a = leading(lda), ld_c = leading(ldc)
    cdef char uplo = b'L', trans = b'N'
    cdef float one = 1.0, zero = 0.0
    ssyrk(&uplo, &trans, &size, &inner, &one, <float*> A, &ld_a, &zero, C, &ld_c)
