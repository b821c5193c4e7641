# SPDX-License-Identifier: BSD-3-Clause
"""Thousands of random operations over all families, each judged, many against the oracle.

    PYTHONPATH=tests python -m laws.soak 4000 --estimator svr --solver exchange --solver path
    PYTHONPATH=tests python -m laws.soak 1000 --hostile

Every operation's certificate is recomputed from the data; every `--check`-th model is compared
with an interior point solver, or where one value is large (`--hostile`) with the optimum to
hundreds of digits. Prints one line for each solver and family, and one for the whole;
ends with status 1 if an operation failed or a model was not the optimum.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from laws.compare import differences
from laws.laws import fitted
from laws.streams import apply, random_step, with_third_class, write_down
from oracles.kinds import KINDS, families, hostile, variants
from oracles.operations import Roster
from oracles.problems import C_VARIANTS, FAMILIES, Problem

STEPS_EACH = 25  # operations on one model before the next seed


@dataclass
class Tally:
    """What a soak has seen."""

    operations: int = 0
    checked: int = 0
    unanswered: int = 0  # the oracle refused
    residual: float = 0.0  # of the tolerance
    objective: float = 0.0
    f: float = 0.0
    strained: float = 0.0
    rounds: int = 0
    breakpoints: int = 0
    fallbacks: int = 0
    most_rounds: int = 0
    slowest: float = 0.0
    seconds: float = 0.0
    faults: list[str] = field(default_factory=list)

    def merge(self, other: Tally) -> None:
        for name in ("operations", "checked", "unanswered", "rounds", "breakpoints", "fallbacks"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("residual", "objective", "f", "strained", "most_rounds", "slowest"):
            setattr(self, name, max(getattr(self, name), getattr(other, name)))
        self.seconds += other.seconds
        self.faults += other.faults

    def __str__(self) -> str:
        return (
            f"{self.operations:6d} operations, residual/tol {self.residual:.1e}, "
            f"{self.checked:5d} checked: objective {self.objective:.1e}, f {self.f:.1e} "
            f"({self.strained:.1e} of what is allowed); "
            f"{self.rounds} rounds (most {self.most_rounds}), {self.breakpoints} breakpoints, "
            f"{self.fallbacks} fallbacks, {1e3 * self.seconds / max(1, self.operations):.1f} ms "
            f"each (slowest {1e3 * self.slowest:.0f}), {len(self.faults)} faults"
            + (f", {self.unanswered} without an oracle" if self.unanswered else "")
        )


def soak(
    name: str,
    problem: Problem,
    solver: str,
    seed: int,
    steps: int,
    check: int,
    tune: bool = False,
) -> Tally:
    """A stream of steps on one model, from one seed; with `tune` parameters change, too."""
    rng = np.random.default_rng(seed)
    tally = Tally()
    roster = Roster.of(problem)
    model = fitted(problem, solver)
    for number in range(steps):
        step = random_step(problem, roster, rng, tune=tune)
        where = f"{name} solver={solver} seed={seed} step={number} {type(step).__name__}"
        tally.operations += 1
        started = time.perf_counter()
        try:
            apply(model, step)
        except Exception as error:
            tally.faults.append(f"{where}: {type(error).__name__}: {error}")
            continue
        finally:
            spent = time.perf_counter() - started
            tally.seconds += spent
            tally.slowest = max(tally.slowest, spent)
        write_down(roster, step)
        _look(tally, model, where)
        if number % check == 0 or number == steps - 1:
            _compare(tally, model, roster, problem.draw(rng, 5).X, where)
    return tally


def _look(tally: Tally, model: Any, where: str) -> None:
    certificate, report = model.certificate(), model.last_update_
    tally.residual = max(tally.residual, certificate.residual / certificate.tol)
    tally.rounds += report.rounds
    tally.most_rounds = max(tally.most_rounds, report.rounds)
    tally.breakpoints += report.breakpoints
    tally.fallbacks += report.fallbacks
    if not certificate.ok:
        tally.faults.append(f"{where}: {certificate}")


def _compare(tally: Tally, model: Any, roster: Roster, X_other: Any, where: str) -> None:
    try:
        found = differences(model, roster, X_other)
    except ArithmeticError:
        tally.unanswered += 1
        return
    tally.checked += 1
    for difference in found:
        tally.objective = max(tally.objective, difference.objective)
        tally.f = max(tally.f, difference.f)
        tally.strained = max(tally.strained, difference.strained)
        if not difference.ok:
            tally.faults.append(f"{where}: {difference}")


def soak_families(
    operations: int,
    solver: str,
    check: int,
    first_seed: int = 0,
    kind: str = "svc",
    tune: bool = False,
    only_hostile: bool = False,
) -> Iterator[tuple[str, Tally]]:
    """Every family under its own parameters and others, two classes and three, in turn."""
    if only_hostile:
        plan = [(name, make, False) for name, make in hostile(kind).items()]
    elif kind == "svc":
        every = {**FAMILIES, **C_VARIANTS}
        plan = [(name, make, False) for name, make in every.items()]
        plan += [(f"{name} 3 classes", make, True) for name, make in FAMILIES.items()]
    else:
        every = {**families(kind), **variants(kind)}
        plan = [(name, make, False) for name, make in every.items()]
    done, seed = 0, first_seed
    while done < operations:
        for name, make, three in plan:
            problem = make(np.random.default_rng(seed))
            problem = with_third_class(problem) if three else problem
            steps = min(STEPS_EACH, operations - done)
            if steps <= 0:
                return
            yield name, soak(name, problem, solver, seed, steps, check, tune)
            done += steps
        seed += 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("operations", type=int, nargs="?", default=2000)
    parser.add_argument("--estimator", default="svc", choices=[k.replace("_", "-") for k in KINDS])
    parser.add_argument("--solver", action="append", choices=["auto", "exchange", "path"])
    parser.add_argument("--tune", action="store_true", help="change parameters, too")
    parser.add_argument("--hostile", action="store_true", help="families with one large value")
    parser.add_argument("--check", type=int, default=5, help="compare every so many operations")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--families", action="store_true", help="a line for each family")
    arguments = parser.parse_args()
    faults = 0
    for solver in arguments.solver or ["auto", "path"]:
        whole = Tally()
        by_family: dict[str, Tally] = {}
        kind = arguments.estimator.replace("-", "_")
        for name, tally in soak_families(
            arguments.operations, solver, arguments.check, arguments.seed, kind, arguments.tune,
            arguments.hostile,
        ):  # fmt: skip
            whole.merge(tally)
            by_family.setdefault(name.partition("-")[0], Tally()).merge(tally)
        if arguments.families:
            for name, tally in by_family.items():
                print(f"{solver:9s} {name:40s} {tally}")
        print(f"{solver:9s} {whole}")
        for fault in whole.faults:
            print("  FAULT", fault)
        faults += len(whole.faults)
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main())
