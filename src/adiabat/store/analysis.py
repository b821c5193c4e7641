# SPDX-License-Identifier: BSD-3-Clause
"""What a stored model says of its own rows: leave-one-out, suspicious labels, cross-validation."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import sqlalchemy as sa

from adiabat.analysis.cross_validation import cross_validate as validated
from adiabat.errors import StoreError
from adiabat.store import records
from adiabat.store.session import Session
from adiabat.store.tasks import TASKS, Rows, is_fitted, plain

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class LeftOut:
    """What each row would get from the model without it.

    Attributes
    ----------
    ids : list of str
        In the order in which they were learned.
    labels, predictions : ndarray
        What is stored, and what the model without the row says.
    margin : ndarray
        By how much it is right: of the decision values, that of the row's own class less the
        largest other; for numbers, minus the absolute error. Below 0 a label is contradicted.
    score : float
        Share of labels that are right; for numbers, the mean absolute error.
    kind : {"class", "number"}
    """

    ids: list[str]
    labels: npt.NDArray[Any]
    predictions: npt.NDArray[Any]
    margin: FloatArray
    score: float
    kind: str

    def suspects(self, count: int) -> list[dict[str, Any]]:
        """The rows most contradicted by the others, worst first."""
        order = np.argsort(self.margin, kind="stable")[:count]
        if self.kind == "class":
            order = order[self.margin[order] < 0.0]
        return [
            {
                "id": self.ids[row],
                "label": plain(self.labels[row]),
                "prediction": plain(self.predictions[row]),
                # without the last member of its class a row contradicts nothing measurable
                "margin": float(self.margin[row]) if np.isfinite(self.margin[row]) else None,
            }
            for row in order
        ]

    def sentence(self) -> str:
        """The result in a sentence."""
        n = len(self.ids)
        if self.kind == "number":
            return f"Each of the {n:,} rows left out in turn: mean absolute error {self.score:.4g}."
        wrong = n - round(self.score * n)
        return (
            f"Each of the {n:,} rows left out in turn: {wrong:,} would be labelled otherwise "
            f"({1 - self.score:.2%})."
        )


def leave_one_out(session: Session) -> LeftOut:
    """Exact leave-one-out of the model on its own rows."""
    with session.reading() as (connection, _, settings):
        task = TASKS[settings.task]
        model = _usable(session, "leave-one-out", "leave_one_out", task.target)
        ids, rows = _rows(connection, settings.n_features)
    found = model.leave_one_out(*(() if task.keeps_rows else _arguments(rows)))
    predictions = np.asarray(found.prediction)
    if task.target == "number":
        margin = -np.abs(predictions - rows.labels)
        score = float(-margin.mean())
    else:
        margin = _margins(np.asarray(found.decision), rows.labels, np.asarray(model.classes_))
        score = float(np.mean(predictions == rows.labels))
    return LeftOut(ids, rows.labels, predictions, margin, score, str(task.target))


def cross_validate(session: Session, folds: int, scoring: str | None) -> dict[str, Any]:
    """Exact cross-validation of the model on its own rows."""
    started = time.perf_counter()
    with session.reading() as (connection, _, settings):
        task = TASKS[settings.task]
        model = _usable(session, "cross-validate", "predict", task.target)
        _, rows = _rows(connection, settings.n_features)
    if task.keeps_rows:
        scores = validated(model, cv=folds, scoring=scoring)["test_score"]
    else:
        X, y, weights = _arguments(rows)
        found = model.cross_validate(X, y, cv=folds, scoring=scoring, sample_weight=weights)
        scores = np.asarray(found.test_score)
    return {
        "folds": folds,
        "scoring": scoring or ("accuracy" if task.target == "class" else "r2"),
        "scores": scores.tolist(),
        "mean": float(scores.mean()),
        "deviation": float(scores.std()),
        "rows": len(rows.labels),
        "seconds": time.perf_counter() - started,
    }


def can_leave_one_out(settings_task: str, model: Any) -> bool:
    """Whether there are labels to contradict, and a model that can."""
    return TASKS[settings_task].target is not None and hasattr(model, "leave_one_out")


def _usable(session: Session, verb: str, needs: str, target: str | None) -> Any:
    model = session.model()
    if not is_fitted(model):
        raise StoreError(f"{session.folder!r} has learned nothing yet; learn some rows first")
    if target is None or not hasattr(model, needs):
        raise ValueError(f"{type(model).__name__} has no {verb} to compute")
    return model


def _rows(connection: sa.Connection, n_features: int) -> tuple[list[str], Rows]:
    held = list(records.read_all(connection))
    return [record.id for record in held], records.as_rows(held, n_features)


def _arguments(rows: Rows) -> tuple[Any, Any, Any]:
    return rows.X, rows.labels, None if np.all(rows.weights == 1.0) else rows.weights


def _margins(decision: FloatArray, labels: npt.NDArray[Any], classes: Any) -> FloatArray:
    """Decision value of each row's own class less the largest of the others."""
    own = np.searchsorted(classes, labels)
    if decision.ndim == 1:
        return np.where(own == 1, decision, -decision)
    if len(classes) < 2:
        return np.full(len(labels), np.inf)
    at = np.arange(len(labels))
    mine = decision[at, own]
    others = decision.copy()
    others[at, own] = -np.inf
    margins: FloatArray = mine - others.max(axis=1)
    return margins
