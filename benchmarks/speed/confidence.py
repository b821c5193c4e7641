# SPDX-License-Identifier: BSD-3-Clause
"""Confidence against refitting, in one run: processor time, so that other programs count little.

    python -m benchmarks.speed.confidence [--points N] [CASE ...]

Refits are scikit-learn's (LIBSVM) at tol 1e-3; a few are measured and scaled to as many as are
needed. MAPIE and online-cp take part where they are installed. All on one thread.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import sklearn.svm
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.preprocessing import StandardScaler

import adiabat
from adiabat.engine.newcomers import Newcomers
from benchmarks import machine
from benchmarks.speed.problems import PROBLEMS, MissingData, noisy

REFITS = 3
Found = tuple[str, float, float, float]  # words, our seconds, theirs, the aim
Case = Callable[[int], Found]


def _spent(work: Callable[[], Any], repeats: int = 1) -> float:
    """Seconds of the processor, the least of some runs."""
    found = []
    for _ in range(repeats):
        started = time.process_time()
        work()
        found.append(time.process_time() - started)
    return min(found)


def _p_values(points: int) -> Found:
    """Full p-values of two labels a point, against two refits a point."""
    problem = next(problem for problem in PROBLEMS if problem.name == "mnist-8")
    X, y = problem.load()
    known = {"C": problem.C, "gamma": problem.gamma}
    new, X, y = X[-points:], X[:-points], y[:-points]
    model = adiabat.SVC(**known).fit(X, y)
    ours = _spent(lambda: model.predict_p(new)) / points
    refit = _spent(lambda: sklearn.svm.SVC(**known, cache_size=500).fit(X, y), REFITS)
    name = f"p-values, MNIST 8, n = {len(X)}, {points} points: two refits a point"
    return name, ours, 2 * refit, 100.0


def _online_cp(points: int) -> Found:
    """The same on 400 samples, against online-cp's conformal SVM."""
    from online_cp.classifiers import ConformalSupportVectorMachine

    X, y = noisy(400 + points)
    X = StandardScaler().fit_transform(X)
    y = 2 * y - 1
    model = adiabat.SVC(C=1.0, gamma=0.05).fit(X[:400], y[:400])
    ours = _spent(lambda: model.predict_p(X[400:])) / points
    other = ConformalSupportVectorMachine(C=1.0, sigma=np.sqrt(10.0), label_space=np.array([-1, 1]))
    other.learn_initial_training_set(X[:400], y[:400])
    theirs = _spent(lambda: [other.predict(x) for x in X[400:403]]) / 3
    return "p-values, n = 400: online-cp", ours, theirs, 200.0


def _regions(points: int) -> Found:
    """Full regions of an SVR, against a refit at each breakpoint."""
    X, y = make_friedman1(1_000 + points, noise=1.0, random_state=0)
    X = StandardScaler().fit_transform(X)
    known = {"C": 10.0, "gamma": 0.1, "epsilon": 0.5}
    model = adiabat.SVR(**known).fit(X[:1_000], y[:1_000])
    stations: list[int] = []
    plain = Newcomers.range_over

    def counted(self: Any, number: int, low: float, high: float) -> Any:
        found = plain(self, number, low, high)
        stations.append(0 if found is None else len(found.u))
        return found

    Newcomers.range_over = counted  # type: ignore[method-assign]
    try:
        ours = _spent(lambda: model.predict_region(X[1_000:])) / points
    finally:
        Newcomers.range_over = plain  # type: ignore[method-assign]
    refit = _spent(lambda: sklearn.svm.SVR(**known).fit(X[:1_000], y[:1_000]), REFITS)
    median = float(np.median(stations))
    name = f"SVR regions, friedman, n = 1000, {median:g} stations: a refit at each"
    return name, ours, median * refit, 50.0


def _jackknife(name: str, X: Any, y: Any, points: int) -> Found:
    """Jackknife+ of all points, against MAPIE's cv=-1, or n refits where it is not installed."""
    X = StandardScaler().fit_transform(X)
    y = (y - y.mean()) / y.std()
    X, y, new = X[:-points], y[:-points], X[-points:]
    known = {"C": 1.0, "gamma": 0.1, "epsilon": 0.1}
    model = adiabat.SVR(**known).fit(X, y)
    ours = _spent(lambda: model.predict_interval(new, 0.9, "jackknife+"))
    plain = sklearn.svm.SVR(**known)
    try:
        from mapie.regression import CrossConformalRegressor
    except ImportError:
        theirs = len(X) * _spent(lambda: plain.fit(X, y).predict(new), REFITS)
        return f"jackknife+, {name}, n = {len(X)}: n refits", ours, theirs, 60.0

    def mapie() -> None:
        other = CrossConformalRegressor(plain, confidence_level=0.9, method="plus", cv=-1)
        other.fit_conformalize(X, y).predict_interval(new)

    return f"jackknife+, {name}, n = {len(X)}: MAPIE cv=-1", ours, _spent(mapie), 60.0


def _diabetes(points: int) -> Found:
    return _jackknife("diabetes", *load_diabetes(return_X_y=True), min(points, 42))


def _friedman(points: int) -> Found:
    X, y = make_friedman1(1_000 + points, noise=1.0, random_state=0)
    return _jackknife("friedman", X, y, points)


def _probabilities(name: str, X: Any, y: Any, known: dict[str, Any], points: int) -> Found:
    """Fit and probabilities, against scikit-learn's calibration of its own machine."""
    train, labels, new = X[:-points], y[:-points], X[-points:]

    def ours() -> None:
        adiabat.SVC(**known, calibration="sigmoid").fit(train, labels).predict_proba(new)

    def theirs() -> None:
        plain = sklearn.svm.SVC(**known, cache_size=500)
        CalibratedClassifierCV(plain, ensemble=False).fit(train, labels).predict_proba(new)

    said = f"probabilities with fit, {name}, n = {len(train)}: CalibratedClassifierCV"
    return said, _spent(ours, REFITS), _spent(theirs, REFITS), 2.0


def _probabilities_of_digits(points: int) -> Found:
    problem = next(problem for problem in PROBLEMS if problem.name == "mnist-8")
    X, y = problem.load()
    return _probabilities("MNIST 8", X, y, {"C": problem.C, "gamma": problem.gamma}, points)


def _probabilities_of_noise(points: int) -> Found:
    X, y = noisy(2_000 + points)
    X = StandardScaler().fit_transform(X)
    return _probabilities("noisy", X, y, {"C": 1.0, "gamma": 0.05}, points)


CASES: dict[str, Case] = {
    "p-values": _p_values,
    "online-cp": _online_cp,
    "regions": _regions,
    "diabetes": _diabetes,
    "friedman": _friedman,
    "probabilities-digits": _probabilities_of_digits,
    "probabilities-noise": _probabilities_of_noise,
}


def main(arguments: list[str] | None = None) -> None:
    """Run all cases, or those named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", help=f"of {', '.join(CASES)}")
    parser.add_argument("--points", type=int, default=1_000)
    given = parser.parse_args(arguments)
    print(machine.description())
    with adiabat.limit_threads(1):
        for name in given.cases or CASES:
            try:
                said, ours, theirs, aim = CASES[name](given.points)
            except (ImportError, MissingData) as error:
                print(f"{name}: left out ({error})")
                continue
            print(
                f"{said}: {1e3 * ours:.3g} ms against {1e3 * theirs:.4g} ms, "
                f"{theirs / ours:.3g} times (aim {aim:g})",
                flush=True,
            )


if __name__ == "__main__":
    main()
