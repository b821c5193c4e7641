# SPDX-License-Identifier: BSD-3-Clause
"""What every request passes: names, sizes, numbers at once, headers of the answer, the log."""

from __future__ import annotations

import logging
import time
from typing import Any, Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from adiabat.service.access import is_loopback
from adiabat.service.metrics import Metrics
from adiabat.service.problems import Problem
from adiabat.service.settings import ServiceSettings

_HEADERS: Final[dict[str, str]] = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    # With no-referrer a browser would send forms with an origin of null, and they are compared.
    "referrer-policy": "same-origin",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}
_ADDED: Final = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]
_HTTPS: Final = (b"strict-transport-security", b"max-age=31536000")
_log = logging.getLogger("adiabat.service")


class Guards:
    """ASGI middleware around the application."""

    def __init__(self, app: ASGIApp, settings: ServiceSettings, metrics: Metrics) -> None:
        self._app = app
        self._settings = settings
        self._metrics = metrics
        self._under_way = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: D102
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        status = 500
        begun = False

        async def answer(message: Message) -> None:
            nonlocal status, begun
            if message["type"] == "http.response.start":
                status, begun = message["status"], True
                message["headers"] = _with_headers(message["headers"], self._settings.https)
            await send(message)

        self._under_way += 1
        try:
            problem = self._refusal(scope)
            if problem is not None:
                await problem.response()(scope, receive, answer)
                return
            body = _Body(receive, self._settings.limits.body_bytes)
            try:
                await self._app(scope, body.receive, answer)
            except _TooLarge:
                if not begun:
                    problem = Problem(413, _too_large(self._settings))
                    await problem.response()(scope, receive, answer)
        finally:
            self._under_way -= 1
            route = getattr(scope.get("route"), "path", "none")
            seconds = time.perf_counter() - started
            self._metrics.answered(scope["method"], route, status, seconds)
            _log.info(
                "request",
                extra={
                    "fields": {
                        "method": scope["method"],
                        "route": route,
                        "status": status,
                        "ms": round(1000 * seconds, 1),
                        "by": scope.get("state", {}).get("by", ""),
                    }
                },
            )

    def _refusal(self, scope: Scope) -> Problem | None:
        limits = self._settings.limits
        if self._under_way > limits.requests:
            return Problem(
                429, f"More than {limits.requests} requests are under way.", {"Retry-After": "1"}
            )
        headers = dict(scope["headers"])
        host = headers.get(b"host", b"").decode("latin-1").lower()
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
        if (
            not is_loopback(name)
            and name not in self._settings.hosts
            and "*" not in (self._settings.hosts)
        ):  # the name of another site could point here (DNS rebinding)
            return Problem(
                421, "The service is not known by that name; add it to hosts in service.toml."
            )
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > limits.body_bytes:
            return Problem(413, _too_large(self._settings), {"Connection": "close"})
        return None


class _TooLarge(Exception):
    pass


class _Body:
    """A body, as far as it is within the limit."""

    def __init__(self, receive: Receive, most: int) -> None:
        self._receive = receive
        self._left = most

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._left -= len(message.get("body", b""))
            if self._left < 0:
                raise _TooLarge
        return message


def _too_large(settings: ServiceSettings) -> str:
    return f"A body has at most {settings.limits.body_bytes} bytes; send it in parts."


def _with_headers(given: Any, https: bool) -> list[tuple[bytes, bytes]]:
    """Headers of an answer, with those that every answer has and does not set itself."""
    headers = list(given)
    names = {name.lower() for name, _ in headers}
    headers += [added for added in _ADDED if added[0] not in names]
    if https and _HTTPS[0] not in names:
        headers.append(_HTTPS)
    return headers
