# SPDX-License-Identifier: BSD-3-Clause
"""The page of the log: who did what, whether it holds, and jobs on the way."""

from __future__ import annotations

from typing import Final

from fastapi import FastAPI, Request
from fastapi.responses import RedirectResponse, Response

from adiabat.service.api import choose
from adiabat.service.pages.frame import Frame
from adiabat.service.problems import Problem

_SHOWN: Final = 100


def add(app: FastAPI, frame: Frame) -> None:
    """The routes."""

    @app.get("/models/{m}/log", include_in_schema=False)
    def get_log_page(
        m: str, request: Request, operation: str = "", by: str = "", before: str = ""
    ) -> Response:
        """Entries, the newest first."""
        visit = frame.enter(request, "audit")
        model = frame.model(visit, m)
        entries = model.store.log()
        start = int(before) if before.isdigit() and len(before) < 16 else None
        chosen = choose(entries, operation, by, start)
        return frame.page(
            visit, "log.html", model=model, head=model.store.head(), entries=chosen[:_SHOWN],
            more=chosen[_SHOWN - 1].seq if len(chosen) > _SHOWN else None,
            operations=sorted({entry.operation for entry in entries}),
            people=sorted({entry.by for entry in entries} - {""}),
            operation=operation, by=by, verified=model.verified,
        )  # fmt: skip

    @app.post("/models/{m}/log/verify", include_in_schema=False)
    async def post_verify(m: str, request: Request) -> Response:
        """Verify the store now."""
        visit = frame.enter(request, "audit")
        model = frame.model(visit, m)
        fields = await frame.form(visit)
        job = frame.work.verification(model, visit.who.name, "retrain" in fields)
        return RedirectResponse(f"/jobs/{job.id}", 303)

    @app.get("/jobs/{id}", include_in_schema=False)
    def get_job_page(id: str, request: Request, part: str = "") -> Response:
        """How far a job is, and how it ended."""
        visit = frame.enter(request)
        job = frame.gate.desk.jobs.get(id)
        mine = job is not None and (visit.who.name == job.by or visit.who.may("admin"))
        if job is None or not mine or not visit.who.sees(job.model):
            raise Problem(404, "There is no such job, or it is somebody else's.")
        if not part:
            job.finished.wait(0.5)
        model = frame.model(visit, job.model)
        template = "job_part.html" if part else "job.html"
        response = frame.page(visit, template, job=job, model=model)
        if part and job.kind == "suspects" and job.state == "done":
            response.headers["HX-Redirect"] = f"/models/{model.name}/review"
        return response
