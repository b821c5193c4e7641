# SPDX-License-Identifier: BSD-3-Clause
"""The page of erasure: look ids up, see what would change, erase, and keep the receipt."""

from __future__ import annotations

import json
from typing import Any

from fastapi import FastAPI, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse, Response

from adiabat.service.api import receipt_of, reference_of
from adiabat.service.pages.frame import Frame, lines_of
from adiabat.service.problems import Problem, problem_of
from adiabat.service.rows import check_ids
from adiabat.store.receipt import receipt_page
from adiabat.store.tasks import plain

#: A saved receipt is a page of its own, with its style in it and nothing else.
_SAVED = "default-src 'none'; style-src 'unsafe-inline'; sandbox"


def add(app: FastAPI, frame: Frame) -> None:
    """The routes."""
    limits = frame.gate.desk.settings.limits

    @app.get("/models/{m}/erasure", include_in_schema=False)
    async def get_erasure(m: str, request: Request) -> Response:
        """Ask for ids."""
        visit = frame.enter(request, "erase")
        model = frame.model(visit, m)
        return frame.page(visit, "erasure.html", model=model, step="look", ids="", problem="")

    @app.post("/models/{m}/erasure/preview", include_in_schema=False)
    async def post_preview(m: str, request: Request) -> Response:
        """What is there under these ids, and what erasing it would change."""
        visit = frame.enter(request, "erase")
        model = frame.model(visit, m)
        fields = await frame.form(visit)
        text = fields.get("ids", "")

        def again(problem: str, status: int = 200) -> Response:
            return frame.page(visit, "erasure.html", status, model=model, step="look", ids=text,
                              problem=problem)  # fmt: skip

        names = list(dict.fromkeys(lines_of(text)))
        if not names:
            return again("Give at least one id.", 422)
        if len(names) > limits.rows:
            return again(f"More than {limits.rows} ids; erase them in parts.", 422)
        try:
            check_ids(names, limits)
            rows = await run_in_threadpool(model.store.find, names)
            found = [row["id"] for row in rows]
            missing = [name for name in names if name not in set(found)]
            if not found:
                return again("None of these ids is in the model; nothing is held under them.")
            done = await frame.work.change(
                model, "forget", visit.who.name, lambda store: store.forget(found, dry_run=True)
            )
        except Exception as error:
            problem = problem_of(error)
            if problem is None:
                raise
            return again(problem.detail, problem.status)
        return frame.page(
            visit, "erasure.html", model=model, step="preview", ids="\n".join(found), rows=rows,
            missing=missing, outcome=done.outcome, problem="", reference="",
        )  # fmt: skip

    @app.post("/models/{m}/erasure", include_in_schema=False)
    async def post_erasure(m: str, request: Request) -> Response:
        """Erase, and show the receipt."""
        visit = frame.enter(request, "erase")
        model = frame.model(visit, m)
        fields = await frame.form(visit)
        reference = reference_of(fields.get("reference", "").strip() or None)
        if reference is None or len(reference) > 200:
            raise Problem(422, "Give the reference of the request, of at most 200 characters.")
        names = check_ids(list(lines_of(fields.get("ids", ""))), limits)
        if not names or len(names) > limits.rows:
            raise Problem(422, "Give at least one id.")
        await frame.work.change(
            model, "forget", visit.who.name,
            lambda store: store.forget(names, reference=reference), reference, names,
        )  # fmt: skip
        url = request.url_for("get_receipt_page", m=m)
        return RedirectResponse(str(url.include_query_params(reference=reference)), 303)

    @app.get("/models/{m}/receipt", include_in_schema=False)
    async def get_receipt_page(
        m: str, request: Request, reference: str = "", save: str = ""
    ) -> Response:
        """A receipt: to look at, to print, or to save."""
        visit = frame.enter(request)
        if not (visit.who.may("erase") or visit.who.may("audit")):
            raise Problem(403, "Your key lacks the scope 'erase'.")
        model = frame.model(visit, m)
        found: dict[str, Any] = plain(await run_in_threadpool(receipt_of, model, reference))
        if save == "json":
            return _saved(json.dumps(found, indent=1), "application/json", "receipt.json")
        if save == "html":
            return _saved(receipt_page(found), "text/html", "receipt.html")
        return frame.page(visit, "receipt.html", model=model, receipt=found)


def _saved(text: str, kind: str, name: str) -> Response:
    headers = {
        "Content-Disposition": f'attachment; filename="{name}"',
        "Content-Security-Policy": _SAVED,
    }
    return Response(text, media_type=f"{kind}; charset=utf-8", headers=headers)
