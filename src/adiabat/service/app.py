# SPDX-License-Identifier: BSD-3-Clause
"""The application: routes for programs, pages for people, and what surrounds both."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, Response

import adiabat
from adiabat.service.access import Gate
from adiabat.service.api import make_api
from adiabat.service.desk import Desk
from adiabat.service.guards import Guards
from adiabat.service.metrics import Metrics
from adiabat.service.pages import add_pages
from adiabat.service.problems import Problem, explain_by_problems
from adiabat.service.work import Work

# How long changes of other processes may stay unnoticed by predictions.
_LOOK_SECONDS: Final = 0.5


def make_app(desk: Desk) -> Any:
    """The ASGI application of a desk, which it closes when it ends."""

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        watching = asyncio.create_task(_watch(desk))
        yield
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
        await run_in_threadpool(desk.close)

    app = FastAPI(
        title="Adiabat",
        version=adiabat.__version__,
        description="Support vector machines that learn and unlearn, exactly.",
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        lifespan=life,
    )
    metrics = Metrics(desk)
    gate = Gate(desk)
    work = Work(desk, metrics)
    explain_by_problems(app)
    app.include_router(make_api(gate, work))
    add_pages(app, gate, work)

    @app.get("/healthz", include_in_schema=False)
    async def healthz() -> Response:
        """The process answers."""
        return JSONResponse({"ok": True})

    @app.get("/readyz", include_in_schema=False)
    async def readyz() -> Response:
        """Every model can be read."""
        bad = [model.name for model in desk.models.values() if model.damage is not None]
        return JSONResponse({"ok": not bad}, 503 if bad else 200)

    @app.get("/metrics", include_in_schema=False)
    async def get_metrics(request: Request) -> Response:
        """Figures for Prometheus. Scope audit."""
        who = gate.program(request)
        if not who.may("audit"):
            raise Problem(403, "The key lacks the scope 'audit'.")
        return Response(metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    @app.get("/openapi.json", include_in_schema=False)
    async def openapi(request: Request) -> Response:
        """The description of the interface. Any key."""
        gate.program(request)
        return JSONResponse(app.openapi())

    app.add_middleware(Guards, settings=desk.settings, metrics=metrics)
    return app


async def _watch(desk: Desk) -> None:
    await asyncio.sleep(_LOOK_SECONDS)
    desk.start()  # writers import scikit-learn, for which the first who ask need not wait
    while True:
        await run_in_threadpool(desk.refresh)
        await asyncio.sleep(_LOOK_SECONDS)
