# SPDX-License-Identifier: BSD-3-Clause
"""The models of one folder, opened to be served. One process serves a folder at a time."""

from __future__ import annotations

import logging
import os
import re
from contextlib import suppress
from typing import Any, Final

from adiabat.errors import StoreError
from adiabat.service.jobs import JobBoard
from adiabat.service.keys import KeyRing
from adiabat.service.problems import Problem
from adiabat.service.served import ServedModel
from adiabat.service.settings import OWN, ServiceSettings
from adiabat.store import open_store
from adiabat.store.folder import DATABASE

_LOCK: Final = "serving"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_log = logging.getLogger("adiabat.service")


class Desk:
    """What is served: models by name, keys, jobs.

    Parameters
    ----------
    folder : str
        A model, or a folder of models.
    settings : ServiceSettings, optional
        By default those of the folder's own file.
    **keys
        `signing_key`, `public_key`, `suppression_key`, `allow_unsigned`, as in `open_store`.
    """

    def __init__(self, folder: str, settings: ServiceSettings | None = None, **keys: Any) -> None:
        self.folder = os.path.abspath(folder)
        if not os.path.isdir(self.folder):
            raise StoreError(f"{folder!r} is not a folder; make a model in it with adiabat init")
        self.settings = settings or ServiceSettings.read(self.folder)
        self.models: dict[str, ServedModel] = {}
        self._lock = _lock(self.folder)
        try:
            self.keys = KeyRing(self.folder)
            for name, path in _stores(self.folder).items():
                store = open_store(path, **keys)
                self.models[name] = ServedModel(name, store, self.settings.limits.queue)
        except BaseException:
            self._close_models()
            os.close(self._lock)
            raise
        self.jobs = JobBoard(self.settings.limits.jobs)
        if not self.models:
            _log.warning("no models", extra={"fields": {}})

    def model(self, name: str) -> ServedModel:
        """A model by name; Problem 404 if there is none."""
        found = self.models.get(name)
        if found is None:
            raise Problem(404, "There is no such model, or the key is not for it.")
        return found

    def start(self) -> None:
        """Have the writers of all models begin."""
        for model in self.models.values():
            model.start()

    def refresh(self) -> None:
        """Take notice of what other processes have changed."""
        for model in self.models.values():
            model.refresh()

    def close(self) -> None:
        """Finish what is under way, and release everything."""
        self.jobs.close()
        self._close_models()
        os.close(self._lock)

    def _close_models(self) -> None:
        for model in self.models.values():
            model.close()


def _stores(folder: str) -> dict[str, str]:
    """Paths of the stores of a folder, by the name under which they are served."""
    if os.path.isfile(os.path.join(folder, DATABASE)):
        name = os.path.basename(folder)
        return {name if _NAME.fullmatch(name) else "model": folder}
    found = {}
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        if not os.path.isfile(os.path.join(path, DATABASE)) or os.path.islink(path):
            continue
        if _NAME.fullmatch(name):
            found[name] = path
        else:
            _log.warning("a model is passed over: its name has other than letters, digits and ._-")
    return found


def _lock(folder: str) -> int:
    """A lock that ends with the process; StoreError if another process serves the folder."""
    own = os.path.join(folder, OWN)
    try:
        with suppress(FileExistsError):
            os.mkdir(own, 0o700)
        descriptor = os.open(os.path.join(own, _LOCK), os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise StoreError(
            f"{folder!r} cannot be written ({error.strerror}); check the permissions of the folder"
        ) from error
    try:
        import fcntl
    except ImportError:  # Windows: the stores' own locks must do
        return descriptor
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise StoreError(f"{folder!r} is being served by another process; stop it first") from error
    return descriptor
