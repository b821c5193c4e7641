# SPDX-License-Identifier: BSD-3-Clause
"""The settings of a service: limits, and what stands in front of it. A file ``service.toml``."""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass, field, fields
from typing import Any, Final

from adiabat.errors import StoreError

#: The file of settings, in the folder that is served.
FILE: Final = "service.toml"
#: The service's own files, beside the models.
OWN: Final = ".service"


@dataclass(frozen=True)
class Limits:
    """What a request may cost; what is above is refused.

    Attributes
    ----------
    body_bytes, rows, columns, id_length : int
        Of one request.
    queue : int
        Changes of one model that may wait.
    requests : int
        Requests that may be under way at once.
    jobs : int
        Long pieces of work that may wait or run.
    seconds : float
        How long a request waits for a change before it is told to come back.
    per_minute : int
        Requests of one key in a minute; 0 for any number.
    """

    body_bytes: int = 8_000_000
    rows: int = 10_000
    columns: int = 10_000
    id_length: int = 200
    queue: int = 64
    requests: int = 256
    jobs: int = 8
    seconds: float = 30.0
    per_minute: int = 0


@dataclass(frozen=True)
class ServiceSettings:
    """Limits, names by which the service is called, and the secret of a proxy in front of it.

    Attributes
    ----------
    limits : Limits
    hosts : tuple of str
        Names that a request may call the service by, besides those of the loopback address.
    https : bool
        Whether people reach it by HTTPS, so that cookies are sent over nothing else.
    proxy_secret : str or None
        What a proxy must send with the name of the user that it has signed in.
    """

    limits: Limits = field(default_factory=Limits)
    hosts: tuple[str, ...] = ()
    https: bool = False
    proxy_secret: str | None = None

    @classmethod
    def read(cls, folder: str) -> ServiceSettings:
        """The settings of a folder; the defaults if it has no such file."""
        path = os.path.join(folder, FILE)
        try:
            with open(path, "rb") as file:
                found = tomllib.load(file)
        except FileNotFoundError:
            return cls()
        except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise StoreError(f"{path!r} cannot be read ({error}); correct it") from error
        known = {"limits": dict, "hosts": list, "https": bool, "proxy_secret_file": str}
        for name, value in found.items():
            if name not in known or not isinstance(value, known[name]):
                raise StoreError(f"{path!r} has {name} = {value!r}, which is none of its settings")
        secret = None
        if "proxy_secret_file" in found:
            secret = _read_secret(os.path.join(folder, found["proxy_secret_file"]))
        return cls(
            limits=_limits(path, found.get("limits", {})),
            hosts=tuple(str(name).lower() for name in found.get("hosts", ())),
            https=found.get("https", False),
            proxy_secret=secret,
        )


_SHORTEST_SECRET: Final = 32


def _read_secret(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            secret = file.read(4096).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise StoreError(f"the proxy's secret {path!r} cannot be read ({error})") from error
    if len(secret) < _SHORTEST_SECRET:
        raise StoreError(
            f"the proxy's secret {path!r} has {len(secret)} characters, and {_SHORTEST_SECRET} are "
            "needed; make one with openssl rand -hex 32"
        )
    return secret


def _limits(path: str, given: dict[str, Any]) -> Limits:
    known: dict[str, Any] = {item.name: type(item.default) for item in fields(Limits)}
    for name, value in given.items():
        if name not in known:
            raise StoreError(f"{path!r} has the limit {name}; there are {', '.join(known)}")
        if isinstance(value, bool) or not isinstance(value, (int, known[name])) or value < 0:
            raise StoreError(f"{path!r} has {name} = {value!r}, which is no limit; give a number")
        if value == 0 and name != "per_minute":
            raise StoreError(f"{path!r} has {name} = 0, which refuses everything; leave it out")
    return Limits(**given)
