# SPDX-License-Identifier: BSD-3-Clause
"""The hostile grid: one value is large, and every model that is handed out is judged all the same.

    python -m benchmarks.numerics.hostile --cases 2000 --jobs 2
    python -m benchmarks.numerics.hostile --part 1/4 --cases 8000 --only estimator=SVC,kernel=poly3

The grid has {linear, poly 2, 3, 5, rbf, laplacian, chi2} x one cell of 1e2 ... 1e12 x C of 1e-3 ...
1e6 x one weight of 1e-12 ... 1e12 x 50 seeds x {fit, fit and forget, stream}, for all nine
estimators: 26 million cases. A run takes a sample of it, which is the same each time: blocks of 450
cases in which every factor has each of its levels equally often (to within one), in an order drawn
independently of the other factors. A run of N cases is the first N of that sequence, so that a
longer run contains a shorter one; `--part i/k` takes every k-th case.

Each model handed out is compared with the optimum to hundreds of digits, by tests/oracles/exact_qp.
A case ends with the worst of what happened in it:

  ok        every model handed out is certified, and f is within f_error of the optimum's
  refused   an error that Adiabat raises on purpose; the model is as it was
  wrong     f is off by more than f_error; or certificate() is not ok on a model handed out; or it
            and the update's own certificate disagree; or an error changed the model
  crashed   any other error
  timeout   the time limit of a case was reached
  unjudged  the oracle has no answer

Each row is held to its own bound, of which `f_error` is the largest.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from benchmarks.tables import ROOT, Table, console, write_csv, write_markdown

sys.path.insert(0, str(ROOT / "tests"))

from adiabat import AdiabatError

from laws.subjects import MACHINES, NINE, Subject, judge, kind_of, subject
from oracles.operations import Roster
from oracles.problems import HOSTILE_KERNELS as KERNELS

SEED = 14_000
BLOCK = 450
LEVELS: dict[str, tuple[Any, ...]] = {
    "estimator": NINE,
    "kernel": tuple(KERNELS),
    "cell": tuple(float(f"1e{e}") for e in range(2, 13)),
    "C": tuple(float(f"1e{e}") for e in range(-3, 7)),
    "weight": tuple(float(f"1e{e}") for e in range(-12, 13)),
    "seed": tuple(range(50)),
    "scenario": ("fit", "forget", "stream"),
}
OUTCOMES = ("ok", "refused", "wrong", "crashed", "timeout", "unjudged")
VAGUE = 1e-3  # f_error of a model that says little
MODEST_CELL, MODEST_C = 1e6, 1e4  # below these nothing may be refused


@dataclass(frozen=True)
class Case:
    """A point of the grid."""

    estimator: str
    kernel: str
    cell: float
    C: float
    weight: float
    seed: int
    scenario: str

    @property
    def modest(self) -> bool:
        return self.cell < MODEST_CELL and self.C < MODEST_C


@dataclass
class Outcome:
    """What became of a case: the worst event, and in which step."""

    outcome: str = "ok"
    kind: str = ""
    step: str = ""
    off: float = 0.0
    allowed: float = 0.0
    f_error: float | None = None  # the largest that a certificate named
    seconds: float = 0.0
    models: int = 0
    detail: str = ""

    def worsen(self, outcome: str, **what: Any) -> None:
        if OUTCOMES.index(outcome) > OUTCOMES.index(self.outcome) or self.outcome == "ok":
            self.outcome = outcome
            for name, value in what.items():
                setattr(self, name, value)


def design(levels: dict[str, tuple[Any, ...]], seed: int = SEED) -> Iterator[Case]:
    """The sequence of cases: blocks in which all levels of a factor are equally frequent."""
    block = 0
    while True:
        columns = {}
        for number, (name, values) in enumerate(levels.items()):
            rng = np.random.default_rng([seed, block, number])
            first = rng.permutation(len(values))  # who is there once more differs by block
            places = np.resize(first, BLOCK)
            columns[name] = [values[place] for place in rng.permutation(places)]
        for row in zip(*columns.values(), strict=True):
            yield Case(**dict(zip(columns, row, strict=True)))
        block += 1


# ---------------------------------------------------------------------------------------------
# One case


class TimeIsUp(Exception):
    """The time limit of a case."""


def data(case: Case) -> tuple[Roster, int, Any]:
    """Rows of small decimals with one large cell and one other weight; the row of the cell."""
    rng = np.random.default_rng([case.seed, 1])
    n, width = int(rng.integers(10, 25)), int(rng.integers(2, 8))
    X = rng.integers(0, 11, (n, width)) / 10.0
    y: Any = np.where(X[:, 0] - 0.5 + 0.3 * rng.standard_normal(n) > 0, 1, -1)
    y[:6] = [-1, 1, -1, 1, -1, 1]
    row, heavy = (int(place) for place in rng.choice(n, 2, replace=False))
    X[row, rng.integers(width)] = case.cell
    weight = np.ones(n)
    weight[heavy] = case.weight
    return Roster(X, y, weight, np.arange(n)), row, rng


def make(case: Case, rng: Any, rows: Roster) -> Subject:
    """The estimator of a case; targets of a regression are written into the rows."""
    inner = str(rng.choice(list(MACHINES)))
    kind = kind_of(case.estimator, inner)
    params: dict[str, Any] = {**KERNELS[case.kernel], "C": case.C}
    nu = float(rng.choice([0.05, 0.2, 0.5, 0.9]))
    if kind == "one_class":
        del params["C"]
        params["nu"] = nu
    elif kind == "svdd":  # a smaller C cannot hold a sum of 1
        params["C"] = max(case.C, 2.0 / (len(rows.ids) - 4 + min(1.0, case.weight)))
    elif kind == "svr":
        clean = np.minimum(rows.X[:, 0], 1.0)
        rows.y = clean + np.round(0.1 * rng.standard_normal(len(clean)), 3)
    return subject(case.estimator, params, rows.X.shape[1], inner)


def steps(case: Case, model: Subject, rows: Roster, outlier: int, rng: Any) -> Iterator[Any]:
    """The verbs of a scenario, by name, one after the other."""
    if case.scenario in ("fit", "forget"):
        yield "fit", lambda: model.fit(rows)
        if case.scenario == "forget":
            yield "forget", lambda: model.forget([outlier])
        return
    order = rng.permutation(len(rows.ids))
    order = np.concatenate([order[order != outlier], [outlier]])
    place = rng.integers(6, len(order))
    order = np.concatenate([order[:place], [outlier], order[place:-1]])
    classes = [np.flatnonzero(rows.y[order] == label)[0] for label in np.unique(rows.y)[:2]]
    begin = np.unique(np.concatenate([np.arange(5), classes]))
    begin = begin[order[begin] != outlier]
    rest = np.setdiff1d(np.arange(len(order)), begin)
    yield "partial_fit", lambda: model.learn(_part(rows, order[begin]))
    for k in rest[:-1]:
        yield "partial_fit", lambda k=k: model.learn(_part(rows, order[[k]]))
    last = order[rest[-1:]]
    held = rows.ids[order[begin]]
    if last[0] == outlier:
        yield "partial_fit", lambda: model.learn(_part(rows, last))
        yield "revise", lambda: model.revise(held[:1], _other(rows, held[:1]))
        yield "forget", lambda: model.forget([outlier])
    else:
        yield "revise", lambda: model.revise(held[:1], _other(rows, held[:1]))
        yield "update", lambda: model.update(_part(rows, last), [outlier])


def _part(rows: Roster, which: Any) -> Roster:
    return Roster(rows.X[which], rows.y[which], rows.sample_weight[which], rows.ids[which])


def _other(rows: Roster, ids: Any) -> Any:
    """Another target: the other label, or a number moved by a little."""
    y = rows.y[ids]
    return -y if y.dtype.kind == "i" else y + 0.25


def cause(error: BaseException) -> str:
    """What an error says, its numbers taken out."""
    text = re.sub(r"[-+]?\d[\d.,]*(e[-+]?\d+)?", "#", str(error).split("\n")[0])
    return f"{type(error).__name__}: {text[:150]}"


def run(case: Case, limit: float) -> Outcome:
    """Carry out a case and judge every model that it hands out."""
    out = Outcome()
    started = time.perf_counter()

    def stop(*_: Any) -> None:
        raise TimeIsUp

    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, limit)
    step = "start"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rows, outlier, rng = data(case)
            model = make(case, rng, rows)
            for step, verb in steps(case, model, rows, outlier, rng):
                if not _step(out, step, verb, model, outlier):
                    break
    except TimeIsUp:
        out.worsen("timeout", kind="time limit", step=step)
    except ArithmeticError as error:
        out.worsen("unjudged", kind=cause(error), step=step, detail=traceback.format_exc())
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
    out.seconds = time.perf_counter() - started
    return out


def _step(out: Outcome, step: str, verb: Any, model: Subject, outlier: int) -> bool:
    """One verb, judged; whether the case can go on."""
    before = model.state() if model.roster is not None else None
    if step in ("forget", "update") and outlier not in model.roster.ids:
        return False  # the cell was refused
    try:
        verb()
    except TimeIsUp:
        raise
    except (AdiabatError, ValueError) as error:
        out.worsen("refused", kind=cause(error), step=step, detail=str(error))
        if before is None:
            return False
        if model.state() != before:
            out.worsen("wrong", kind="an error changed the model", step=step, detail=str(error))
        return step == "partial_fit"
    except Exception as error:
        out.worsen("crashed", kind=cause(error), step=step, detail=traceback.format_exc())
        return False
    out.models += 1
    verdict = judge(model)
    if verdict.f_error is not None:
        out.f_error = max(out.f_error or 0.0, verdict.f_error)
    if not verdict.ok:
        out.worsen(
            "wrong", kind=verdict.fault, step=step, off=verdict.off, allowed=verdict.allowed,
            detail=verdict.detail,
        )  # fmt: skip
        return False
    return True


# ---------------------------------------------------------------------------------------------
# The run


def chosen(only: str) -> dict[str, tuple[Any, ...]]:
    """The levels that `--only` leaves: estimator=SVC+SVR,cell=1e3."""
    levels = dict(LEVELS)
    for part in filter(None, only.split(",")):
        name, _, values = part.partition("=")
        if name not in levels:
            raise SystemExit(f"--only: {name!r} is not one of {', '.join(levels)}")
        known = {f"{level:g}" if isinstance(level, float) else str(level): level
                 for level in levels[name]}  # fmt: skip
        names = [f"{float(v):g}" if isinstance(levels[name][0], float) else v
                 for v in values.split("+")]  # fmt: skip
        levels[name] = tuple(known[value] for value in names)
    return levels


WEIGHTS = {"1e-12 ... 1e-9": -9, "1e-8 ... 1e-4": -4, "1e-3 ... 1e3": 3, "1e4 ... 1e8": 8,
           "1e9 ... 1e12": 12}  # fmt: skip


def level_of(name: str, value: Any) -> str:
    """The name of a level in a table; weights go by groups."""
    if name == "weight":
        return next(label for label, most in WEIGHTS.items() if value <= 10.0**most * 1.5)
    return f"{value:.0e}" if isinstance(value, float) else str(value)


def summarise(done: list[tuple[Case, Outcome]], seconds: float) -> list[Table]:
    """Counts by estimator, by kernel, and by what went wrong."""
    tables = []
    for name in ("estimator", "kernel", "scenario", "cell", "C", "weight"):
        table = Table(f"Outcomes by {name}", (name, *OUTCOMES))
        values = sorted({getattr(case, name) for case, _ in done}, key=LEVELS[name].index)
        for level in dict.fromkeys(level_of(name, value) for value in values):
            count = Counter(o.outcome for c, o in done if level_of(name, getattr(c, name)) == level)
            table.add(level, *(count[outcome] for outcome in OUTCOMES))
        tables.append(table)
    causes = Table("What went wrong, and why it was refused", ("kind", "outcome", "cases", "first"))
    count = Counter((o.outcome, o.kind) for _, o in done if o.outcome != "ok")
    for (outcome, kind), cases in count.most_common():
        first = next(c for c, o in done if (o.outcome, o.kind) == (outcome, kind))
        causes.add(kind, outcome, cases, " ".join(str(value) for value in asdict(first).values()))
    pairs = Table("Wrong or crashed, and smallest cell at which", ("estimator", *KERNELS))
    for estimator in dict.fromkeys(case.estimator for case, _ in done):
        cells = []
        for kernel in KERNELS:
            here = [(c, o) for c, o in done if (c.estimator, c.kernel) == (estimator, kernel)]
            bad = [c.cell for c, o in here if o.outcome in ("wrong", "crashed")]
            cells.append(f"{len(bad)}/{len(here)}" + (f" {min(bad):.0e}" if bad else ""))
        pairs.add(estimator, *cells)
    whole = Counter(o.outcome for _, o in done)
    modest = [o for c, o in done if c.modest and o.outcome == "refused"]
    models = sum(o.models for _, o in done)
    lines = Table("The whole", ("figure", "value"))
    for outcome in OUTCOMES:
        lines.add(outcome, whole[outcome])
    lines.add("models handed out and judged", models)
    vague = sum(o.outcome == "ok" and (o.f_error or 0.0) > VAGUE for _, o in done)
    lines.add(f"ok, but f_error above {VAGUE:.0e} in some step", vague)
    lines.add(
        f"refused below cells of {MODEST_CELL:.0e} and C of {MODEST_C:.0e} (must be 0)",
        f"{len(modest)} of {sum(c.modest for c, _ in done)}",
    )
    lines.add("cases per second", f"{len(done) / max(seconds, 1e-9):.1f}")
    return [*tables, pairs, causes, lines]


def outcomes(
    tasks: list[tuple[int, Case, float]], jobs: int
) -> Iterator[tuple[int, Case, Outcome]]:
    """What becomes of each case, in their order."""
    if jobs == 1:
        yield from map(_numbered, tasks)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(_numbered, tasks, chunksize=8)


def _numbered(task: tuple[int, Case, float]) -> tuple[int, Case, Outcome]:
    number, case, limit = task
    return number, case, run(case, limit)


def main() -> int:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=900, help="how many of the sequence")
    parser.add_argument("--first", type=int, default=0, help="how many of it to pass over")
    parser.add_argument("--part", default="1/1", help="i/k: every k-th case, from the i-th")
    parser.add_argument("--seeds", type=int, default=50, help="seeds of the data")
    parser.add_argument("--only", default="", help="estimator=SVC+SVR,kernel=poly3,cell=1e3 ...")
    parser.add_argument("--name", default="hostile", help="of the files in out/")
    parser.add_argument("--limit", type=float, default=20.0, help="seconds for a case")
    parser.add_argument("--jobs", type=int, default=1, choices=(1, 2), help="processes")
    arguments = parser.parse_args()
    levels = chosen(arguments.only)
    levels["seed"] = tuple(range(arguments.seeds))
    part, parts = (int(number) for number in arguments.part.split("/"))
    cases = islice(design(levels), arguments.first, arguments.first + arguments.cases)
    tasks = [(n, case, arguments.limit) for n, case in enumerate(cases) if n % parts == part - 1]
    name = arguments.name if parts == 1 else f"{arguments.name}-{part}-of-{parts}"
    found: list[tuple[int, Case, Outcome]] = []
    started = time.perf_counter()
    for result in outcomes(tasks, arguments.jobs):
        found.append(result)
        if len(found) % BLOCK == 0 or len(found) == len(tasks):
            write_csv(name, [{"number": n, **asdict(c), **asdict(o)} for n, c, o in found])
            print(f"{len(found)} of {len(tasks)} cases", file=sys.stderr)
    done = [(case, outcome) for _, case, outcome in found]
    tables = summarise(done, time.perf_counter() - started)
    for table in tables:
        table.show(console())
    write_markdown(name, "The hostile grid", f"{len(done)} cases.", tables)
    bad = sum(o.outcome in ("wrong", "crashed") for _, o in done)
    return int(bad > 0)


if __name__ == "__main__":
    raise SystemExit(main())
