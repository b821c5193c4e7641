# SPDX-License-Identifier: BSD-3-Clause
"""KT09's comparison: m changes one by one along the path, together along the path, by exchange.

Half of the changes are support vectors to unlearn, half are rows to learn that will carry weight
(rows without weight cost nothing). KT09 3.4 predicts that the path of all together has 1/sqrt(m)
of the breakpoints of the paths one by one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import numpy as np
import sklearn.svm

from adiabat import SVC, UpdateReport
from benchmarks.speed.problems import Data, noisy
from benchmarks.tables import Table

NAME = "one-by-one"
SIZES, CHANGES = (500, 1000), (10, 50)
GAMMA, C = 1.0 / 40.0, 10.0


@dataclass(frozen=True)
class Way:
    """One way of making m changes to a model of n rows."""

    n: int
    m: int
    way: str
    seconds: float
    breakpoints: int
    rounds: int
    residual: float
    allowed: float


@dataclass(frozen=True)
class Scene:
    """A model's rows and the changes to make."""

    X: np.ndarray
    y: np.ndarray
    held: np.ndarray
    leaving: np.ndarray
    entering: np.ndarray

    def model(self, solver: str) -> SVC:
        """The model before the changes."""
        model = SVC(C=C, gamma=GAMMA, solver="auto")
        model.fit(self.X[self.held], self.y[self.held], ids=self.held)
        return model.set_params(solver=solver)

    def together(self, model: SVC) -> list[UpdateReport]:
        """All changes in one update."""
        X, y, new = self.X, self.y, self.entering
        return [model.update(X[new], y[new], ids=new, remove=self.leaving)]

    def one_by_one(self, model: SVC) -> list[UpdateReport]:
        """A row in, a row out, and so on."""
        reports = []
        for come, go in zip(self.entering, self.leaving, strict=True):
            reports.append(model.update(self.X[[come]], self.y[[come]], ids=[come]))
            reports.append(model.update(remove=[go]))
        return reports


def scene(data: Data, n: int, m: int) -> Scene:
    """Choose m/2 support vectors of n + m/2 rows to hold back, and m/2 others to unlearn."""
    X, y = data
    rng = np.random.default_rng(m)
    support = rng.permutation(SVC(C=C, gamma=GAMMA).fit(X, y).support_).astype(np.int64)
    entering, leaving = support[: m // 2], support[m // 2 : m]
    held = np.setdiff1d(np.arange(len(X)), entering)
    return Scene(X, y, held, leaving, entering)


def compare(repeats: int, quick: bool) -> list[Way]:
    """Every way for every n and m."""
    found = []
    for n in SIZES[:1] if quick else SIZES:
        for m in CHANGES:
            setting = scene(noisy(n + m // 2), n, m)
            for way, solver, change in (
                ("path, one by one", "path", setting.one_by_one),
                ("path, together", "path", setting.together),
                ("exchange, one by one", "exchange", setting.one_by_one),
                ("exchange, together", "exchange", setting.together),
            ):
                found.append(_time(setting, way, solver, change, m, repeats))
            found.append(_refit(setting, m, repeats))
    return found


def _refit(setting: Scene, m: int, repeats: int) -> Way:
    """LIBSVM from scratch on the rows after the changes, as KT09 compare with."""
    after = np.concatenate([np.setdiff1d(setting.held, setting.leaving), setting.entering])
    seconds = []
    for _ in range(2 + repeats):
        started = time.perf_counter()
        sklearn.svm.SVC(C=C, gamma=GAMMA, tol=1e-3).fit(setting.X[after], setting.y[after])
        seconds.append(time.perf_counter() - started)
    return Way(len(after), m, "refit, LIBSVM at tol 1e-3", min(seconds), 0, 0, math.nan, math.nan)


def _time(
    setting: Scene,
    way: str,
    solver: str,
    change: Callable[[SVC], list[UpdateReport]],
    m: int,
    repeats: int,
) -> Way:
    seconds = []
    for _ in range(repeats):
        model = setting.model(solver)
        started = time.perf_counter()
        reports = change(model)
        seconds.append(time.perf_counter() - started)
    return Way(
        n=len(setting.held),
        m=m,
        way=way,
        seconds=median(seconds),
        breakpoints=sum(report.breakpoints for report in reports),
        rounds=sum(report.rounds for report in reports),
        residual=max(report.certificate.residual for report in reports),
        allowed=reports[-1].certificate.tol,
    )


def table(ways: list[Way]) -> Table:
    """Times as ratios to the path one by one, breakpoints beside KT09's prediction."""
    found = Table(
        "m changes: one by one, together, by exchange (KT09)",
        (
            "way",
            "n",
            "m",
            "ms",
            "speed-up",
            "breakpoints",
            "1/sqrt(m) predicts",
            "rounds",
            "residual",
        ),
    )
    single: Way | None = None
    for way in ways:
        if way.way == "path, one by one":
            single = way
        assert single is not None
        predicted = ""
        if way.way == "path, together":
            predicted = f"{single.breakpoints / math.sqrt(way.m):.0f}"
        found.add(
            way.way,
            way.n,
            way.m,
            f"{1e3 * way.seconds:.1f}",
            f"{single.seconds / way.seconds:.1f}x",
            way.breakpoints or "",
            predicted,
            way.rounds or "",
            "" if math.isnan(way.residual) else f"{way.residual:.0e}",
        )
    return found
