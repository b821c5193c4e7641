# SPDX-License-Identifier: BSD-3-Clause
"""What a predictor says of rows, as columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from adiabat.estimators.predictors.answers import KernelPredictor, confidence


def predictions(model: Any, ids: list[str] | None, X: Any) -> dict[str, Any]:
    """Columns of predictions, decision values and confidence, as far as there are any.

    The ids come first, if there are any. Confidence is the probability of what is predicted.
    """
    columns: dict[str, Any] = {} if ids is None else {"id": ids}
    if isinstance(model, KernelPredictor):
        columns["prediction"], decisions = model.answer(X)
    else:
        columns["prediction"] = model.predict(X)
        has_decisions = hasattr(model, "decision_function")
        decisions = np.asarray(model.decision_function(X)) if has_decisions else None
    sure = confidence(model, X, columns["prediction"])
    if sure is not None:
        columns["confidence"] = sure
    if decisions is not None:
        if decisions.ndim == 1:
            columns["decision"] = decisions
        else:
            for label, values in zip(model.classes_, decisions.T, strict=False):
                columns[f"decision_{label}"] = values
    return columns
