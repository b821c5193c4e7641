# SPDX-License-Identifier: BSD-3-Clause
from adiabat.typing import FloatArray

def add_outer(
    hi: FloatArray, lo: FloatArray, z: FloatArray, s: float, rest: FloatArray | None = None
) -> None: ...
def add_matrix(
    hi: FloatArray, lo: FloatArray, term: FloatArray, sign: float, rest: FloatArray | None = None
) -> None: ...
def add_twofold(
    hi: FloatArray,
    lo: FloatArray,
    term_hi: FloatArray,
    term_lo: FloatArray,
    sign: float,
    rest: FloatArray | None = None,
    term_rest: FloatArray | None = None,
) -> None: ...
def residual(
    hi: FloatArray,
    lo: FloatArray | None,
    ridge: FloatArray,
    x: FloatArray,
    b: FloatArray,
    b_rest: FloatArray,
) -> FloatArray: ...
def weighted_sums(A: FloatArray, x: FloatArray, start: FloatArray) -> FloatArray: ...
def centred(hi: FloatArray, lo: FloatArray, m: int) -> FloatArray: ...
