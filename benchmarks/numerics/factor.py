# SPDX-License-Identifier: BSD-3-Clause
"""Evidence for the margin factor: Cholesky against CP01's explicit inverse.

Both start from a fresh factorisation of the same margin and follow the same hundreds of random
joins and leaves. Then the bordered system is solved for a known answer, and refined once and twice
with residuals from K, as the engine does.

    python -m benchmarks.numerics.factor [--quick] [--no-times]

Tables go to the terminal and, as Markdown, to out/factor.md.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from adiabat._core.factor import Factor
from adiabat.engine.machine import DEPENDENT
from benchmarks import machine
from benchmarks.numerics.bordered_inverse import BorderedInverse
from benchmarks.numerics.matrices import FAMILIES
from benchmarks.tables import Table, console, write_markdown

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Solve = Callable[[FloatArray, float], tuple[FloatArray, float]]

STEPS = 500
SIZES = (100, 500, 1000)
CONDITIONS = (1e2, 1e4, 1e6, 1e8, 1e10, 1e12)
REFINEMENTS = 2
BLOCK = 50


# -- the two, following the same changes ---------------------------------------------------------


def joins(factor: Factor, K: FloatArray, rows: IntArray) -> npt.NDArray[np.bool_]:
    """Let rows join the factor, as the engine does; which did?"""
    members = factor.rows
    cross = np.ascontiguousarray(K[np.ix_(rows, members)])
    factor.prepare(cross, np.ascontiguousarray(K[np.ix_(rows, rows)]))
    return factor.admit(np.arange(len(rows)), rows)


def wander(
    factor: Factor, inverse: BorderedInverse | None, K: FloatArray, steps: int, seed: int
) -> int:
    """Random joins and leaves about the present size; returns how many joins were refused."""
    rng = np.random.default_rng(seed)
    size, refused = factor.size, 0
    for _ in range(steps):
        members = factor.rows
        if rng.random() < 0.5 + 0.02 * (members.size - size):
            position = int(rng.integers(members.size))
            row = int(members[position])
            factor.drop(position)
            if inverse is not None:
                inverse.drop(row)
            continue
        row = int(rng.choice(np.setdiff1d(np.arange(len(K)), members)))
        if not joins(factor, K, np.array([row]))[0]:
            refused += 1
        elif inverse is not None:
            inverse.grow(row, K[row, inverse.rows], K[row, row])
    return refused


def headed(method: str, names: Sequence[str]) -> tuple[str, ...]:
    """Headings, the first with the method's name before it."""
    return f"{method}: {names[0]}", *names[1:]


# -- accuracy ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Accuracy:
    """Backward and forward errors before refinement and after each step of it."""

    residual: tuple[float, ...]
    error: tuple[float, ...]


def accuracy(solve: Solve, K: FloatArray, seed: int) -> Accuracy:
    """Solve for a known answer; residual relative to ||K|| ||du||, error relative to ||du||."""
    rng = np.random.default_rng(seed)
    wide = K.astype(np.longdouble)
    du_true, db_true = rng.standard_normal(len(K)), float(rng.standard_normal())
    q = np.asarray(wide @ du_true + db_true, dtype=np.float64)
    total = float(du_true.sum())
    norm = float(np.linalg.norm(K, 2))
    du, db = np.zeros(len(K)), 0.0
    left, missing = q, total
    residuals, errors = [], []
    for _ in range(1 + REFINEMENTS):
        step, step_b = solve(left, missing)
        du, db = du + step, db + step_b
        exact = wide @ du + db - q  # what is measured; the engine has `left`, in double
        residuals.append(float(np.linalg.norm(exact)) / (norm * np.linalg.norm(du)))
        errors.append(float(np.linalg.norm(du - du_true) / np.linalg.norm(du_true)))
        left, missing = q - K @ du - db, total - float(du.sum())
    return Accuracy(tuple(residuals), tuple(errors))


def in_order(solver: Any, K: FloatArray) -> FloatArray:
    """K over the solver's rows, in the solver's order."""
    rows = solver.rows.copy()
    return np.ascontiguousarray(K[np.ix_(rows, rows)])


