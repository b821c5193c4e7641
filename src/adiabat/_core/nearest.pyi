# SPDX-License-Identifier: BSD-3-Clause
import numpy as np
import numpy.typing as npt

from adiabat.typing import FloatArray, IntArray

def approach(
    values: FloatArray,
    sizes: FloatArray,
    others: FloatArray,
    roundings: float,
    rows: IntArray,
    names: npt.NDArray[np.int16],
    square: FloatArray,
    number: npt.NDArray[np.int16],
) -> None: ...
def among(
    rows: IntArray, parts: npt.NDArray[np.int16], names: npt.NDArray[np.int16]
) -> IntArray: ...
def places_of(rows: IntArray, sought: IntArray) -> IntArray: ...
def take_out(rows: IntArray, gone: IntArray) -> None: ...
