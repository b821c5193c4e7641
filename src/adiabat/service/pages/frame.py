# SPDX-License-Identifier: BSD-3-Clause
"""What all pages share: who looks at them, their forms, their look.

A form is taken only with the token of its session, and only from a page of this service.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any, Final
from urllib.parse import parse_qsl, quote, urlsplit

import jinja2
from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from adiabat.service.access import COOKIE, Gate, Principal, Session
from adiabat.service.problems import Problem
from adiabat.service.served import ServedModel
from adiabat.service.work import Work
from adiabat.store.words import counted, printable

_MOST_FIELDS: Final = 2_000
_FORM: Final = "application/x-www-form-urlencoded"
#: The pages of a model: path, name, and the scope that each needs.
ACTS: Final = (
    ("review", "Review", "review"),
    ("erasure", "Erasure", "erase"),
    ("log", "Log", "audit"),
    ("predict", "Predict", "predict"),
)
_FILES: Final = {
    "style.css": "text/css",
    "desk.js": "text/javascript",
    "htmx.min.js": "text/javascript",
}


class SignIn(Exception):
    """Somebody has to sign in first."""


@dataclass(frozen=True)
class Visit:
    """Somebody looking at a page."""

    request: Request
    who: Principal
    session: Session


class Frame:
    """Renders pages and reads forms."""

    def __init__(self, app: FastAPI, gate: Gate, work: Work) -> None:
        self.gate = gate
        self.work = work
        self._templates = jinja2.Environment(
            loader=jinja2.PackageLoader("adiabat.service"),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters |= {
            "shown": printable, "brief": brief, "time": time_text, "count": counted,
        }  # fmt: skip
        self._templates.filters["part"] = lambda text: quote(str(text), safe="")
        app.state.render_problem = self.problem_page
        folder = resources.files("adiabat.service") / "static"
        held = {name: (folder / name).read_bytes() for name in _FILES}

        @app.exception_handler(SignIn)
        async def _sign_in(request: Request, error: SignIn) -> Response:
            path = request.url.path if request.method == "GET" else "/"
            return RedirectResponse(f"/sign-in?to={quote(path)}", 303)

        @app.get("/static/{name}", include_in_schema=False)
        async def static(name: str) -> Response:
            """Style and scripts: all that pages load."""
            if name not in held:
                raise Problem(404, "There is no such file.")
            headers = {"Cache-Control": "no-cache"}
            return Response(held[name], media_type=_FILES[name], headers=headers)

    def enter(self, request: Request, scope: str | None = None) -> Visit:
        """Who looks; SignIn if that is not known, Problem 403 if it is not allowed."""
        found = self.gate.person(request)
        if found is None:
            raise SignIn
        who, session = found
        request.state.by = who.name
        visit = Visit(request, who, session)
        request.state.visit = visit
        if scope is not None and not who.may(scope):
            raise Problem(403, f"Your key lacks the scope {scope!r}.")
        return visit

    def model(self, visit: Visit, name: str) -> ServedModel:
        """A model that the visitor may see."""
        return self.gate.model(name, visit.who)

    async def form(self, visit: Visit) -> dict[str, str]:
        """The fields of a form that this service has rendered for this session."""
        fields = await read_form(visit.request)
        given = fields.pop("csrf", "")
        if not hmac.compare_digest(given.encode(), visit.session.csrf.encode()):
            raise Problem(403, "The form is not of this session; load the page again.")
        return fields

    def page(self, visit: Visit, template: str, status: int = 200, **content: Any) -> Response:
        """A page, or a part of one."""
        session, who = visit.session, visit.who
        text = self._templates.get_template(template).render(
            who=who, csrf=session.csrf, acts=[act for act in ACTS if who.may(act[2])],
            keyless=session.key is None, **content,
        )  # fmt: skip
        response = HTMLResponse(text, status)
        if visit.request.cookies.get(COOKIE) != session.token:
            self.remember(response, session)
        return response

    def remember(self, response: Response, session: Session) -> None:
        """Have a browser send the session with what it asks from now on."""
        response.set_cookie(
            COOKIE, session.token, httponly=True, samesite="strict", path="/",
            secure=self.gate.desk.settings.https,
        )  # fmt: skip

    def bare(self, template: str, status: int = 200, **content: Any) -> Response:
        """A page for somebody who is not known."""
        text = self._templates.get_template(template).render(who=None, acts=(), **content)
        return HTMLResponse(text, status)

    def problem_page(self, request: Request, problem: Problem) -> Response:
        """A problem for people."""
        visit = getattr(request.state, "visit", None)
        body = problem.body()
        if visit is None:
            response = self.bare("problem.html", problem.status, problem=body)
        else:
            response = self.page(visit, "problem.html", problem.status, problem=body)
        response.headers.update(problem.headers)
        return response


async def read_form(request: Request) -> dict[str, str]:
    """The fields of a form from a page of this service."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM:
        raise Problem(415, f"Content-Type must be {_FORM}.")
    origin = request.headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != request.headers.get("host"):
        raise Problem(403, "The form comes from a page of another site.")
    try:
        text = (await request.body()).decode("utf-8")
        return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=_MOST_FIELDS))
    except ValueError:
        raise Problem(400, "The form cannot be read.") from None


def brief(value: Any) -> str:
    """A value in few characters, on one line."""
    if isinstance(value, float):
        return f"{value:.6g}"
    return "" if value is None else printable(value)


def time_text(text: str | None) -> str:
    """A time for people, to the minute."""
    return (text or "")[:16].replace("T", " ")


def lines_of(text: str) -> Sequence[str]:
    """Lines that are not empty, without spaces around them."""
    return [line.strip() for line in text.splitlines() if line.strip()]
