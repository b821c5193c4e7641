# SPDX-License-Identifier: BSD-3-Clause
"""The page of predictions: a form made from the columns, the answer, and who spoke for it."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response

from adiabat.errors import AdiabatError
from adiabat.service.pages.frame import Frame, Visit
from adiabat.service.problems import Problem
from adiabat.service.rows import as_rows
from adiabat.service.served import ServedModel
from adiabat.service.voices import voices
from adiabat.service.work import answers
from adiabat.store.encoding import encode_questions
from adiabat.store.predictions import predictions


def add(app: FastAPI, frame: Frame) -> None:
    """The routes."""

    @app.get("/models/{m}/predict", include_in_schema=False)
    def get_predict(m: str, request: Request) -> Response:
        """Ask for a row."""
        visit = frame.enter(request, "predict")
        return _form(frame, visit, frame.model(visit, m), {})

    @app.post("/models/{m}/predict", include_in_schema=False)
    async def post_predict(m: str, request: Request) -> Response:
        """Answer."""
        visit = frame.enter(request, "predict")
        model = frame.model(visit, m)
        fields = await frame.form(visit)
        given = {name.removeprefix("column "): value for name, value in fields.items()}
        try:
            found = await run_in_threadpool(_answer, frame, visit, model, given)
        except Problem as problem:
            return _form(frame, visit, model, given, problem=problem.detail)
        except AdiabatError as error:
            return _form(frame, visit, model, given, problem=str(error))
        return _form(frame, visit, model, given, **found)


def _answer(
    frame: Frame, visit: Visit, model: ServedModel, given: dict[str, str]
) -> dict[str, Any]:
    predictor = model.predictor
    decider = predictor.require_fitted(model.name)
    limits = frame.gate.desk.settings.limits
    table = as_rows({name: [value] for name, value in given.items()}, predictor.settings, limits)
    ids, X = encode_questions(table, predictor.settings)
    may_see = visit.who.may("review")
    [answer] = answers(predictions(decider, ids, X), may_see)
    # Whose rows spoke tells about members: for those who may see rows.
    spoken = voices(model, predictor, X) if may_see else None
    return {"answer": answer, "voices": spoken, "entry": predictor.entry}


def _form(
    frame: Frame, visit: Visit, model: ServedModel, given: dict[str, str], **found: Any
) -> Response:
    features = model.predictor.settings.features
    content = {"answer": None, "voices": None, "entry": None, "problem": "", **found}
    return frame.page(
        visit, "predict.html", 422 if content["problem"] else 200, model=model, given=given,
        columns=features if isinstance(features, list) else None,
        learned=model.predictor.decider is not None, may_see=visit.who.may("review"), **content,
    )  # fmt: skip
