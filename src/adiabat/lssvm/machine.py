# SPDX-License-Identifier: BSD-3-Clause
"""The least-squares machine: exact moments, the matrix that answers for them, and w.

    w = argmin  rho ||w||^2 + sum_i s_i (w'phi_i + b - y_i)^2,    (G + rho I) w = sum s phi y   (3)

with as many right-hand sides as there are outputs, for one matrix. A change is made to copies and
comes back as a new machine, so that a change that fails leaves nothing behind. Every change ends
with the residual, computed from the moments to twice the precision and answered by P: that is how
far w is off. P only has to be good enough for the answer to shrink, hence its own drift is harmless
until it no longer does; then it is built anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from adiabat._core.kernel_values import multiply
from adiabat._core.thread_pool import in_slices
from adiabat._core.twofold import residual
from adiabat.lssvm.accuracy import primal_error
from adiabat.lssvm.auxiliary import AuxiliaryMatrix, IndefiniteMatrix
from adiabat.lssvm.exact_products import BLOCK_ROWS
from adiabat.lssvm.moments import Moments

FloatArray = npt.NDArray[np.float64]

# Updating P by L rows takes about 3 J^2 L operations, a factor J^3 / 3, and at a higher speed;
# benchmarks/papers/lkw19.py draws the time of both against L.
_UPDATE_SHARE: Final = 0.125
_CORRECTIONS: Final = 12
# A correction that is smaller than this needs no second look: what is left of it after it was made
# is smaller again by the factor by which corrections shrink.
_SETTLED: Final = 1e-12
# Part of `tol` that a correction may be, so that one more, as the judge makes it, is within `tol`.
_WITHIN: Final = 0.25
_NOTHING_BESIDE: Final = 1e-6


class NotSettled(ArithmeticError):
    """Corrections stopped shrinking before w was as exact as asked."""


@dataclass(frozen=True)
class Batch:
    """Rows that come (sign = 1) or go (sign = -1); `features` is applied to a block at a time."""

    X: Any
    targets: FloatArray
    weights: FloatArray | None
    sign: float
    features: Callable[[Any], FloatArray]

    def __len__(self) -> int:
        return len(self.targets)

    def blocks(
        self, first: int, last: int
    ) -> Iterator[tuple[FloatArray, FloatArray, FloatArray | None]]:
        """Features, targets and weights of rows from first to last, `BLOCK_ROWS` at a time."""
        for start in range(first, last, BLOCK_ROWS):
            part = slice(start, min(last, start + BLOCK_ROWS))
            s = None if self.weights is None else self.weights[part]
            yield self.features(self.X[part]), self.targets[part], s

    def signed_weights(self) -> FloatArray:
        """Weights, negative if the rows go."""
        ones = np.ones(len(self)) if self.weights is None else self.weights
        return self.sign * ones


Check = Callable[[Moments, Moments], None]


@dataclass(frozen=True)
class Effort:
    """What a change took: which way P went, corrections of w, times P had to be built anew."""

    way: str = "none"
    rounds: int = 0
    refreshes: int = 0


@dataclass(frozen=True)
class LeastSquares:
    """Moments of some rows, and the solution on them.

    `combine` has a column for each output and a row for the constant and each target: what the
    output aims at. `solution` has a row for each feature, and one for the bias if there is one.
    `error` is how far the solution was off, relative to its size, before its last correction, and
    `f_error` how far f may be off.
    """

    moments: Moments
    rho: float
    intercept: bool
    tol: float
    combine: FloatArray
    matrix: AuxiliaryMatrix
    solution: FloatArray
    error: float
    gap: float
    f_error: float
    effort: Effort

    #: Machines are replaced, not changed: there are no versions of one.
    version = 0

    def __len__(self) -> int:
        return self.moments.n

    # -- change ----------------------------------------------------------------------------------

    @classmethod
    def solved(
        cls, moments: Moments, rho: float, intercept: bool, tol: float, combine: FloatArray
    ) -> LeastSquares:
        """The machine of some moments, from scratch."""
        if moments.n_heavy == 0:
            moments.clear()
        matrix = AuxiliaryMatrix.rebuilt(moments, rho, intercept)
        right, _ = right_sides(moments, intercept, combine)
        start = matrix.solve(right)
        blank = cls(
            moments, rho, intercept, tol, combine, matrix, start, 0.0, 0.0, 0.0, Effort("rebuild")
        )
        return blank._settled()

    def changed(self, batches: list[Batch], check: Check) -> LeastSquares:
        """The machine once rows have come and gone, in one step.

        `check` sees the moments before and after, and may raise.

        Raises
        ------
        IndefiniteMatrix
            If no rows could have these moments: some that go were never there.
        NotSettled
            If w cannot be computed as exactly as `tol` asks.
        """
        moments = self.moments.copy()
        n_rows = sum(len(batch) for batch in batches)
        if not self.worth_updating(n_rows):
            gather(moments, batches, self.rho)
            check(self.moments, moments)
            return self.on(moments)
        phi = np.concatenate([batch.features(batch.X) for batch in batches])
        t = np.concatenate([batch.targets for batch in batches])
        s = np.concatenate([batch.signed_weights() for batch in batches])
        start = 0
        for batch in batches:
            rows = slice(start, start + len(batch))
            moments.add(phi[rows], t[rows], batch.weights, batch.sign, self.rho)
            start += len(batch)
        check(self.moments, moments)
        if moments.n_heavy == 0:
            return self.on(moments)
        forceful = s != 0.0
        phi, t, s = phi[forceful], t[forceful], s[forceful]
        try:
            matrix = self.matrix.changed(phi, s) if len(s) else self.matrix
        except IndefiniteMatrix:
            # may be rounding; a factor of the exact moments decides
            return self.on(moments)
        # (5): the rows' own residuals are what the old solution lacks
        aim = self.combine[0] + t @ self.combine[1:]
        psi = np.column_stack([phi, np.ones(len(phi))]) if self.intercept else phi
        step = matrix.solve(psi.T @ (s[:, None] * (aim - psi @ self.solution)))
        moved = replace(
            self, moments=moments, matrix=matrix, solution=self.solution + step,
            effort=Effort("update"),
        )  # fmt: skip
        return moved._settled()

    def on(self, moments: Moments, combine: FloatArray | None = None) -> LeastSquares:
        """The machine of other moments, with the same settings."""
        combine = self.combine if combine is None else combine
        return LeastSquares.solved(moments, self.rho, self.intercept, self.tol, combine)

    def retargeted(self, columns: Sequence[int | None], combine: FloatArray) -> LeastSquares:
        """With the targets in another order, some gone or new, and other outputs."""
        moments = self.moments.arranged(columns)
        right, _ = right_sides(moments, self.intercept, combine)
        start = self.matrix.solve(right)
        return replace(self, moments=moments, combine=combine, solution=start)._settled()

    def with_rho(self, rho: float, matrix: AuxiliaryMatrix) -> LeastSquares:
        """The machine of the same moments under another rho, whose matrix is at hand."""
        start = matrix.solve(right_sides(self.moments, self.intercept, self.combine)[0])
        other = replace(self, rho=rho, matrix=matrix, solution=start, effort=Effort("update"))
        return other._settled()

    def worth_updating(self, n_rows: int) -> bool:
        """Whether updating P by so many rows is cheaper than building it anew."""
        if not np.isfinite(self.matrix.total):
            return False
        return n_rows <= max(1.0, _UPDATE_SHARE * self.moments.width)

    # -- exactness -------------------------------------------------------------------------------

    def _settled(self) -> LeastSquares:
        """With the solution corrected until it is exact; P built anew if it cannot answer."""
        solution, matrix, effort = self.solution, self.matrix, self.effort
        rounds, scale = 0, self.scale()
        right = right_sides(self.moments, self.intercept, self.combine)
        previous = np.inf
        for _ in range(_CORRECTIONS):
            lacking = self.lacking(solution, right)
            correction = matrix.solve(lacking)
            solution = solution + correction
            rounds += 1
            error = relative_size(correction, solution, scale, self.moments.width)
            shrinks = error <= 0.25 * previous
            if error <= _WITHIN * self.tol and (error <= _SETTLED or not shrinks):
                effort = replace(effort, rounds=effort.rounds + rounds)
                return replace(
                    self, solution=solution, error=error, effort=effort,
                    gap=relative_gap(self, lacking, correction, right[0]),
                    f_error=self.distance(solution, lacking, correction),
                )  # fmt: skip
            if not (shrinks and np.isfinite(error)):
                break
            previous = error
        if effort.way == "update":
            fresh = LeastSquares.solved(
                self.moments, self.rho, self.intercept, self.tol, self.combine
            )
            work = Effort("rebuild", rounds + fresh.effort.rounds, 1)
            return replace(fresh, effort=work)
        raise NotSettled(f"{error:.1e} off after {rounds} corrections")

    def lacking(
        self, solution: FloatArray, right_hi_lo: tuple[FloatArray, FloatArray]
    ) -> FloatArray:
        """The residual of the normal equations, a column for each output."""
        if solution.shape[1] == 0:
            return np.zeros_like(solution)
        right, rest = right_hi_lo
        ridge = self.ridge()
        columns = [
            residual(
                self.moments.hi, self.moments.lo, ridge,
                np.ascontiguousarray(solution[:, k]),
                np.ascontiguousarray(right[:, k]), np.ascontiguousarray(rest[:, k]),
            )
            for k in range(solution.shape[1])
        ]  # fmt: skip
        return np.column_stack(columns)

    def distance(self, solution: FloatArray, lacking: FloatArray, correction: FloatArray) -> float:
        """How far f may be from the optimum's, from a residual and the answer to it."""
        gain = np.einsum("ik,ik->k", lacking, correction)
        return primal_error(self.moments, self.rho, self.intercept, self.combine, solution, gain)

    def ridge(self) -> FloatArray:
        """What is added to the diagonal: rho, and nothing for the bias."""
        ridge = np.full(len(self.solution), self.rho)
        if self.intercept:
            ridge[-1] = 0.0
        return ridge

    def scale(self) -> FloatArray:
        """Units of the coefficients: the root of the diagonal of the matrix."""
        diagonal = self.moments.diagonal()[: len(self.solution)]
        return np.asarray(np.sqrt(np.maximum(diagonal, 0.0) + self.ridge()))

    # -- what was learned ------------------------------------------------------------------------

    @property
    def coefficients(self) -> FloatArray:
        """W, a column for each output."""
        return self.solution[: self.moments.width]

    @property
    def biases(self) -> FloatArray:
        """B of each output."""
        if self.intercept:
            return np.asarray(self.solution[self.moments.width])
        return np.zeros(self.solution.shape[1])

    def decide(self, phi: FloatArray) -> FloatArray:
        """Outputs at some rows of features."""
        return multiply(phi, self.coefficients) + self.biases


