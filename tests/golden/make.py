# SPDX-License-Identifier: BSD-3-Clause
"""Make the golden model files of this version; those of released versions are never made again.

python tests/golden/make.py FOLDER
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline

from adiabat import (
    LSSVC,
    LSSVR,
    SVC,
    SVDD,
    SVR,
    ColumnTransformer,
    IncrementalPipeline,
    KernelLSSVC,
    KernelLSSVR,
    OneClassSVM,
    OneHotEncoder,
    SimpleImputer,
    StandardScaler,
)
from adiabat.feature_maps import Polynomial, RandomFourier
from adiabat.retention import Window

RNG = np.random.default_rng(20)
X = RNG.standard_normal((24, 3)) * [1.0, 3.0, 0.5]
Z = X[:, 0] + 0.3 * RNG.standard_normal(24)
LABELS = np.array(["few", "many", "none"])[np.digitize(Z, [-0.4, 0.5])]
WEIGHT = np.linspace(0.5, 2.0, 24)
IDS = [f"id-{k}" for k in range(24)]
AT = RNG.standard_normal((5, 3))


def models() -> dict[str, Any]:
    """Every estimator, small, after an update; each kind of row, target and id at least once."""
    two = (Z > 0.0).astype(int)
    table = np.column_stack([np.where(X[:, :2] > 2.0, np.nan, X[:, :2]), np.round(X[:, 2])])
    columns = ColumnTransformer([
        ("filled", make_pipeline(SimpleImputer(), StandardScaler()), [0, 1]),
        ("kinds", OneHotEncoder(handle_unknown="ignore"), [2]),
    ])  # fmt: skip
    gram = X @ X.T
    return {
        "svc": SVC(C=3.0, class_weight="balanced").fit(X, LABELS, WEIGHT, IDS).forget(["id-3"]),
        "svc-sparse": SVC(C=2.0, kernel="linear").fit(sp.csr_array(np.round(X)), two).forget([2]),
        "svc-given": SVC(C=2.0, kernel="precomputed").fit(gram, two),
        "svc-window": SVC(C=2.0, gamma=0.3, retain=Window(20)).fit(X, two),
        "svr": SVR(C=2.0, epsilon=0.05, kernel="poly", degree=2, gamma=0.2).fit(X, Z).forget([5]),
        "one-class": OneClassSVM(nu=0.3).fit(X).forget([1]),
        "svdd": SVDD(C=0.2).fit(X).forget([1]),
        "lssvc": LSSVC(rho=0.5).fit(X, LABELS).forget(X[:1], LABELS[:1]),
        "lssvc-hashes": LSSVC(remember="hashes").fit(X, two).forget(X[:1], two[:1]),
        "lssvc-table": LSSVC(feature_map=columns).fit(table, two).forget(table[:1], two[:1]),
        "lssvr": LSSVR(feature_map=Polynomial(degree=2)).fit(X, np.column_stack([Z, X[:, 1]])),
        "lssvr-fourier": LSSVR(
            feature_map=RandomFourier(n_components=8, gamma=0.5, seed=0)
        ).fit(X, Z, WEIGHT),
        "kernel-lssvc": KernelLSSVC(rho=0.5).fit(X, LABELS, ids=IDS).forget(["id-4"]),
        "kernel-lssvr": KernelLSSVR(kernel="linear").fit(X, Z).forget([4]),
        "pipeline": IncrementalPipeline(SVC(C=3.0)).fit(X, LABELS).forget([3]),
        "pipeline-held": IncrementalPipeline(
            SVR(C=2.0), StandardScaler(with_mean=False), mode="held"
        ).fit(sp.csr_array(np.round(X)), Z),
    }  # fmt: skip


def points(name: str) -> Any:
    """Where the models of a name decide: kernel values against the samples, where it was given."""
    return AT @ X.T if name == "svc-given" else AT


def decide(model: Any, name: str) -> Any:
    """Decision values, or predictions of numbers."""
    return getattr(model, "decision_function", model.predict)(points(name))


def main(folder: str) -> None:
    expected = {}
    for name, model in models().items():
        model.save(Path(folder) / f"{name}.adiabat")
        expected[name] = np.asarray(decide(model, name)).tolist()
    (Path(folder) / "decisions.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
