# SPDX-License-Identifier: BSD-3-Clause
"""Keys: who may do what with which model.

A key is shown once, when it is made. The folder keeps its SHA-256: 32 random bytes cannot be
guessed from it, so nothing slower is needed. It is looked up by its public part and compared in
constant time.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
import threading
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Final

from adiabat.errors import StoreError
from adiabat.service.settings import OWN

#: What a key can allow; admin allows everything.
SCOPES: Final = ("predict", "review", "erase", "audit", "admin")
FILE: Final = "keys.json"
_PREFIX: Final = "adiabat"
_FORM: Final = re.compile(rf"{_PREFIX}_([0-9a-f]{{12}})_([A-Za-z0-9_-]{{43}})")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._@-]{0,63}")
_NOTHING: Final = hashlib.sha256(b"").hexdigest()


@dataclass(frozen=True)
class Key:
    """A key without its secret.

    Attributes
    ----------
    name : str
        Whose it is; the log says it.
    id : str
        Its public part.
    digest : str
        SHA-256 of the whole.
    scopes : tuple of str
    models : tuple of str
        For which models; empty for all.
    created : str
    expires : str or None
        When it ends, in ISO 8601.
    """

    name: str
    id: str
    digest: str
    scopes: tuple[str, ...]
    models: tuple[str, ...]
    created: str
    expires: str | None = None

    def is_over(self) -> bool:
        """Whether it has expired."""
        return self.expires is not None and datetime.fromisoformat(self.expires) <= datetime.now(
            UTC
        )

    def allows(self, scope: str) -> bool:
        """Whether it has the scope."""
        return scope in self.scopes or "admin" in self.scopes


class KeyRing:
    """The keys of a folder, read again when their file has changed."""

    def __init__(self, folder: str) -> None:
        self._path = os.path.join(folder, OWN, FILE)
        self._keys: dict[str, Key] = {}
        self._seen: tuple[int, int, int] | None = None
        self._lock = threading.Lock()
        self.keys()

    def keys(self) -> list[Key]:
        """All keys, those that are over too."""
        with self._lock:
            try:
                found = os.stat(self._path)
                seen = (found.st_mtime_ns, found.st_size, found.st_ino)
            except FileNotFoundError:
                self._keys, self._seen = {}, None
                return []
            if seen != self._seen:
                self._keys = {key.id: key for key in _read(self._path)}
                self._seen = seen
            return list(self._keys.values())

    def find(self, text: str) -> Key | None:
        """The key that somebody shows; None if there is no such key, or it is over."""
        match = _FORM.fullmatch(text)
        self.keys()
        key = self._keys.get(match[1]) if match else None
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        # As long whether there is such a key or not.
        same = hmac.compare_digest(digest, key.digest if key else _NOTHING)
        return key if key is not None and same and not key.is_over() else None

    def get(self, id: str) -> Key | None:
        """The key with a public part; None if it is gone, or over."""
        self.keys()
        key = self._keys.get(id)
        return None if key is None or key.is_over() else key

    def add(
        self,
        name: str,
        scopes: Iterable[str],
        models: Iterable[str] = (),
        expires: datetime | None = None,
    ) -> tuple[Key, str]:
        """A new key, and its text, which is kept nowhere."""
        if not _NAME.fullmatch(name):
            raise ValueError(f"name={name!r} must be 1 to 64 letters, digits, spaces or ._@-")
        chosen = tuple(dict.fromkeys(scopes))
        unknown = [scope for scope in chosen if scope not in SCOPES]
        if unknown or not chosen:
            said = repr(unknown[0]) if unknown else "nothing"
            raise ValueError(f"scopes has {said}; choose from {', '.join(SCOPES)}")
        if any(key.name == name for key in self.keys()):
            raise ValueError(f"there is a key {name!r} already; remove it, or choose another name")
        if expires is not None and expires.utcoffset() is None:
            expires = expires.replace(tzinfo=UTC)
        if expires is not None and expires <= datetime.now(UTC):
            raise ValueError(f"expires={expires.isoformat()} is past; give a time to come")
        id = secrets.token_hex(6)
        text = f"{_PREFIX}_{id}_{secrets.token_urlsafe(32)}"
        key = Key(
            name=name,
            id=id,
            digest=hashlib.sha256(text.encode()).hexdigest(),
            scopes=chosen,
            models=tuple(models),
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            expires=None if expires is None else expires.isoformat(),
        )
        self._write([*self.keys(), key])
        return key, text

    def remove(self, name: str) -> Key:
        """Take a key away; its sessions end with it."""
        kept = [key for key in self.keys() if key.name != name]
        gone = [key for key in self.keys() if key.name == name]
        if not gone:
            known = ", ".join(repr(key.name) for key in kept) or "none"
            raise ValueError(f"there is no key {name!r}; there are {known}")
        self._write(kept)
        return gone[0]

    def _write(self, keys: list[Key]) -> None:
        """All of them or none, for the user alone."""
        folder = os.path.dirname(self._path)
        with suppress(FileExistsError):
            os.mkdir(folder, 0o700)
        beside = f"{self._path}.{secrets.token_hex(4)}"
        try:
            descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(descriptor, "w", encoding="utf-8") as file:
                json.dump({"version": 1, "keys": [asdict(key) for key in keys]}, file, indent=1)
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, self._path)
        except BaseException:
            with suppress(OSError):
                os.unlink(beside)
            raise


def _read(path: str) -> list[Key]:
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
        return [_key(item) for item in found["keys"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(
            f"the keys in {path!r} cannot be read ({error}); restore the file, or remove it and "
            "make new keys"
        ) from error


def _key(item: dict[str, Any]) -> Key:
    key = Key(**{**item, "scopes": tuple(item["scopes"]), "models": tuple(item["models"])})
    if not all(isinstance(part, str) for part in (key.name, key.id, key.digest)):
        raise ValueError("a key")
    key.is_over()
    return key
