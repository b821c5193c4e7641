# SPDX-License-Identifier: BSD-3-Clause
"""Nanoseconds for one kernel value, against the plain way: BLAS or SciPy, then numpy.exp.

Both run in turn in one process on one thread, and the least time of each counts. `far` are rows
whose mean is ten standard deviations from zero, so that rbf sums differences; `zeros` are rows of
which a fifth is not zero.

    python -m benchmarks.numerics.kernel_values
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import additive_chi2_kernel
from threadpoolctl import threadpool_limits

from adiabat._core.simd import level
from adiabat.kernels import Kernel
from benchmarks import machine
from benchmarks.tables import Table, console, write_markdown

FloatArray = npt.NDArray[np.float64]
FEATURES = (2, 20, 64, 256, 784)
SHAPES = ((1, 5000), (100, 5000), (1000, 1000))
CHUNK = 1 << 15  # entries on which NumPy's passes find their operands in the cache
SECONDS = 0.3  # spent on each figure, at least


def plain(kernel: Kernel, A: FloatArray, B: FloatArray) -> Callable[[], FloatArray]:
    """The same values by libraries; norms are known before, as they are in a model."""
    a, b = np.einsum("ij,ij->i", A, A), np.einsum("ij,ij->i", B, B)

    def values() -> FloatArray:
        if kernel.name == "laplacian":
            block = cdist(A, B, "cityblock")
        elif kernel.name == "chi2":
            block = -additive_chi2_kernel(A, B)
        else:
            block = A @ B.T
        step = max(1, CHUNK // len(B))
        for start in range(0, len(A), step):
            part = block[start : start + step]
            if kernel.name == "poly":
                part *= kernel.gamma
                part += kernel.coef0
                part[:] = part * part * part
                continue
            if kernel.name == "rbf":
                part *= -2.0
                part += a[start : start + step, None]
                part += b
                np.maximum(part, 0.0, out=part)
            part *= -kernel.gamma
            np.exp(part, out=part)
        return np.asarray(block)

    return values


def least_times(ways: list[Callable[[], FloatArray]]) -> list[float]:
    """Seconds of each, taken in turn."""
    least = [np.inf] * len(ways)
    end = time.perf_counter() + SECONDS * len(ways)
    while time.perf_counter() < end or not np.isfinite(least[-1]):
        for k, way in enumerate(ways):
            started = time.perf_counter()
            way()
            least[k] = min(least[k], time.perf_counter() - started)
    return least


def main() -> int:
    """Measure, print, write."""
    screen = console()
    shapes = [f"{m} x {n:,}" for m, n in SHAPES]
    table = Table(
        f"One kernel value, ns, plain way and ours, SIMD level {level()}",
        ("kernel, rows", "features", *shapes),
    )
    rng = np.random.default_rng(0)
    cases = [("rbf", "near"), ("rbf", "far"), ("rbf", "zeros")]
    cases += [(name, "near") for name in ("poly", "laplacian", "chi2")]
    with threadpool_limits(1):
        for name, rows in cases:
            for p in FEATURES:
                cells = []
                for m, n in SHAPES:
                    A, B = rng.random((m, p)), rng.random((n, p))
                    if rows == "far":
                        A, B = A + 2.9, B + 2.9
                    if rows == "zeros":
                        A, B = A * (rng.random(A.shape) < 0.2), B * (rng.random(B.shape) < 0.2)
                    kernel = Kernel(name, 6.0 / p, 3, 1.0)
                    own = [kernel.rows(A, n), kernel.rows(B, m)]
                    own[0].norms, own[1].norms = kernel.norms(A), kernel.norms(B)
                    block = kernel.formula.block
                    ways = [plain(kernel, A, B), lambda own=own, block=block: block(*own)]
                    before, after = least_times(ways)
                    cells.append(f"{1e9 * before / m / n:.1f}, {1e9 * after / m / n:.1f}")
                table.add(f"{name}, {rows}", p, *cells)
    table.show(screen)
    path = write_markdown("kernel_values", "Kernel values", machine.description(), [table])
    screen.print(f"written to {path.parent.name}/", style="dim")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
