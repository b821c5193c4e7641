# SPDX-License-Identifier: BSD-3-Clause
"""Signing in with a key, and out."""

from __future__ import annotations

from fastapi import FastAPI, Request
from fastapi.responses import RedirectResponse, Response

from adiabat.service.access import COOKIE
from adiabat.service.pages.frame import Frame, read_form


def add(app: FastAPI, frame: Frame) -> None:
    """The routes."""

    @app.get("/sign-in", include_in_schema=False)
    async def get_sign_in(to: str = "/") -> Response:
        """Ask for a key."""
        return frame.bare("sign_in.html", to=to, wrong=False)

    @app.post("/sign-in", include_in_schema=False)
    async def post_sign_in(request: Request) -> Response:
        """Begin a session."""
        fields = await read_form(request)
        session = frame.gate.sign_in(fields.get("key", ""))
        to = fields.get("to", "/")
        if session is None:
            return frame.bare("sign_in.html", 401, to=to, wrong=True)
        # Only to a page of this service: a path, and none that names a host.
        local = to.startswith("/") and not to.startswith(("//", "/\\")) and to.isprintable()
        response = RedirectResponse(to if local else "/", 303)
        frame.remember(response, session)
        return response

    @app.post("/sign-out", include_in_schema=False)
    async def post_sign_out(request: Request) -> Response:
        """End the session."""
        visit = frame.enter(request)
        await frame.form(visit)
        frame.gate.sessions.end(visit.session.token)
        response = RedirectResponse("/sign-in", 303)
        response.delete_cookie(COOKIE, path="/")
        return response
