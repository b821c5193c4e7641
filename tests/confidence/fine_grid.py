# SPDX-License-Identifier: BSD-3-Clause
"""Full regions of an SVR against a fine grid of targets: at each, a model that has the newcomer.

    PYTHONPATH=tests python -m confidence.fine_grid [--targets 2000] [family ...]

A target is in the region if and only if its p-value, by definition, is above 1 - level. Targets
within 1e-6 of an end of the region are passed over. The suite has some targets of every family.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from adiabat import SVR
from adiabat.typing import FloatArray

from .brute_force import inside, regression_with, residuals_at
from oracles.kinds import as_kind
from oracles.problems import FAMILIES

LEVELS = [0.3, 0.5, 0.85]


def p_value(residuals: FloatArray) -> float:
    """That of the last: large is strange, and ties count in full."""
    return float(1 + np.sum(residuals[:-1] >= residuals[-1] - 1e-8)) / len(residuals)


def near_an_end(parts: FloatArray, z: float) -> bool:
    """Whether rounding could move a target into a region or out of it."""
    return bool(np.min(np.abs(parts - z)) < 1e-6)


def wrong_targets(
    params: dict[str, Any], known: Any, x: FloatArray, levels: Sequence[float], targets: int
) -> tuple[int, list[tuple[float, float]]]:
    """How many targets and levels were compared, and those at which a region is not right."""
    X, y, _ = known
    _, (regions,) = SVR(**params).fit(*known).predict_region(x[None, :], levels)
    ends = np.concatenate(regions).ravel()
    grid = np.linspace(ends.min() - 1.0, ends.max() + 1.0, targets)
    other = regression_with(params, *known, x)
    compared, wrong = 0, []
    for z in np.concatenate([grid, ends - 1e-5, ends + 1e-5]).tolist():
        p = p_value(residuals_at(other, X, y, x, z))
        for level, parts in zip(levels, regions, strict=True):
            if near_an_end(parts, z):
                continue
            compared += 1
            if inside(parts, z) != (p > 1.0 - level + 1e-12):
                wrong.append((level, z))
    return compared, wrong


def of_family(name: str, targets: int, levels: Sequence[float] = LEVELS) -> Any:
    """The same on a family of problems, most of them degenerate."""
    rng = np.random.default_rng(11)
    problem = as_kind(FAMILIES[name](rng), "svr", rng)
    known = problem.X, problem.y, problem.sample_weight
    return wrong_targets(problem.params, known, problem.draw(rng, 1).X[0], levels, targets)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("families", nargs="*")
    parser.add_argument("--targets", type=int, default=2000)
    given = parser.parse_args()
    total = 0
    for name in given.families or FAMILIES:
        started = time.process_time()
        compared, wrong = of_family(name, given.targets)
        total += len(wrong)
        spent = time.process_time() - started
        print(f"{name}: {compared} compared, {len(wrong)} wrong {wrong[:3]} ({spent:.0f} s)",
              flush=True)  # fmt: skip
    assert total == 0


if __name__ == "__main__":
    main()