def gather(moments: Moments, batches: list[Batch], rho: float) -> None:
    """Add rows to the moments, a block at a time and blocks on several threads."""
    for batch in batches:
        shares: dict[int, Moments] = {}

        def add(part: slice, batch: Batch = batch, shares: dict[int, Moments] = shares) -> None:
            # the first share goes where it belongs, the others after it
            own = Moments(moments.width, moments.n_targets) if part.start else moments
            own.add_blocks(batch.blocks(part.start, part.stop), batch.sign, rho)
            if part.start:
                shares[part.start] = own

        in_slices(add, len(batch), len(batch) * moments.width)
        for start in sorted(shares):  # in the order of the rows, whichever thread was first
            moments.join(shares[start], 1.0)


def right_sides(
    moments: Moments, intercept: bool, combine: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Right-hand sides of the normal equations, as hi and lo; entries of `combine` are -1, 0, 1, 2.

    Those factors are exact, so that only the sum has to mind what it rounds away.
    """
    rows = moments.width + intercept
    constant, constant_rest = moments.feature_sums(rows)
    sums, sums_rest = moments.sums(rows)
    if intercept:
        # the constant's row of M is above the diagonal only from the constant on
        sums = np.vstack([sums[:-1], moments.hi[moments.width, moments.width + 1 :]])
        sums_rest = np.vstack([sums_rest[:-1], moments.lo[moments.width, moments.width + 1 :]])
    a, b = sums @ combine[1:], np.outer(constant, combine[0])
    hi = a + b
    back = hi - a
    lost = (a - (hi - back)) + (b - back)
    return hi, lost + sums_rest @ combine[1:] + np.outer(constant_rest, combine[0])


def relative_gap(
    model: LeastSquares, lacking: FloatArray, correction: FloatArray, right: FloatArray
) -> float:
    """What the correction gains at most, relative to max(1, objective)."""
    if correction.size == 0:
        return 0.0
    moments, first = model.moments, model.moments.width
    block = moments.hi[first:, first:]
    block = np.triu(block) + np.triu(block, 1).T
    squares = np.einsum("ik,ij,jk->k", model.combine, block, model.combine)
    objective = squares - np.einsum("ik,ik->k", model.solution, right)
    gain = np.maximum(0.0, np.einsum("ik,ik->k", lacking, correction))
    return float(np.max(gain / np.maximum(1.0, np.abs(objective))))


def relative_size(
    correction: FloatArray, solution: FloatArray, scale: FloatArray, width: int
) -> float:
    """The largest correction of an output's w, and of its b, relative to what is corrected.

    Coefficients are measured in units of their features (`scale`). A w that is nothing beside b is
    measured against b, since there is then nothing else to measure it against.
    """
    if correction.size == 0:
        return 0.0
    if not np.isfinite(correction).all():
        return float("inf")
    steps, sizes = scale[:, None] * correction, scale[:, None] * solution
    whole = np.linalg.norm(sizes, axis=0)
    step = np.linalg.norm(steps[:width], axis=0)
    size = np.maximum(np.linalg.norm(sizes[:width], axis=0), _NOTHING_BESIDE * whole)
    off = np.divide(step, size, out=np.zeros_like(step), where=size > 0.0)
    step = np.linalg.norm(steps, axis=0)
    off_whole = np.divide(step, whole, out=np.zeros_like(step), where=whole > 0.0)
    return float(max(off.max(), off_whole.max()))
