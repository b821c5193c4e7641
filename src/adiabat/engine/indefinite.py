# SPDX-License-Identifier: BSD-3-Clause
"""Kernels that are not positive semidefinite, refused where samples show it.

Most kernels with a name are semidefinite by their formula; one that was given may not be.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from adiabat.errors import IndefiniteKernelError
from adiabat.kernels import Kernel
from adiabat.typing import FloatArray, IntArray

# Samples among which a user's own kernel is inspected, and the negative part of its spectrum that
# may be rounding: a matrix that was once float32 has 1e-8.
INSPECTED = 200
NEGATIVE = 1e-6


def refuse_negative(kernel: Kernel, own: FloatArray) -> None:
    """Refuse k(x, x) below 0."""
    if not kernel.is_semidefinite and len(own) and own.min() < 0.0:
        raise IndefiniteKernelError(
            f"kernel={kernel.name!r} is not positive semidefinite: k(x, x) = "
            f"{own.min():.3g} for a row of X. {_remedy(kernel)}"
        )


def refuse_indefinite(
    kernel: Kernel, block: Callable[[IntArray, IntArray], FloatArray], positions: IntArray
) -> None:
    """Look for negative curvature among some samples, those at positions, the last, first."""
    if kernel.is_semidefinite or len(positions) == 0:
        return
    rng = np.random.default_rng(positions[0] + len(positions))
    new = rng.permutation(positions)[:INSPECTED]
    old = rng.permutation(positions[0])[: INSPECTED - len(new)]
    chosen = np.sort(np.concatenate([new, old]))
    spectrum = np.linalg.eigvalsh(block(chosen, chosen))
    if spectrum[0] < -NEGATIVE * max(spectrum[-1], -spectrum[0]):
        raise IndefiniteKernelError(
            f"kernel={kernel.name!r} is not positive semidefinite: among "
            f"{len(chosen)} samples of X its eigenvalues run from {spectrum[0]:.3g} to "
            f"{spectrum[-1]:.3g}, so the problem has no unique optimum. {_remedy(kernel)}"
        )


def _remedy(kernel: Kernel) -> str:
    if kernel.name == "poly":
        given = f"degree={kernel.degree!r} and coef0={kernel.coef0!r}"
        return f"Instead of {given}, use a whole degree and coef0 >= 0."
    return "Pass similarities, not distances, or use a positive semidefinite kernel."
