# SPDX-License-Identifier: BSD-3-Clause
"""The interface for programs: ``/v1``. Every route says which scope it needs."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Header, Path, Query, Request, Security
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, Response
from fastapi.security import HTTPBearer
from pydantic import BaseModel, ValidationError

from adiabat.errors import StoreError
from adiabat.service import schemas
from adiabat.service.access import Gate, Principal
from adiabat.service.jobs import Job
from adiabat.service.problems import MEDIA_TYPE, Problem
from adiabat.service.rows import CSV, JSON, check_ids, read_json, read_questions, read_rows
from adiabat.service.served import Done, ServedModel
from adiabat.service.work import PATIENCE, Work, answers
from adiabat.store.encoding import table_ids
from adiabat.store.log import Entry
from adiabat.store.outcome import Outcome
from adiabat.store.tasks import plain

_LONGEST_NAME: Final = 200
_PROBLEM: Final = {"content": {MEDIA_TYPE: {"schema": schemas.ProblemBody.model_json_schema()}}}


def _problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    common = (401, 403, 404, 413, 421, 422, 429, 503)
    return {status: {**_PROBLEM, "description": "A problem"} for status in (*common, *statuses)}


def _rows_body() -> dict[str, Any]:
    content = {
        JSON: {"schema": schemas.RowsBody.model_json_schema()},
        CSV: {"schema": {"type": "string"}},
    }
    return {"requestBody": {"required": True, "content": content}}


def _json_body(model: type[BaseModel]) -> dict[str, Any]:
    return {
        "requestBody": {"required": True, "content": {JSON: {"schema": model.model_json_schema()}}}
    }


Name = Annotated[str, Path(max_length=64, description="The model's name.")]
IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        max_length=_LONGEST_NAME,
        description="The request's reference. What was done under it is not done again.",
    ),
]


def make_api(gate: Gate, work: Work) -> APIRouter:
    """All routes."""
    limits = gate.desk.settings.limits
    router = APIRouter(prefix="/v1", dependencies=[Security(HTTPBearer(auto_error=False))])

    def needs(scope: str | None) -> Any:
        async def check(request: Request) -> Principal:
            who = gate.program(request)
            request.state.by = who.name
            if scope is not None and not who.may(scope):
                raise Problem(403, f"The key lacks the scope {scope!r}.")
            return who

        return Depends(check)

    anyone, predict, review = needs(None), needs("predict"), needs("review")
    erase, audit = needs("erase"), needs("audit")

    @router.get("/models", responses={200: {"model": schemas.ModelList}, **_problems()})
    async def list_models(who: Principal = anyone) -> Response:
        """The models that the key is for."""
        found = [brief(model) for model in gate.desk.models.values() if who.sees(model.name)]
        return JSONResponse({"models": found})

    @router.get("/models/{m}", responses={200: {"model": schemas.ModelBody}, **_problems()})
    def get_model(m: Name, who: Principal = anyone) -> Response:
        """What a model is, and how it stands."""
        return JSONResponse(model_body(gate.model(m, who)))

    @router.post(
        "/models/{m}/predictions",
        responses={200: {"model": schemas.Predictions}, **_problems(400, 409, 415)},
        openapi_extra=_rows_body(),
    )
    async def post_predictions(m: Name, request: Request, who: Principal = predict) -> Response:
        """Labels of rows; with the scope review, decision values too."""
        model = gate.model(m, who)
        body = await request.body()
        kind = request.headers.get("content-type", "")
        predictor, columns = await work.predict(
            model, lambda found: read_questions(body, kind, found.settings, limits)
        )
        return JSONResponse(
            {
                "entry": predictor.entry,
                "hash": predictor.hash,
                "predictions": answers(columns, who.may("review")),
            }
        )

    @router.post(
        "/models/{m}/rows",
        status_code=201,
        responses={201: {"model": schemas.ChangeBody}, **_problems(400, 409, 415, 504)},
        openapi_extra=_rows_body(),
    )
    async def post_rows(
        m: Name, request: Request, key: IdempotencyKey = None, who: Principal = review
    ) -> Response:
        """Learn rows that are not there yet."""
        model = gate.model(m, who)
        body, name = await request.body(), reference_of(key)
        kind = request.headers.get("content-type", "")
        settings = model.predictor.settings
        table = await run_in_threadpool(read_rows, body, kind, settings, limits)
        done = await work.change(
            model, "learn", who.name, lambda store: store.learn(table, reference=name), name,
            table_ids(table, settings), body,
        )  # fmt: skip
        return JSONResponse(change_body(done), 201)

    @router.post(
        "/models/{m}/revisions",
        status_code=201,
        responses={201: {"model": schemas.ChangeBody}, **_problems(400, 409, 415, 504)},
        openapi_extra=_rows_body(),
    )
    async def post_revisions(
        m: Name, request: Request, key: IdempotencyKey = None, who: Principal = review
    ) -> Response:
        """Correct rows that are there, by the columns given."""
        model = gate.model(m, who)
        body, name = await request.body(), reference_of(key)
        kind = request.headers.get("content-type", "")
        settings = model.predictor.settings
        table = await run_in_threadpool(read_rows, body, kind, settings, limits)
        done = await work.change(
            model, "revise", who.name, lambda store: store.revise(table, reference=name), name,
            table_ids(table, settings), body,
        )  # fmt: skip
        return JSONResponse(change_body(done), 201)

    @router.post(
        "/models/{m}/erasures",
        status_code=201,
        responses={
            200: {"model": schemas.PreviewBody, "description": "Of a dry run"},
            201: {"model": schemas.ChangeBody},
            **_problems(400, 409, 415, 504),
        },
        openapi_extra=_json_body(schemas.ErasureBody),
    )
    async def post_erasures(
        m: Name,
        request: Request,
        dry_run: Annotated[bool, Query(description="Only say what would change.")] = False,
        key: IdempotencyKey = None,
        who: Principal = erase,
    ) -> Response:
        """Erase rows under a reference; its receipt is at ``receipts/{reference}``."""
        model = gate.model(m, who)
        body, name = await request.body(), reference_of(key)
        asked = parsed(schemas.ErasureBody, body, request)
        if len(asked.ids) > limits.rows:
            raise Problem(413, f"There are more than {limits.rows} ids; send them in parts.")
        ids = check_ids(asked.ids, limits)
        if dry_run:
            done = await work.change(
                model, "forget", who.name,
                lambda store: store.forget(ids, missing=asked.missing, dry_run=True),
            )  # fmt: skip
            assert done.outcome is not None
            return JSONResponse(preview_body(done.outcome))
        if name is None:
            raise Problem(400, "Idempotency-Key is missing: the reference of the erasure.")
        done = await work.change(
            model, "forget", who.name,
            lambda store: store.forget(ids, reference=name, missing=asked.missing), name, ids,
        )  # fmt: skip
        return JSONResponse(change_body(done), 201)

    @router.get(
        "/models/{m}/receipts/{reference:path}",
        responses={
            200: {"content": {JSON: {"schema": {"type": "object"}}}, "description": "The receipt"},
            **_problems(409),
        },
    )
    def get_receipt(m: Name, reference: str, request: Request, who: Principal = anyone) -> Response:
        """What was erased under a reference, after a verification. Scope erase or audit."""
        if not (who.may("erase") or who.may("audit")):
            raise Problem(403, "The key lacks the scope 'erase'.")
        model = gate.model(m, who)
        return JSONResponse(plain(receipt_of(model, reference)))

    @router.get("/models/{m}/log", responses={200: {"model": schemas.LogBody}, **_problems()})
    def get_log(
        m: Name,
        operation: Annotated[str | None, Query(max_length=64)] = None,
        by: Annotated[str | None, Query(max_length=64)] = None,
        before: Annotated[int | None, Query(ge=1, le=1 << 53)] = None,
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
        who: Principal = audit,
    ) -> Response:
        """Entries of the log, the newest first, the chain checked."""
        entries = gate.model(m, who).store.log()
        chosen = choose(entries, operation, by, before)[:limit]
        return JSONResponse(
            {"head": entries[-1].hash, "entries": [entry_body(entry) for entry in chosen]}
        )

    @router.post(
        "/models/{m}/verifications",
        responses={
            200: {"model": schemas.JobBody, "description": "Done already"},
            202: {"model": schemas.JobBody, "description": "Under way: ask at Location"},
            **_problems(400, 415),
        },
        openapi_extra=_json_body(schemas.VerificationBody),
    )
    async def post_verifications(m: Name, request: Request, who: Principal = audit) -> Response:
        """Check a store; with `retrain` against a model fitted anew."""
        model = gate.model(m, who)
        asked = parsed(schemas.VerificationBody, await request.body(), request)
        job = work.verification(model, who.name, asked.retrain)
        await run_in_threadpool(job.finished.wait, PATIENCE)
        return job_response(job)

    @router.get(
        "/models/{m}/suspects",
        responses={
            200: {"model": schemas.SuspectsBody},
            202: {"model": schemas.JobBody, "description": "Under way: ask again"},
            **_problems(409),
        },
    )
    async def get_suspects(
        m: Name,
        count: Annotated[int, Query(ge=1, le=1000)] = 20,
        who: Principal = review,
    ) -> Response:
        """The rows most likely mislabelled: exact leave-one-out, worst first."""
        model = gate.model(m, who)
        model.predictor.require_fitted(model.name)
        job = work.left_out(model, who.name)
        if job is not None:
            await run_in_threadpool(job.finished.wait, PATIENCE)
            if job.state != "done":
                return job_response(job)
        found = model.left_out
        assert found is not None
        return JSONResponse(
            {
                "entry": found.entry,
                "kind": found.kind,
                "sentence": found.sentence(),
                "suspects": found.suspects(count),
            }
        )

    @router.get("/jobs/{id}", responses={200: {"model": schemas.JobBody}, **_problems()})
    async def get_job(id: Annotated[str, Path(max_length=64)], who: Principal = anyone) -> Response:
        """How far a job is; for whoever began it."""
        job = gate.desk.jobs.get(id)
        if job is None or not who.sees(job.model) or not (who.name == job.by or who.may("admin")):
            raise Problem(404, "There is no such job, or it is somebody else's.")
        return JSONResponse(job_body(job))

    return router


# -- bodies --------------------------------------------------------------------------------------


def reference_of(key: str | None) -> str | None:
    """The name that an Idempotency-Key gives a request; quotes around it are no part of it."""
    if key is None:
        return None
    name = key.strip().strip('"').strip()
    if not name or not name.isprintable():
        raise Problem(400, "Idempotency-Key is empty, or has characters that cannot be printed.")
    return name


def parsed(model: type[Any], body: bytes, request: Request) -> Any:
    """A JSON body as a model; Problem 422 where it does not fit."""
    found = read_json(body or b"{}", request.headers.get("content-type", JSON if not body else ""))
    try:
        return model.model_validate(found, strict=True)
    except ValidationError as error:
        said = "; ".join(
            f"{'.'.join(map(str, item['loc'])) or 'body'}: {item['msg']}"
            for item in error.errors(include_input=False, include_url=False)[:5]
        )
        raise Problem(422, said) from None


def brief(model: ServedModel) -> dict[str, Any]:
    """A model in the list."""
    found = model.predictor
    return {"name": model.name, "task": found.settings.task, "entry": found.entry,
            "hash": found.hash}  # fmt: skip


def model_body(model: ServedModel) -> dict[str, Any]:
    """What a model is, without where it is."""
    found = model.store.info()
    for name in ("model", "schema", "bytes"):
        del found[name]
    return {"name": model.name, **found}


def change_body(done: Done) -> dict[str, Any]:
    """A change as the log has it, so that a retry is answered alike."""
    entry = done.entry
    body = {} if entry is None else entry.body
    details = body.get("details", {})
    outcome = done.outcome
    return {
        "operation": body.get("operation", outcome.operation if outcome else ""),
        "entry": entry.seq if entry else outcome.entry if outcome else None,
        "hash": entry.hash if entry else outcome.hash if outcome else None,
        "time": body.get("time"),
        "reference": body.get("reference"),
        **{name: int(details.get(name, 0)) for name in ("added", "removed", "revised")},
        "certificate": body["certificate"]["after"] if entry else None,
        "replayed": done.replayed,
    }


def preview_body(outcome: Outcome) -> dict[str, Any]:
    """What a change would do."""
    known = {field.name for field in fields(outcome)}
    names = [name for name in schemas.PreviewBody.model_fields if name in known]
    found: dict[str, Any] = plain({name: getattr(outcome, name) for name in names})
    return found


def entry_body(entry: Entry) -> dict[str, Any]:
    """An entry of the log."""
    body = entry.body
    return {
        "entry": entry.seq,
        "hash": entry.hash,
        "time": body["time"],
        "operation": entry.operation,
        "by": entry.by,
        "reference": body["reference"],
        "details": body["details"],
        "certificate": body["certificate"]["after"],
    }


def choose(
    entries: list[Entry], operation: str | None, by: str | None, before: int | None
) -> list[Entry]:
    """Entries that fit, the newest first."""
    return [
        entry
        for entry in reversed(entries)
        if (not operation or entry.operation == operation)
        and (not by or entry.by == by)
        and (before is None or entry.seq < before)
    ]


def receipt_of(model: ServedModel, reference: str) -> dict[str, Any]:
    """A receipt; Problem 404 if nothing was erased under the reference."""
    known = {entry.body["reference"] for entry in model.store.log() if entry.operation == "forget"}
    if reference not in known:
        raise Problem(404, "Nothing was erased under this reference.")
    try:
        return model.store.receipt(reference)
    except StoreError as error:
        raise Problem(503, str(error), {"Retry-After": "5"}) from error


def job_body(job: Job) -> dict[str, Any]:
    """A job as plain JSON."""
    names = schemas.JobBody.model_fields
    return {name: getattr(job, name) for name in names}


def job_response(job: Job) -> Response:
    """A job, done or to be asked about."""
    body = json.loads(json.dumps(job_body(job)))
    if job.finished.is_set():
        return JSONResponse(body)
    return JSONResponse(body, 202, {"Location": f"/v1/jobs/{job.id}", "Retry-After": "1"})