def accuracy_table(sizes: Sequence[int], conditions: Sequence[float], steps: int) -> Table:
    """Both, for every family, size and condition."""
    names = ("residual", "refined", "twice", "error, refined")
    table = Table(
        f"Accuracy after {steps} random joins and leaves",
        ("family, size", "condition", *headed("Cholesky", names), *headed("inverse", names)),
        note="residual = ||K du + db - q|| / (||K|| ||du||), error = ||du - du*|| / ||du*||",
    )
    for family, make in FAMILIES.items():
        for size in sizes:
            for condition in conditions:
                K = make(size + size // 2 + 50, condition, seed=size)
                start = np.arange(size)
                factor, inverse = Factor(float(K.diagonal().mean()), 0.0), BorderedInverse(2 * size)
                factor.rebuild(np.ascontiguousarray(K[:size, :size]), start)
                inverse.rebuild(K[:size, :size], start)
                wander(factor, inverse, K, steps, seed=1)
                cells = [f"{family}, {size}", f"{np.linalg.cond(in_order(factor, K)):.0e}"]
                for solver in (factor, inverse):
                    found = accuracy(solver.solve, in_order(solver, K), seed=2)
                    cells += [f"{value:.0e}" for value in (*found.residual, found.error[1])]
                table.add(*cells)
    return table


def drift_table(size: int, marks: Sequence[int]) -> Table:
    """Does Cholesky wear out? Its residuals after ever more changes without a rebuild."""
    table = Table(
        f"Cholesky after many joins and leaves without a rebuild, {size} rows",
        ("family", "condition", "changes", "wear", "residual", "refined"),
        note="wear = ||LL' - K - c11'|| / ||K||",
    )
    for family, make in FAMILIES.items():
        for condition in (1e6, 1e10):
            K = make(size + size // 2 + 50, condition, seed=size)
            shift = float(K.diagonal().mean())
            factor = Factor(shift, 0.0)
            factor.rebuild(np.ascontiguousarray(K[:size, :size]), np.arange(size))
            done = 0
            for mark in marks:
                wander(factor, None, K, mark - done, seed=mark)
                done = mark
                own, lower = in_order(factor, K), factor.lower()
                wear = np.linalg.norm(lower @ lower.T - own - shift, 2) / np.linalg.norm(own, 2)
                found = accuracy(factor.solve, own, seed=2).residual
                table.add(
                    family,
                    f"{condition:.0e}",
                    f"{mark:,}",
                    *(f"{value:.0e}" for value in (wear, found[0], found[1])),
                )
    return table


def threshold_table(size: int, steps: int) -> Table:
    """What the dependence threshold keeps out, and what accuracy is left at worst."""
    table = Table(
        f"Rows refused as dependent, {size} offered, and the factor that remains",
        (
            "family",
            "condition of all",
            "threshold",
            "in the factor",
            "its condition",
            "residual",
            "refined",
            "error, refined",
        ),
    )
    for family, make in FAMILIES.items():
        for condition in (1e10, 1e14):
            K = make(size + size // 2 + 50, condition, seed=size)
            for threshold in (1e-7, DEPENDENT, 1e-11, 1e-13, 0.0):
                factor = Factor(float(K.diagonal().mean()), threshold)
                factor.rebuild(np.ascontiguousarray(K[:size, :size]), np.arange(size))
                began = factor.size
                wander(factor, None, K, steps, seed=1)
                own = in_order(factor, K)
                found = accuracy(factor.solve, own, seed=2)
                table.add(
                    family,
                    f"{condition:.0e}",
                    f"{threshold:.0e}",
                    f"{began} of {size}",
                    f"{np.linalg.cond(own):.0e}",
                    *(f"{value:.0e}" for value in (*found.residual[:2], found.error[1])),
                )
    return table


# -- time ----------------------------------------------------------------------------------------


def median_seconds(action: Callable[[], object], times: int) -> float:
    """Median time of an action."""
    spent = []
    for _ in range(times):
        started = time.perf_counter()
        action()
        spent.append(time.perf_counter() - started)
    return float(np.median(spent))


def time_table(sizes: Sequence[int], times: int) -> Table:
    """Cost of each operation in units of Cholesky's solve at that size."""
    names = ("solve", "join", "leave", f"{BLOCK} join", "rebuild")
    table = Table(
        "Time of each operation, in units of Cholesky's solve",
        ("size", "solve µs", *headed("Cholesky", names[1:]), *headed("inverse", names)),
    )
    for size in sizes:
        K = FAMILIES["spectrum"](size + BLOCK, 1e4, seed=size)
        own = np.ascontiguousarray(K[:size, :size])
        start, block = np.arange(size), np.arange(size, size + BLOCK)
        spent = [*_time_factor(K, own, start, block, times)]
        spent += _time_inverse(K, own, start, block, times)
        unit = spent[0]
        table.add(size, f"{1e6 * unit:.0f}", *(f"{value / unit:.1f}" for value in spent[1:]))
    return table


def _time_factor(
    K: FloatArray, own: FloatArray, start: IntArray, block: IntArray, times: int
) -> list[float]:
    factor = Factor(float(K.diagonal().mean()), 0.0)
    rebuild = median_seconds(lambda: factor.rebuild(own, start), max(3, times // 5))
    q = K[: len(start), -1].copy()
    solve = median_seconds(lambda: factor.solve(q, 1.0), times)
    rng = np.random.default_rng(0)
    grown, dropped, blocks = [], [], []
    for _ in range(times):  # a row leaves from anywhere and comes back at the end
        position = int(rng.integers(factor.size))
        row = factor.rows[[position]]
        dropped.append(median_seconds(lambda at=position: factor.drop(at), 1))
        grown.append(median_seconds(lambda r=row: joins(factor, K, r), 1))
    for _ in range(max(3, times // 5)):
        factor.rebuild(own, start)
        blocks.append(median_seconds(lambda: joins(factor, K, block), 1))
    return [solve, *(float(np.median(part)) for part in (grown, dropped, blocks)), rebuild]


def _time_inverse(
    K: FloatArray, own: FloatArray, start: IntArray, block: IntArray, times: int
) -> list[float]:
    inverse = BorderedInverse(len(K))
    rebuild = median_seconds(lambda: inverse.rebuild(own, start), max(3, times // 5))
    q = K[: len(start), -1].copy()
    solve = median_seconds(lambda: inverse.solve(q, 1.0), times)
    rng = np.random.default_rng(0)
    grown, dropped, blocks = [], [], []
    for _ in range(times):
        row = int(rng.choice(inverse.rows))
        dropped.append(median_seconds(lambda r=row: inverse.drop(r), 1))
        cross = K[row, inverse.rows]
        grown.append(median_seconds(lambda r=row, c=cross: inverse.grow(r, c, K[r, r]), 1))
    for _ in range(max(3, times // 5)):
        inverse.rebuild(own, start)
        cross = K[np.ix_(block, start)]
        corner = K[np.ix_(block, block)]
        blocks.append(median_seconds(lambda c=cross, o=corner: inverse.grow_block(block, c, o), 1))
    return [solve, *(float(np.median(part)) for part in (grown, dropped, blocks)), rebuild]


# -- command line --------------------------------------------------------------------------------


def main(given: Sequence[str] | None = None) -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.numerics.factor", description=(__doc__ or "").split("\n\n")[0]
    )
    parser.add_argument("--quick", action="store_true", help="size 100 only, fewer steps")
    parser.add_argument("--no-times", action="store_true", help="accuracy only")
    options = parser.parse_args(given)
    sizes, steps = (SIZES[:1], 100) if options.quick else (SIZES, STEPS)
    screen = console()
    tables = [
        accuracy_table(sizes, CONDITIONS, steps),
        drift_table(sizes[0], (steps, 10 * steps, 100 * steps)),
        threshold_table(sizes[-1] // 2, steps),
    ]
    if not options.no_times:
        tables.append(time_table(sizes, 10 if options.quick else 50))
    for table in tables:
        table.show(screen)
    path = write_markdown("factor", "The margin factor", machine.description(), tables)
    screen.print(f"written to {path.parent.name}/", style="dim")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
