# SPDX-License-Identifier: BSD-3-Clause
from adiabat.typing import FloatArray

def take_large_pages(array: FloatArray) -> None: ...
