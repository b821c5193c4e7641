# SPDX-License-Identifier: BSD-3-Clause
"""Who asks, and what that one may do.

Programs show a key (``Authorization: Bearer``). People have a session, begun with a key or by a
proxy that has signed them in. Where the folder has no keys at all, whoever is on this computer
may do everything, and nobody else gets in.
"""

from __future__ import annotations

import hmac
import ipaddress
import secrets
import threading
import time
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from fastapi import Request

from adiabat.service.desk import Desk
from adiabat.service.keys import SCOPES, Key
from adiabat.service.problems import Problem
from adiabat.service.served import ServedModel

COOKIE: Final = "adiabat_session"
#: What a proxy sends: its secret, whom it has signed in, and what that one may do.
PROXY_SECRET, PROXY_USER, PROXY_SCOPES = (
    "x-adiabat-proxy-secret", "x-adiabat-user", "x-adiabat-scopes",
)  # fmt: skip
_IDLE_SECONDS: Final = 8 * 3600.0
_MOST_SESSIONS: Final = 10_000
_ASK: Final = {"WWW-Authenticate": "Bearer"}


@dataclass(frozen=True)
class Principal:
    """Somebody who asks: a name, scopes, and models (None for all)."""

    name: str
    scopes: frozenset[str]
    models: frozenset[str] | None = None

    def may(self, scope: str) -> bool:
        """Whether the scope is allowed."""
        return scope in self.scopes or "admin" in self.scopes

    def sees(self, model: str) -> bool:
        """Whether the model is among those allowed."""
        return self.models is None or model in self.models


ANYBODY: Final = Principal("this machine", frozenset(SCOPES))


def of_key(key: Key) -> Principal:
    """The holder of a key."""
    return Principal(key.name, frozenset(key.scopes), frozenset(key.models) or None)


@dataclass
class Session:
    """A visit of somebody's browser."""

    token: str
    csrf: str
    key: str | None  # the public part of the key it was begun with
    used: float = field(default_factory=time.monotonic)


class Sessions:
    """Sessions in memory: they end with the process, with their key, or when not used."""

    def __init__(self) -> None:
        self._held: OrderedDict[str, Session] = OrderedDict()
        self._lock = threading.Lock()

    def begin(self, key: str | None) -> Session:
        """A new session."""
        made = Session(secrets.token_urlsafe(32), secrets.token_urlsafe(32), key)
        with self._lock:
            self._held[made.token] = made
            while len(self._held) > _MOST_SESSIONS:
                self._held.popitem(last=False)
        return made

    def get(self, token: str | None) -> Session | None:
        """The session of a cookie."""
        with self._lock:
            found = None if token is None else self._held.get(token)
            if found is None:
                return None
            if time.monotonic() - found.used > _IDLE_SECONDS:
                del self._held[found.token]
                return None
            found.used = time.monotonic()
            return found

    def end(self, token: str) -> None:
        """Forget a session."""
        with self._lock:
            self._held.pop(token, None)


class Gate:
    """Tells who a request is from."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.sessions = Sessions()
        self._recent: dict[str, deque[float]] = {}
        self._lock = threading.Lock()

    def program(self, request: Request) -> Principal:
        """Who calls the interface for programs; Problem 401 if that is not known."""
        said = request.headers.get("authorization")
        if said is not None:
            scheme, _, text = said.partition(" ")
            key = self.desk.keys.find(text.strip()) if scheme.lower() == "bearer" else None
            if key is None:
                raise Problem(401, "The key is not known, or is over.", _ASK)
            return self._counted(of_key(key))
        if self.desk.keys.keys():
            raise Problem(401, "Send a key: Authorization: Bearer …", _ASK)
        return self._counted(self._anybody(request))

    def person(self, request: Request) -> tuple[Principal, Session] | None:
        """Who looks at a page, and the session; None for somebody who has to sign in."""
        session = self.sessions.get(request.cookies.get(COOKIE))
        proxied = self._proxied(request)
        if proxied is not None:
            return proxied, session or self.sessions.begin(None)
        if not self.desk.keys.keys():
            return self._anybody(request), session or self.sessions.begin(None)
        key = self.desk.keys.get(session.key) if session and session.key else None
        if key is None or session is None:
            return None
        return self._counted(of_key(key)), session

    def sign_in(self, text: str) -> Session | None:
        """A session for whoever shows a key; None if there is no such key."""
        key = self.desk.keys.find(text.strip())
        return None if key is None else self.sessions.begin(key.id)

    def model(self, name: str, who: Principal) -> ServedModel:
        """A model that somebody may see; else Problem 404, whether it is there or not."""
        return self.desk.model(name if who.sees(name) else "")

    def _proxied(self, request: Request) -> Principal | None:
        secret = self.desk.settings.proxy_secret
        given = request.headers.get(PROXY_SECRET)
        if secret is None or given is None:
            return None
        if not hmac.compare_digest(secret.encode(), given.encode("latin-1")):
            raise Problem(401, "The proxy's secret is not the one of the settings.")
        name = request.headers.get(PROXY_USER, "").strip()
        scopes = request.headers.get(PROXY_SCOPES, "").replace(",", " ").split()
        if not name:
            return None
        return Principal(name[:64], frozenset(scopes) & frozenset(SCOPES))

    def _anybody(self, request: Request) -> Principal:
        if not is_loopback(request.client.host if request.client else ""):
            raise Problem(401, "There are no keys, so only this machine gets in.", _ASK)
        # A page of another site must not act for whoever looks at it.
        site = request.headers.get("sec-fetch-site", "same-origin")
        if site not in ("same-origin", "none") and request.method not in ("GET", "HEAD"):
            raise Problem(403, "The request comes from a page of another site.")
        return ANYBODY

    def _counted(self, who: Principal) -> Principal:
        """Refuse who has asked too often within a minute."""
        most = self.desk.settings.limits.per_minute
        if most:
            now = time.monotonic()
            with self._lock:
                recent = self._recent.setdefault(who.name, deque())
                while recent and recent[0] < now - 60.0:
                    recent.popleft()
                if len(recent) >= most:
                    wait = max(1, round(60.0 - (now - recent[0])))
                    raise Problem(
                        429, f"More than {most} requests in a minute.", {"Retry-After": str(wait)}
                    )
                recent.append(now)
        return who


@lru_cache(maxsize=1024)
def is_loopback(host: str) -> bool:
    """Whether an address, or a name, is this computer's own."""
    if host in ("localhost", "testclient"):
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
