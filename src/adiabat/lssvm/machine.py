# SPDX-License-Identifier: BSD-3-Clause
"""The least-squares machine: exact moments, the matrix that answers for them, and w.

    w = argmin  rho ||w||^2 + sum_i s_i (w'phi_i + b - y_i)^2,    (G + rho I) w = sum s phi y   (3)

with as many right-hand sides as there are outputs, for one matrix. A change is made to copies and
comes back as a new machine, so that a change that fails leaves nothing behind. Every change ends
with the residual, computed from the moments to twice the precision and answered by P: that is how
far w is off. P only has to be good enough for the answer to shrink, hence its own drift is harmless
until it no longer does; then it is built anew. A P that has lost a direction gives small answers to
any residual: so what its answer leaves over is computed, too, and bounds f without P.

Where float64 cannot factor the matrix, its largest pivots are eliminated in expansions, and w is
kept in as many parts (`elimination`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from scipy.linalg.blas import dsymv

from adiabat._core import expansions
from adiabat._core.kernel_values import multiply
from adiabat._core.thread_pool import in_slices
from adiabat._core.twofold import residual
from adiabat.lssvm.accuracy import UNIT, lost_residual, rounding_of_f
from adiabat.lssvm.auxiliary import AuxiliaryMatrix, IndefiniteMatrix
from adiabat.lssvm.elimination import PivotedMatrix, factored
from adiabat.lssvm.exact_products import BLOCK_ROWS
from adiabat.lssvm.moments import Moments, NotConverged
from adiabat.lssvm.normal_equations import (
    CONVERGED,
    CORRECTIONS,
    TINY,
    relative_size,
    right_parts,
    right_sides,
    target_squares,
)
from adiabat.typing import FloatArray

# Updating P by L rows takes about 3 J^2 L operations, a factor J^3 / 3, and at a higher speed;
# benchmarks/papers/lkw19.py draws the time of both against L.
_UPDATE_SHARE: Final = 0.125
# Part of `tol` that a correction may be, so that one more, as the judge makes it, is within `tol`.
_WITHIN: Final = 0.25
# What a residual may leave over after its answer, as an error of f and in units of the targets,
# whatever `tol` is; and where corrections in expansions end.
_LEFT_OVER: Final = 1e-13
# Part of that which it may be here, so that the judge, whose residual is another, agrees.
_SURELY: Final = 1e-3
_EXACT: Final = 2.0**-60
# Part of the targets from which f is not known well: coefficients and sums are taken in expansions.
_VAGUE: Final = 1e-6
_NONE: Final = np.zeros(0)


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


@dataclass(frozen=True)
class Sums:
    """Moments after a change of rows; features, targets and signed weights, if P is updated."""

    moments: Moments
    rows: tuple[FloatArray, FloatArray, FloatArray] | None


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
    `f_error` how far f may be off. If the matrix is eliminated in expansions, `expansion` has the
    solution in all its parts, for each output an array of shape (rows, parts).
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
    expansion: FloatArray | None = None

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
        right, _ = right_sides(moments, intercept, combine)
        matrix = factored(moments, rho, intercept)
        start = matrix.solve(right)
        blank = cls(
            moments, rho, intercept, tol, combine, matrix, start, 0.0, 0.0, 0.0, Effort("rebuild")
        )
        return blank._refined()

    def summed(self, batches: list[Batch]) -> Sums:
        """The moments once rows have come and gone, before anything is solved."""
        moments = self.moments.copy()
        if not self.worth_updating(sum(len(batch) for batch in batches)):
            gather(moments, batches, self.rho)
            return Sums(moments, None)
        phi = np.concatenate([batch.features(batch.X) for batch in batches])
        t = np.concatenate([batch.targets for batch in batches])
        s = np.concatenate([batch.signed_weights() for batch in batches])
        start = 0
        for batch in batches:
            rows = slice(start, start + len(batch))
            moments.add(phi[rows], t[rows], batch.weights, batch.sign, self.rho)
            start += len(batch)
        return Sums(moments, (phi, t, s))

    def changed(self, sums: Sums) -> LeastSquares:
        """The machine once rows have come and gone, in one step, given their sums.

        Raises
        ------
        IndefiniteMatrix
            If no rows could have these moments: some that go were never there.
        NotConverged
            If w cannot be computed as exactly as `tol` asks.
        """
        moments = sums.moments
        if sums.rows is None or moments.n_heavy == 0:
            return self.on(moments)
        phi, t, s = sums.rows
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
            effort=Effort("update"), expansion=None,
        )  # fmt: skip
        return moved._refined()

    def on(self, moments: Moments, combine: FloatArray | None = None) -> LeastSquares:
        """The machine of other moments, with the same settings."""
        combine = self.combine if combine is None else combine
        return LeastSquares.solved(moments, self.rho, self.intercept, self.tol, combine)

    def retargeted(self, columns: Sequence[int | None], combine: FloatArray) -> LeastSquares:
        """With the targets in another order, some gone or new, and other outputs."""
        moments = self.moments.arranged(columns)
        if isinstance(self.matrix, PivotedMatrix):
            return self.on(moments, combine)
        right, _ = right_sides(moments, self.intercept, combine)
        start = self.matrix.solve(right)
        return replace(self, moments=moments, combine=combine, solution=start)._refined()

    def with_rho(self, rho: float, matrix: AuxiliaryMatrix) -> LeastSquares:
        """The machine of the same moments under another rho, whose matrix is at hand."""
        start = matrix.solve(right_sides(self.moments, self.intercept, self.combine)[0])
        other = replace(
            self, rho=rho, matrix=matrix, solution=start, effort=Effort("update"), expansion=None
        )
        return other._refined()

    def worth_updating(self, n_rows: int) -> bool:
        """Whether updating P by so many rows is cheaper than building it anew."""
        if not np.isfinite(self.matrix.total):
            return False
        return n_rows <= max(1.0, _UPDATE_SHARE * self.moments.width)

    # -- exactness -------------------------------------------------------------------------------

    def _refined(self) -> LeastSquares:
        """With the solution corrected until it is exact; P built anew if it cannot answer."""
        if isinstance(self.matrix, PivotedMatrix):
            return self._refined_in_parts(self.matrix)
        solution, matrix, effort = self.solution, self.matrix, self.effort
        rounds, scale = 0, self.scale()
        right = right_sides(self.moments, self.intercept, self.combine)
        previous = np.inf
        for _ in range(CORRECTIONS):
            lacking = self.lacking(solution, right)
            correction = matrix.solve(lacking)
            solution = solution + correction
            rounds += 1
            error = relative_size(correction, solution, scale, self.moments.width)
            shrinks = error <= 0.25 * previous
            if error <= _WITHIN * self.tol and (error <= CONVERGED or not shrinks):
                moved, left = self.left_over(lacking, correction)
                f_error = self.distance(solution, moved + left)
                if (left <= _SURELY * self.permitted()).all() and f_error <= self.vague():
                    effort = replace(effort, rounds=effort.rounds + rounds)
                    gap = relative_gap(self, lacking, correction, right[0])
                    return replace(
                        self, solution=solution, error=error, gap=gap, f_error=f_error,
                        effort=effort,
                    )  # fmt: skip
                break
            if not (shrinks and np.isfinite(error)):
                break
            previous = error
        if effort.way == "update":
            fresh = LeastSquares.solved(
                self.moments, self.rho, self.intercept, self.tol, self.combine
            )
            work = Effort("rebuild", rounds + fresh.effort.rounds, 1)
            return replace(fresh, effort=work)
        return self._refined_in_parts(PivotedMatrix(self.moments, self.rho, self.intercept))

    def _refined_in_parts(self, matrix: PivotedMatrix) -> LeastSquares:
        """With the solution in expansions, corrected until f has all its digits."""
        moments, ridge = self.moments, self.ridge()
        given = moments.hi, moments.lo, moments.rest
        right, _ = right_sides(moments, self.intercept, self.combine)
        unit, rounds = self.target_size(), 0
        reach = max(1.0, float(np.abs(matrix.mean).max(initial=0.0))) * (len(ridge) + 1.0)
        solved = replace(self, matrix=matrix)
        found = np.zeros((len(unit), len(ridge), matrix.parts))
        lacking, correction = np.zeros_like(right), np.zeros_like(right)
        for k, x in enumerate(found):
            aim = right_parts(moments, self.intercept, self.combine[:, k], matrix.parts)
            left, previous = aim, np.inf
            for _ in range(CORRECTIONS + 2 * matrix.parts):
                step = matrix.solve_parts(left)
                expansions.add_scaled(x, step, np.ones(1), 1.0)
                cutoff = _EXACT * math.sqrt(self.rho) * unit[k] / reach
                left = expansions.residual(*given, ridge, x, aim, cutoff)
                rounds += 1
                size = float(solved.reached(np.abs(left[:, :1]))[0])
                if size <= _EXACT * unit[k] or not size <= 0.25 * previous:
                    break
                previous = size
            lacking[:, k] = left[:, 0]
            correction[:, k] = matrix.solve_parts(left)[:, 0]
        solution = np.ascontiguousarray(found[:, :, 0].T)
        solved = replace(solved, solution=solution, expansion=found)
        error = relative_size(correction, solution, self.scale(), moments.width)
        off = solved.reached(np.abs(lacking))
        if not (error <= _WITHIN * self.tol and (off <= _SURELY * self.permitted()).all()):
            raise NotConverged(f"{error:.1e} off after {rounds} corrections")
        return replace(
            solved, error=error, f_error=solved.distance(solution, off),
            gap=relative_gap(solved, lacking, correction, right),
            effort=replace(self.effort, rounds=self.effort.rounds + rounds),
        )  # fmt: skip

    def lacking(
        self, solution: FloatArray, right_hi_lo: tuple[FloatArray, FloatArray]
    ) -> FloatArray:
        """The residual of the normal equations, a column for each output."""
        if solution.shape[1] == 0:
            return np.zeros_like(solution)
        right, rest = right_hi_lo
        ridge, moments = self.ridge(), self.moments
        columns = []
        for k in range(solution.shape[1]):
            x = np.ascontiguousarray(solution[:, k])
            if moments.rest is None:
                b, b_rest = np.ascontiguousarray(right[:, k]), np.ascontiguousarray(rest[:, k])
                columns.append(residual(moments.hi, moments.lo, ridge, x, b, b_rest))
            else:
                aim = right_parts(moments, self.intercept, self.combine[:, k], moments.parts)
                given = moments.hi, moments.lo, moments.rest
                columns.append(expansions.residual(*given, ridge, x[:, None], aim, 0.0)[:, 0])
        return np.column_stack(columns)

    def left_over(
        self, lacking: FloatArray, correction: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """How far f moves by a correction, and how far it may be off after it, for each output.

        With g the residual, c the correction and r = g - M c, the root of g'M^-1 g is at most that
        of c'M c = c'(g - r) and that of r'M^-1 r, for which nothing is needed but M >= rho.
        """
        m = len(correction)
        padded = np.zeros(len(self.moments.hi))
        scale, ridge = self.scale(), self.ridge()
        moved, rest = np.zeros(correction.shape[1]), np.zeros_like(correction)
        for k in range(correction.shape[1]):
            padded[:m] = c = correction[:, k]
            # M @ c, of which M's upper triangle is the lower one of its transpose
            product = dsymv(1.0, self.moments.hi.T, padded, lower=1)[:m] + ridge * c
            left = lacking[:, k] - product
            rounding = (m + 4.0) * UNIT * scale * (scale @ np.abs(c))
            moved[k] = math.sqrt(max(0.0, float(c @ product) + float(np.abs(c) @ rounding)))
            rest[:, k] = np.abs(left) + rounding + 2.0 * UNIT * np.abs(lacking[:, k])
        return moved, self.reached(rest)

    def reached(self, rest: FloatArray) -> FloatArray:
        """The root of r'M^-1 r at most, of residuals that are no larger than these."""
        J = self.moments.width
        size = np.linalg.norm(rest[:J], axis=0)
        if not self.intercept or self.moments.n_heavy == 0:
            return np.asarray(size / math.sqrt(self.rho))
        # the inverse of M has entries below 1 / rho but for that of the bias
        bias = math.sqrt(self.matrix.bias_variance(self.rho))
        return np.asarray(size / math.sqrt(self.rho) + bias * rest[J])

    def permitted(self) -> FloatArray:
        """What `reached` may be of each output for the solution to be one."""
        return np.asarray(max(self.tol, _LEFT_OVER) * self.target_size())

    def vague(self) -> float:
        """An f_error for which a solution in float64 is not good enough."""
        return _VAGUE * float(self.target_size().max(initial=0.0))

    def target_size(self) -> FloatArray:
        """The root of the mean square of what each output aims at."""
        squares = np.maximum(target_squares(self.moments, self.combine), 0.0)
        return np.asarray(np.sqrt(squares / max(self.moments.total_weight, TINY)))

    def distance(self, solution: FloatArray, off: FloatArray) -> float:
        """How far f may be from the optimum's, from a bound on what the residuals account for."""
        if solution.size == 0 or self.moments.n_heavy == 0:
            return 0.0
        lost = self.reached(lost_residual(self.moments, self.combine, solution))
        rounded = rounding_of_f(
            self.moments, self.intercept, self.combine, solution, self.expansion is not None
        )
        return float((off + lost + rounded).max())

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
        if self.expansion is None:
            return multiply(phi, self.coefficients) + self.biases
        J = self.moments.width
        phi = np.ascontiguousarray(phi)
        return np.column_stack(
            [expansions.dots(phi, x[:J], x[J] if self.intercept else _NONE) for x in self.expansion]
        )


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


def relative_gap(
    model: LeastSquares, lacking: FloatArray, correction: FloatArray, right: FloatArray
) -> float:
    """What the correction gains at most, relative to max(1, objective)."""
    if correction.size == 0:
        return 0.0
    squares = target_squares(model.moments, model.combine)
    objective = squares - np.einsum("ik,ik->k", model.solution, right)
    gain = np.maximum(0.0, np.einsum("ik,ik->k", lacking, correction))
    return float(np.max(gain / np.maximum(1.0, np.abs(objective))))
