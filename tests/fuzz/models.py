# SPDX-License-Identifier: BSD-3-Clause
"""Models whose files are edited: one of every kind that a file can hold."""

import numpy as np
from sklearn.pipeline import make_pipeline

import adiabat
from adiabat.retention import Window

from hostile import tampering


def _table(rows):
    """Rows whose first column is a category, and whose second has gaps."""
    table = rows.copy()
    table[:, 0] = np.round(table[:, 0])
    table[::7, 1] = np.nan
    return table


def _transformers():
    return adiabat.ColumnTransformer(
        [
            ("gaps", make_pipeline(adiabat.SimpleImputer(), adiabat.StandardScaler()), [1, 2]),
            ("range", adiabat.MinMaxScaler(), [3]),
            ("middle", adiabat.RobustScaler(), [4]),
            ("categories", adiabat.OneHotEncoder(handle_unknown="ignore"), [0]),
        ]
    )


MODELS = {
    **tampering.MODELS,
    "svc poly": lambda X: adiabat.SVC(kernel="poly", degree=2, coef0=1.0, gamma=0.3).fit(
        X, tampering.Y
    ),
    "svc chi2": lambda X: adiabat.SVC(kernel="chi2", gamma=0.3).fit(abs(X), tampering.Y),
    "svc precomputed": lambda X: adiabat.SVC(kernel="precomputed").fit(X @ X.T, tampering.Y),
    "svc window": lambda X: adiabat.SVC(gamma=0.3, retain=Window(30)).fit(X, tampering.Y),
    "svc calibrated": lambda X: adiabat.SVC(gamma=0.3, calibration="isotonic").fit(X, tampering.Y),
    "table": lambda X: adiabat.IncrementalPipeline(adiabat.SVC(), scaler=_transformers()).fit(
        _table(X), tampering.Y
    ),
    "table held": lambda X: adiabat.IncrementalPipeline(
        adiabat.SVC(), scaler=_transformers(), mode="held"
    ).fit(_table(X), tampering.Y),
}
