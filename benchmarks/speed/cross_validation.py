# SPDX-License-Identifier: BSD-3-Clause
"""Cross-validation of a fitted model against scikit-learn's of its SVC, in one run.

scikit-learn refits each fold (LIBSVM, tol 1e-3, a cache of 500 MB), a fold a core at a time; ours
unlearns it from the full model, in one step and judged as any update. Scores of both are printed:
they may differ where LIBSVM's tolerance decides.

    python -m benchmarks.speed.cross_validation [--folds 10] [--rows 5000]
"""

from __future__ import annotations

import argparse
import time

import sklearn.svm
from joblib import cpu_count
from sklearn.model_selection import StratifiedKFold, cross_validate

import adiabat
from benchmarks.speed.problems import PROBLEMS

TARGET = 3.0


def main() -> None:
    """MNIST, 8 against the rest."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--folds", type=int, default=10)
    parser.add_argument("--rows", type=int, default=5000)
    chosen = parser.parse_args()
    problem = next(problem for problem in PROBLEMS if problem.name == "mnist-8")
    X, y = problem.load()
    X, y = X[: chosen.rows], y[: chosen.rows]
    cv = StratifiedKFold(chosen.folds)
    parameters = {"C": problem.C, "gamma": problem.gamma}
    model = adiabat.SVC(**parameters).fit(X, y)
    seconds = {}
    started = time.perf_counter()
    ours = adiabat.cross_validate(model, cv=cv)["test_score"]
    seconds["ours"] = time.perf_counter() - started
    peer = sklearn.svm.SVC(**parameters, tol=1e-3, cache_size=500)
    started = time.perf_counter()
    theirs = cross_validate(peer, X, y, cv=cv, n_jobs=cpu_count())["test_score"]
    seconds["theirs"] = time.perf_counter() - started
    ratio = seconds["theirs"] / seconds["ours"]
    print(
        f"{problem.title}, {len(X)} rows, {len(model.support_)} with weight, {chosen.folds} folds"
    )
    print(f"scikit-learn  {seconds['theirs']:8.2f} s   accuracy {theirs.mean():.5f}")
    print(f"adiabat       {seconds['ours']:8.2f} s   accuracy {ours.mean():.5f}")
    print(f"ratio         {ratio:8.2f}     (aimed at: {TARGET:g})")


if __name__ == "__main__":
    main()
