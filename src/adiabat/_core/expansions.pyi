# SPDX-License-Identifier: BSD-3-Clause
import numpy as np
import numpy.typing as npt

from adiabat.typing import FloatArray

IntArray = npt.NDArray[np.intp]

MOST_PARTS: int

def column(
    hi: FloatArray, lo: FloatArray, rest: FloatArray | None, m: int, p: int, parts: int
) -> FloatArray: ...
def add_scaled(
    y: FloatArray, x: FloatArray, a: FloatArray, sign: float, cutoff: float = 0.0
) -> None: ...
def add_products(y: FloatArray, a: FloatArray, b: FloatArray, sign: float) -> None: ...
def divide(y: FloatArray, d: FloatArray) -> FloatArray: ...
def dot(a: FloatArray, b: FloatArray, start: FloatArray, parts: int) -> FloatArray: ...
def dots(A: FloatArray, x: FloatArray, start: FloatArray) -> FloatArray: ...
def residual(
    hi: FloatArray,
    lo: FloatArray,
    rest: FloatArray | None,
    ridge: FloatArray,
    x: FloatArray,
    b: FloatArray,
    cutoff: float,
) -> FloatArray: ...
def remainder(
    hi: FloatArray,
    lo: FloatArray,
    rest: FloatArray | None,
    ridge: FloatArray,
    L: FloatArray,
    U: FloatArray,
    places: IntArray,
    cutoff: float,
) -> FloatArray: ...
