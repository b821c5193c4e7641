# SPDX-License-Identifier: BSD-3-Clause
"""Problems as RFC 9457 has them: one JSON object, whatever went wrong."""

from __future__ import annotations

import logging
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from adiabat.errors import (
    AdiabatError,
    IdError,
    InputFileError,
    NotOptimalError,
    StoreDamagedError,
    StoreError,
    StoreLockedError,
)

MEDIA_TYPE: Final = "application/problem+json"
_TITLES: Final = {
    400: "The request cannot be understood",
    401: "A key is needed",
    403: "The key does not allow this",
    404: "There is no such thing here",
    405: "This cannot be done here",
    409: "This does not fit what is there",
    411: "The length of the body is needed",
    413: "The body is too large",
    415: "The body is of a kind that is not taken",
    421: "The service is not known by that name",
    422: "The request cannot be carried out as it is",
    429: "Too much at once",
    500: "Something broke",
    503: "Not now",
    504: "It takes longer",
}
_log = logging.getLogger("adiabat.service")


class Problem(Exception):
    """What a request is answered with in place of a result."""

    def __init__(
        self, status: int, detail: str, headers: dict[str, str] | None = None, **more: Any
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = headers or {}
        self.more = more

    def body(self) -> dict[str, Any]:
        """As plain JSON."""
        title = _TITLES.get(self.status, "The request was refused")
        return {
            "type": "about:blank",
            "title": title,
            "status": self.status,
            "detail": self.detail,
            **self.more,
        }

    def response(self) -> JSONResponse:
        """As an answer."""
        return JSONResponse(self.body(), self.status, headers=self.headers, media_type=MEDIA_TYPE)


#: Errors of the library as statuses, the first that fits; those not listed are bugs.
_STATUSES: Final[tuple[tuple[type[BaseException], int], ...]] = (
    (IdError, 409),
    (InputFileError, 422),
    (NotOptimalError, 422),
    (StoreLockedError, 503),
    (StoreDamagedError, 503),
    (StoreError, 409),
    (AdiabatError, 422),
    (MemoryError, 503),
    (ValueError, 422),
)


def problem_of(error: BaseException) -> Problem | None:
    """The problem that an error is; None for a bug."""
    if isinstance(error, Problem):
        return error
    for kind, status in _STATUSES:
        if isinstance(error, kind):
            headers = {"Retry-After": "5"} if status == 503 else {}
            return Problem(status, str(error) or type(error).__name__, headers)
    return None


def explain_by_problems(app: FastAPI) -> None:
    """Have every error of an application answered by a problem."""

    def answer(request: Request, problem: Problem) -> Response:
        render = getattr(app.state, "render_problem", None)
        wants_page = "text/html" in request.headers.get("accept", "")
        if render is not None and wants_page and not request.url.path.startswith("/v1/"):
            page: Response = render(request, problem)
            return page
        return problem.response()

    @app.exception_handler(Problem)
    async def _problem(request: Request, error: Problem) -> Response:
        return answer(request, error)

    @app.exception_handler(AdiabatError)
    async def _ours(request: Request, error: AdiabatError) -> Response:
        found = problem_of(error)
        assert found is not None
        return answer(request, found)

    @app.exception_handler(HTTPException)
    async def _http(request: Request, error: HTTPException) -> Response:
        headers = dict(error.headers or {})
        return answer(request, Problem(error.status_code, str(error.detail), headers))

    @app.exception_handler(RequestValidationError)
    async def _invalid(request: Request, error: RequestValidationError) -> Response:
        said = "; ".join(
            f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors()[:5]
        )
        return answer(request, Problem(422, said))

    @app.exception_handler(Exception)
    async def _bug(request: Request, error: Exception) -> Response:
        # What it says may quote a row; where it comes from does not.
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        place = "" if trace is None else f"{trace.tb_frame.f_code.co_qualname}:{trace.tb_lineno}"
        _log.error("broken", extra={"fields": {"error": type(error).__name__, "at": place}})
        return Problem(500, "The service could not do it; its log says where it broke.").response()
