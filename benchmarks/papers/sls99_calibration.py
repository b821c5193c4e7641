# SPDX-License-Identifier: BSD-3-Clause
"""SLS99 says neither C nor how features were scaled: which settings come nearest to its table?

    python -m benchmarks.papers.sls99_calibration [--quick]

Ten-fold accuracy of the batch method for each C, with the features as they are and standardised.
Each data set of `uci` has the setting that comes nearest to the paper's accuracy of the batch
method; the incremental method, which the paper is about, has no say in it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import KFold

from benchmarks.papers.study import Findings, Study
from benchmarks.papers.uci import DATA_SETS, DataSet
from benchmarks.tables import Table

PRICES = (1.0, 10.0, 100.0, 1000.0, 10_000.0)


def accuracy(data: DataSet, scaled: bool, C: float) -> float:
    """Ten-fold accuracy of the batch method: each fold unlearned and put back."""
    X, y = data.load(scaled)
    model, right = data.machine(X, C).fit(X, y), 0
    for _, fold in KFold(10, shuffle=True, random_state=0).split(X):
        model.forget(fold)
        right += int(np.sum(model.predict(X[fold]) == y[fold]))
        model.partial_fit(X[fold], y[fold], ids=fold)
    return 100.0 * right / len(X)


def run(quick: bool, steps: Any) -> Findings:
    chosen = [data for data in DATA_SETS if not quick or data.name in ("Heart", "Promoter gene")]
    prices = PRICES[:2] if quick else PRICES
    table = Table(
        "Ten-fold accuracy of the batch method, %",
        ("data", "paper", "features", *(f"C = {C:g}" for C in prices), "chosen"),
    )
    with steps(2 * len(prices) * len(chosen), "settings") as tick:
        for data in chosen:
            for scaled in (False, True):
                found = []
                for C in prices:
                    found.append(accuracy(data, scaled, C))
                    tick()
                table.add(
                    data.name, data.batch, "standardised" if scaled else "as they are",
                    *(f"{value:.2f}" for value in found),
                    f"C = {data.C:g}" if scaled == data.scaled else "",
                )  # fmt: skip
    words = (
        "C is in SVM-light's unit, 1 / mean k(x, x). Symbols are one-hot. Where several settings "
        "come equally near, the least C is taken."
    )
    return Findings([table], words)


STUDY = Study("sls99_calibration", "SLS99: the settings that the paper leaves open", run)

if __name__ == "__main__":
    raise SystemExit(STUDY.main())
