# SPDX-License-Identifier: BSD-3-Clause
"""What a stored model says of its own rows: leave-one-out, suspicious labels, cross-validation."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import sqlalchemy as sa

from adiabat.errors import StoreError
from adiabat.store import log, records
from adiabat.store.session import Session
from adiabat.store.settings import Settings
from adiabat.store.tasks import TASKS, Rows, is_fitted, plain
from adiabat.typing import FloatArray

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class LeftOut:
    """What each row would get from the model without it.

    Attributes
    ----------
    ids : list of str
        In the order in which they were learned.
    labels, predictions : ndarray
        What is stored (None where rows have no labels), and what the model without the row says.
    margin : ndarray
        By how much it is right: of the decision values, that of the row's own class less the
        largest other; for numbers, minus the absolute error; without labels, the decision value.
        Below 0 a label is contradicted, or the row is outside.
    score : float
        Share of labels that are right, or of rows inside; for numbers, the mean absolute error.
    kind : {"class", "number", "one class"}
    held : str
        What was kept fixed, at its value on all rows, if anything.
    entry : int
        The entry of the log that left this model.
    """

    ids: list[str]
    labels: npt.NDArray[Any] | None
    predictions: npt.NDArray[Any]
    margin: FloatArray
    score: float
    kind: str
    held: str = ""
    entry: int = 0

    def suspects(self, count: int) -> list[dict[str, Any]]:
        """The rows most contradicted by the others, worst first."""
        order = np.argsort(self.margin, kind="stable")[:count]
        if self.kind != "number":
            order = order[self.margin[order] < 0.0]
        return [
            {
                "id": self.ids[row],
                "label": None if self.labels is None else plain(self.labels[row]),
                "prediction": plain(self.predictions[row]),
                # without the last member of its class a row contradicts nothing measurable
                "margin": float(self.margin[row]) if np.isfinite(self.margin[row]) else None,
            }
            for row in order
        ]

    def sentence(self) -> str:
        """The result in a sentence."""
        n = len(self.ids)
        begin = f"Each of the {n:,} rows left out in turn{self.held}: "
        if self.kind == "number":
            return f"{begin}mean absolute error {self.score:.4g}."
        wrong = n - round(self.score * n)
        fate = "labelled otherwise"
        if self.kind == "one class":
            fate = "taken for a stranger" if wrong == 1 else "taken for strangers"
        return f"{begin}{wrong:,} would be {fate} ({1 - self.score:.2%})."


def leave_one_out(
    session: Session,
    hold_scaling: bool = False,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> LeftOut:
    """Exact leave-one-out of the model on its own rows."""
    with session.using(_rows) as view:
        require_fitted(session.folder, view.model)
        session.say("Leaving each row out")
        found = left_out(view.settings, view.model, view.found, hold_scaling, n_jobs, progress)
        return replace(found, entry=view.head.seq)


def left_out(
    settings: Settings,
    model: Any,
    found_rows: tuple[list[str], Rows],
    hold_scaling: bool,
    n_jobs: int | None,
    progress: Progress | None,
) -> LeftOut:
    """Exact leave-one-out of a model on the ids and rows that it has learned."""
    ids, rows = found_rows
    task = TASKS[settings.task]
    task.require_own(model, rows)
    if hold_scaling and settings.scale is None:
        raise ValueError("hold_scaling is for a model that scales its features; leave it out")
    options: dict[str, Any] = {}
    if task.has_sets:
        options = {"n_jobs": n_jobs, "progress": progress}
    if settings.scale is not None:
        options["hold_scaling"] = hold_scaling
    found = model.leave_one_out(*(() if task.keeps_rows else _arguments(rows)), **options)
    held = ", the scaling held" if hold_scaling or settings.scale == "held" else ""
    predictions = np.asarray(found.prediction)
    if task.target is None:
        margin = np.asarray(found.decision)
        return LeftOut(ids, None, predictions, margin, float(np.mean(margin >= 0.0)), "one class",
                       held)  # fmt: skip
    if task.target == "number":
        margin = -np.abs(predictions - rows.labels)
        score = float(-margin.mean())
    else:
        margin = _margins(np.asarray(found.decision), rows.labels, np.asarray(model.classes_))
        score = float(np.mean(predictions == rows.labels))
    return LeftOut(ids, rows.labels, predictions, margin, score, str(task.target), held)


def cross_validate(
    session: Session,
    folds: int,
    scoring: str | None,
    shuffle: bool = False,
    seed: int = 0,
    positive_label: Any = None,
) -> dict[str, Any]:
    """Exact cross-validation of the model on its own rows."""
    from sklearn.model_selection import KFold, StratifiedKFold

    from adiabat.analysis.cross_validation import cross_validate as validated

    started = time.perf_counter()
    with session.using(_rows) as view:
        task = TASKS[view.settings.task]
        if task.target is None:
            raise ValueError(
                f"a model of task {view.settings.task!r} has no labels to score folds against; loo "
                "says which of its rows it would take for strangers"
            )
        model, (_, rows) = view.model, view.found
        require_fitted(session.folder, model)
        split: Any = folds
        if shuffle:
            kind = StratifiedKFold if task.target == "class" else KFold
            split = kind(folds, shuffle=True, random_state=seed)
        scorer: Any = scoring
        if positive_label is not None:
            scorer = _scorer_of(scoring, positive_label, rows.labels, task.target)
        if task.keeps_rows:
            scores = validated(model, cv=split, scoring=scorer)["test_score"]
        else:
            task.require_own(model, rows)
            X, y, weights = _arguments(rows)
            found = model.cross_validate(X, y, cv=split, scoring=scorer, sample_weight=weights)
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


def _scorer_of(scoring: str | None, positive: Any, labels: Any, target: str | None) -> Any:
    """A score of scikit-learn that is about one of the classes."""
    known = [] if target != "class" else sorted(set(labels.tolist()))
    match = [label for label in known if str(label) == str(positive)]
    if not match or scoring is None:
        raise ValueError(
            f"positive_label={positive!r} needs a score that is about one class, such as f1, and "
            f"one of the labels {', '.join(map(repr, known)) or '(there are none)'}"
        )
    from sklearn.metrics import get_scorer, make_scorer

    plain = get_scorer(scoring)
    return make_scorer(
        plain._score_func,
        response_method=plain._response_method,
        greater_is_better=plain._sign > 0,
        **{**plain._kwargs, "pos_label": match[0]},
    )


def require_fitted(folder: str, model: Any) -> None:
    """Refuse a store that has learned nothing."""
    if not is_fitted(model):
        raise StoreError(f"{folder!r} has learned nothing yet; learn some rows first")


def rows_and_log(
    connection: sa.Connection, settings: Settings
) -> tuple[tuple[list[str], Rows], list[log.Entry]]:
    """Ids and rows, and all entries of the log."""
    return _rows(connection, settings), list(log.read_chain(connection))


def _rows(connection: sa.Connection, settings: Settings) -> tuple[list[str], Rows]:
    held = list(records.read_all(connection))
    return [record.id for record in held], records.as_rows(held, settings.n_features)


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
