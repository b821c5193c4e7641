# SPDX-License-Identifier: BSD-3-Clause
"""How much does each tuning constant matter? Halved and doubled, one at a time, on the same work.

    python -m benchmarks.numerics.constants                 # prints the table; ten minutes
    python -m benchmarks.numerics.constants --write         # and puts it into docs/numerics.md
    python -m benchmarks.numerics.constants --only exchange

Constants are those of `src/adiabat/engine` and `src/adiabat/_core`: numbers with a name in capitals
at the top of a file. Those of the engine are changed while it runs. Those of the core are compiled
in, and only listed.

The work is fits and updates of classifiers and regressions, by both solvers, on ordinary and on
degenerate data, leave-one-out and a regularisation path: small enough for a run of a second. Counts
of rounds, breakpoints, fallbacks and refusals are the same on every run; f is compared with that of
the constants as they are. Times are of the process, the least of some runs.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import os
import pkgutil
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from benchmarks.tables import ROOT

sys.path.insert(0, str(ROOT / "tests"))

from adiabat import SVC, SVR, AdiabatError

from laws.laws import fitted
from laws.streams import apply, random_steps
from oracles.problems import FAMILIES

SOURCE = ROOT / "src" / "adiabat"
PAGE = ROOT / "docs" / "numerics.md"
BEGIN, END = "<!-- constants: begin -->", "<!-- constants: end -->"
#: Numbers that are what they are, not chosen: roundings, names of states, widths of a CPU.
GIVEN = {
    "EPSILON", "NO_SLOT", "NO_FEATURE", "VEC", "REGISTERS", "FUSED", "SIMD_BYTES", "SIMD_REGISTERS",
    "LANES", "SLACK", "EXP2_RAISED", "NO_LINE",
}  # fmt: skip
#: What has no comment of its own.
SAYS = {
    "_core/gram.pxd WIDTH": "Columns in a panel",
    "_core/gram.pyx LEAST_ROWS": "Rows of a product that one takes at a time, at least",
    "_core/kernel_values_simd.h RBF_LOSS": (
        "Times max(1, γd²) by which γ(‖a‖² + ‖b‖²) may exceed it before differences are squared"
    ),
    "_core/kernel_values_simd.h POLY_LOSS": (
        "Part of γ‖a‖‖b‖ below which γa'b + c₀ is summed to twice the precision"
    ),
    "_core/rounds.pyx SWEEPS": "Sweeps of coordinate descent on the violators' problem, at most",
    "_core/twofold.pyx MOST_PARTS": "Parts of a sum of moments, at most",
}
SEEN = 0.02  # a count that moves by less than this part has not moved
SLOWER = 1.25  # times within this factor cannot be told apart


@dataclass(frozen=True)
class Constant:
    """A number with a name, and what the comment beside it says."""

    file: str
    name: str
    value: str
    says: str

    @property
    def compiled(self) -> bool:
        return self.file.startswith("_core/")

    @property
    def module(self) -> str:
        return "adiabat." + self.file.removesuffix(".py").replace("/", ".")


# ---------------------------------------------------------------------------------------------
# What there is


def constants() -> list[Constant]:
    """Every tuning constant of the engine and the core, in the order of the files."""
    found = []
    for path in sorted((SOURCE / "engine").glob("*.py")):
        found += _of_python(path)
    for path in sorted((SOURCE / "_core").iterdir()):
        if path.suffix in (".pyx", ".pxd", ".h"):
            found += _of_compiled(path)
    return [one for one in found if one.name not in GIVEN]


def _of_python(path: Path) -> Iterator[Constant]:
    text = path.read_text("utf-8")
    lines, comment = text.splitlines(), ""
    for node in ast.parse(text).body:
        if not (isinstance(node, ast.Assign) and len(node.targets) == 1):
            continue
        names = _names(node.targets[0])
        values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
        if not names or len(names) != len(values):
            continue
        comment = _comment_above(lines, node.lineno - 1) or comment
        for name, value in zip(names, values, strict=True):
            if _is_number(value):
                yield Constant(_relative(path), name, ast.unparse(value), comment)


def _names(target: ast.expr) -> list[str]:
    parts = target.elts if isinstance(target, ast.Tuple) else [target]
    names = [part.id for part in parts if isinstance(part, ast.Name)]
    return names if all(re.fullmatch(r"[A-Z][A-Z_0-9]*", name) for name in names) else []


def _is_number(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        named = all(isinstance(part, ast.Name) or _is_number(part)
                    for part in (node.left, node.right))  # fmt: skip
        return named and (_is_number(node.left) or _is_number(node.right))
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def _comment_above(lines: list[str], place: int) -> str:
    first = place
    while first and re.match(r"\s*# ", lines[first - 1]):
        first -= 1
    return " ".join(line.lstrip("# ").rstrip() for line in lines[first:place])


_NUMBER = r"(-?[\d._]+(?:e-?\d+)?(?: *(?:<<|\*\*|\*) *-?[\d.]+)*)"
_COMPILED = re.compile(
    rf"^(?:cdef (?:double|Py_ssize_t|int\w*) +|    |#define +)?([A-Z][A-Z_0-9]*) *(?:=| ) *"
    rf"{_NUMBER}\s*(?:#\s*(.*?)|/\*\s*(.*?)\s*\*/)?$"
)


def _of_compiled(path: Path) -> Iterator[Constant]:
    lines, comment, last = path.read_text("utf-8").splitlines(), "", -1
    for place, line in enumerate(lines):
        if line.startswith(("def ", "class ", "cdef class ", "cpdef ")):
            break
        found = _COMPILED.match(line)
        if found is None:
            continue
        name, value, beside, inside = found.groups()
        comment = comment if place == last + 1 else ""
        comment, last = _comment_above(lines, place) or comment, place
        own = SAYS.get(f"{_relative(path)} {name}") or beside or inside or comment
        yield Constant(_relative(path), name, value.replace("_", ""), own)


def _relative(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


# ---------------------------------------------------------------------------------------------
# What it does


@dataclass
class Work:
    """What a run took, and where it ended."""

    rounds: int = 0
    breakpoints: int = 0
    fallbacks: int = 0
    refused: int = 0
    seconds: float = np.inf
    f: list[Any] = field(default_factory=list)

    def note(self, model: Any, X: Any = None) -> None:
        report = model.last_update_
        self.rounds += report.rounds
        self.breakpoints += report.breakpoints
        self.fallbacks += report.fallbacks
        self.refused += not report.certificate.ok
        if X is not None:
            decide = model.predict if isinstance(model, SVR) else model.decision_function
            self.f.append(np.ravel(decide(X)))


def _moons(n: int, seed: int, noise: float = 0.25) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    angle, y = np.pi * rng.random(n), rng.integers(0, 2, n)
    X = np.column_stack([np.cos(angle) * (1 - 2 * y) + y, np.sin(angle) * (1 - 2 * y) + 0.5 * y])
    return X + noise * rng.standard_normal((n, 2)), y


def _stream(work: Work, model: Any, X: Any, y: Any, n: int) -> None:
    """A fit on n rows, single rows in and out, and a batch."""
    model.fit(X[:n], y[:n])
    work.note(model)
    for k in range(8):
        model.update(X[n + k : n + k + 1], y[n + k : n + k + 1], ids=[n + k], remove=[3 * k])
        work.note(model)
    last = slice(n + 8, n + 8 + n // 10)
    model.update(X[last], y[last], ids=np.arange(last.start, last.stop), remove=np.arange(100, 130))
    work.note(model, X[:50])


def _degenerate(work: Work, family: str, solver: str) -> None:
    rng = np.random.default_rng(7)
    problem = FAMILIES[family](rng)
    model = fitted(problem, solver)
    for step, _ in random_steps(problem, rng, 8):
        apply(model, step)
        work.note(model)
    work.note(model, problem.X)


def tasks() -> dict[str, Callable[[Work], None]]:
    """The work, by name."""
    X, y = _moons(900, 0)
    wide = np.random.default_rng(1).standard_normal((900, 6))
    label = (wide[:, 0] + wide[:, 1] + 0.7 * np.random.default_rng(2).standard_normal(900) > 0) * 1
    target = np.sin(2 * X[:, 0]) + 0.2 * np.random.default_rng(3).standard_normal(900)

    def left_out(work: Work) -> None:
        model = SVC(C=3.0, gamma=1.0).fit(X[:150], y[:150])
        work.f.append(np.ravel(model.leave_one_out().decision))

    def along_c(work: Work) -> None:
        model = SVC(C=1.0, gamma=1.0).fit(X[:80], y[:80])
        path = model.regularization_path(0.1, 100.0)
        work.breakpoints += path.n_breakpoints

    every = {
        "moons": lambda work: _stream(work, SVC(C=10.0, gamma=1.0), X, y, 700),
        "moons, path": lambda work: _stream(work, SVC(C=10.0, gamma=1.0, solver="path"), X, y, 250),
        "moons, exchange": lambda work: _stream(
            work, SVC(C=10.0, gamma=1.0, solver="exchange"), X, y, 500),
        "overlapping": lambda work: _stream(work, SVC(C=0.5, gamma=0.2), X, y, 700),
        "linear": lambda work: _stream(work, SVC(C=1.0, kernel="linear"), wide, label, 700),
        "wide, rbf": lambda work: _stream(work, SVC(C=100.0, gamma=0.1), wide, label, 450),
        "regression": lambda work: _stream(
            work, SVR(C=5.0, gamma=1.0, epsilon=0.1), X, target, 400),
        "large margin": lambda work: _stream(
            work, SVC(C=10.0, gamma=0.5), wide, label, 700),
        "leave-one-out": left_out,
        "path of C": along_c,
    }  # fmt: skip
    for family in ("duplicates", "integer_features", "hard_margin_poly", "gamma_tiny",
                   "grid_ties", "large_offset"):  # fmt: skip
        for solver in ("exchange", "path"):
            every[f"{family}, {solver}"] = partial(_degenerate, family=family, solver=solver)
    return every


def run(every: dict[str, Callable[[Work], None]]) -> Work:
    """All of it, once; a task that raises an error of ours is refused."""
    work = Work()
    started = time.process_time()
    for task in every.values():
        try:
            task(work)
        except AdiabatError:
            work.refused += 1
    work.seconds = time.process_time() - started
    return work


def compared(
    every: dict[str, Callable[[Work], None]], plain: Work, constant: Constant, times: int
) -> tuple[str, str]:
    """What half and twice a constant do, beside runs of it as it is at about the same time.

    Without `times` there is one run of each, and times are not compared.
    """
    runs: dict[float, list[Work]] = {1.0: [], 0.5: [], 2.0: []}
    for _ in range(max(1, times)):
        for factor, found in runs.items():
            with scaled(constant, factor):
                found.append(plain if factor == 1.0 and not times else run(every))
    first, half, double = (
        replace(found[0], seconds=min(one.seconds for one in found) if times else 1.0)
        for found in runs.values()
    )
    return verdict(first, half), verdict(first, double)


@contextmanager
def scaled(constant: Constant, factor: float) -> Iterator[Any]:
    """With a constant of the engine other than it is, wherever its name was imported."""
    home = importlib.import_module(constant.module)
    value = getattr(home, constant.name)
    other = type(value)(max(1, round(value * factor))) if isinstance(value, int) else value * factor
    places = [module for module in _modules() if _has(module, home, constant.name, value)]
    for module in places:
        setattr(module, constant.name, other)
    try:
        yield other
    finally:
        for module in places:
            setattr(module, constant.name, value)


def _modules() -> list[Any]:
    import adiabat.engine

    names = [found.name for found in pkgutil.iter_modules(adiabat.engine.__path__)]
    return [importlib.import_module(f"adiabat.engine.{name}") for name in names]


def _has(module: Any, home: Any, name: str, value: Any) -> bool:
    if module is home:
        return True
    taken = rf"from {home.__name__} import [^)]*\b{name}\b"
    text = Path(module.__file__).read_text("utf-8")
    return getattr(module, name, None) == value and re.search(taken, text) is not None


def verdict(plain: Work, other: Work) -> str:
    """What a change of a constant did, in a few words."""
    said = []
    if other.refused != plain.refused:
        said.append(f"{other.refused} refused")
    if other.fallbacks != plain.fallbacks:
        said.append(f"fallbacks {plain.fallbacks} → {other.fallbacks}")
    for name in ("rounds", "breakpoints"):
        before, after = getattr(plain, name), getattr(other, name)
        if abs(after - before) > SEEN * max(1, before):
            said.append(f"{name} {100.0 * (after / max(1, before) - 1.0):+.0f} %")
    ratio = other.seconds / plain.seconds
    if not 1.0 / SLOWER < ratio < SLOWER:
        said.append(f"time ×{ratio:.2f}")
    if not other.refused and len(other.f) == len(plain.f):
        off = max(float(np.nanmax(np.abs(a - b), initial=0.0))
                  for a, b in zip(plain.f, other.f, strict=True))  # fmt: skip
        if off > 1e-6:
            said.append(f"f {off:.0e}")
    return ", ".join(said) or "="


def rows(measured: dict[tuple[str, str], tuple[str, str]]) -> list[str]:
    """The table: a line for each constant."""
    lines = ["| constant | value | what it is | × 0.5 | × 2 |", "| --- | --- | --- | --- | --- |"]
    for one in constants():
        half, double = measured.get((one.file, one.name), ("compiled", "compiled"))
        says = one.says.replace("|", "/").rstrip(".")
        lines.append(f"| `{one.file}` `{one.name}` | {one.value} | {says} | {half} | {double} |")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", help="files and names, a regular expression")
    parser.add_argument(
        "--times", type=int, default=2, help="runs, of which the fastest counts; 0: no times"
    )
    parser.add_argument("--write", action="store_true", help="put the table into docs/numerics.md")
    arguments = parser.parse_args()
    every = tasks()
    run(every)
    plain = run(every)
    print(f"as it is: {plain.rounds} rounds, {plain.breakpoints} breakpoints, "
          f"{plain.fallbacks} fallbacks, {plain.refused} refused, {plain.seconds:.2f} s",
          flush=True)  # fmt: skip
    measured = {}
    for one in constants():
        if not re.search(arguments.only, f"{one.file} {one.name}") or one.compiled:
            continue
        found = measured[one.file, one.name] = compared(every, plain, one, arguments.times)
        print(f"{one.file:28s} {one.name:16s} {one.value:>12s}   {found[0]:40s} {found[1]}",
              flush=True)  # fmt: skip
    if arguments.write:
        text = PAGE.read_text("utf-8")
        before, _, rest = text.partition(BEGIN)
        _, _, after = rest.partition(END)
        PAGE.write_text("\n".join([before + BEGIN, *rows(measured), END + after]), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
