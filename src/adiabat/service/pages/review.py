# SPDX-License-Identifier: BSD-3-Clause
"""The page of review: rows most likely mislabelled, one at a time."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from fastapi import FastAPI, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse, Response

from adiabat.errors import StoreError
from adiabat.service.pages.frame import Frame, Visit
from adiabat.service.problems import Problem
from adiabat.service.reviews import Reviews
from adiabat.service.served import ServedModel
from adiabat.service.voices import nearest
from adiabat.store.outcome import Outcome
from adiabat.store.predictor import Predictor
from adiabat.store.store import Store
from adiabat.store.tasks import plain

_EACH: Final = 2
_SHOWN: Final = 40
_COMPARED: Final = 20_000
_DIGITS: Final = 16  # of a number that the database takes


class _Changed(Exception):
    """Somebody else has changed the row meanwhile."""


def add(app: FastAPI, frame: Frame) -> None:
    """The routes."""
    reviews = Reviews(frame.gate.desk)
    notices: dict[str, str] = {}  # by session: what the last act did

    @app.get("/models/{m}/review", include_in_schema=False)
    def get_review(m: str, request: Request) -> Response:
        """The next row, or how far the order is computed."""
        visit = frame.enter(request, "review")
        model = frame.model(visit, m)
        notice = notices.pop(visit.session.token, "")
        if model.predictor.decider is None:
            return frame.page(visit, "review.html", model=model, row=None, job=None, near=[],
                              notice="This model has learned nothing yet.", labels=[], stale=False,
                              columns=[])  # fmt: skip
        job = frame.work.left_out(model, visit.who.name)
        if model.left_out is None and job is not None:
            job.finished.wait(0.5)
        if model.left_out is None:
            assert job is not None
            return frame.page(visit, "review.html", model=model, row=None, job=job, near=[],
                              notice=notice, labels=[], stale=False, columns=[])  # fmt: skip
        row = reviews.next(model, visit.session.token)
        near: list[dict[str, Any]] = []
        if row is not None:
            predictor = model.predictor
            points = model.store.points([row["number"]])
            if row["number"] in points:
                near = nearest(model, predictor, points[row["number"]], row["number"], _EACH)
        columns = [] if row is None else list(row["features"])[:_SHOWN]
        labels = _labels(model.predictor, row)
        return frame.page(
            visit, "review.html", model=model, row=row, near=near, job=None, notice=notice,
            labels=labels, columns=columns,
            stale=model.left_out.entry < model.predictor.entry,
        )  # fmt: skip

    @app.post("/models/{m}/review/{act}", include_in_schema=False)
    async def post_review(m: str, act: str, request: Request) -> Response:
        """Keep, correct or skip the row, and go to the next."""
        visit = frame.enter(request, "review")
        model = frame.model(visit, m)
        fields = await frame.form(visit)
        token = visit.session.token
        said = fields.get("number", "")
        if not (said.isdecimal() and len(said) < _DIGITS):
            raise Problem(422, "The form does not say which row.")
        number = int(said)
        if act == "keep":
            await run_in_threadpool(reviews.keep, model.name, number, visit.who.name)
            notices[token] = "Kept as it is."
        elif act == "skip":
            reviews.skip(model.name, number, token)
            notices[token] = "Skipped."
        elif act == "correct":
            notices[token] = await _correct(frame, visit, model, number, fields)
        else:
            raise Problem(404, "There is no such act.")
        return RedirectResponse(request.url_for("get_review", m=m).path, 303)


async def _correct(
    frame: Frame, visit: Visit, model: ServedModel, number: int, fields: dict[str, str]
) -> str:
    """Give a row another label, if it still has the one that was seen; what that moved."""
    settings = model.predictor.settings
    label = fields.get("label", "").strip()
    if not label or settings.label_column is None:
        raise Problem(422, "Give the right label.")
    before = model.predictor

    def act(store: Store) -> Outcome:
        row = store.find_numbers([number]).get(number)
        if row is None or str(plain(row["label"])) != fields.get("seen"):
            raise _Changed
        columns = {settings.id_column: [row["id"]], settings.label_column: [label]}
        return store.revise(columns)

    try:
        done = await frame.work.change(model, "revise", visit.who.name, act)
    except _Changed:
        return "Somebody else has changed or erased this row meanwhile; nothing was done."
    assert done.outcome is not None
    frame.work.left_out(model, visit.who.name)  # the new order, by the time it is wanted
    moved = await run_in_threadpool(_moved, model, before)
    return f"Corrected to {label}. {moved}"


def _moved(model: ServedModel, before: Predictor) -> str:
    """What a change moved, in a sentence."""
    after = model.predictor
    try:
        X = model.store.rows().X
    except StoreError:
        return ""
    if X.shape[0] > _COMPARED or before.settings.features != after.settings.features:
        return ""
    old, new = before.decider.predict(X), after.decider.predict(X)
    changed = int(np.sum(old != new))
    said = "No prediction" if changed == 0 else f"{changed} prediction{'s' * (changed > 1)}"
    return f"{said} on the {X.shape[0]:,} rows changed."


def _labels(predictor: Predictor, row: dict[str, Any] | None) -> list[Any]:
    """Labels to choose from; none for numbers, or where rows have no labels."""
    if row is None or row["kind"] != "class":
        return []
    return [label for label in plain(predictor.decider.classes_) if label != row["label"]]
