# SPDX-License-Identifier: BSD-3-Clause
"""The files of a store's folder, and files that are written for others.

A folder may come from somebody else. Nothing in it is opened through a link, so that working on a
store changes no file outside of it. Files that hold rows are for the user alone. Those that are
being written stand in ``tmp`` until the log knows of them; what a process that was killed left
there goes when the store is next opened.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from adiabat.errors import StoreDamagedError, StoreError

DATABASE: Final = "store.sqlite"
LOCK: Final = "lock"
TEMPORARY: Final = "tmp"

_FORMER: Final = "store-before-schema-"
_JOURNAL: Final = f"{DATABASE}-journal"
# SQLite's files of another way of committing; ours never has them.
_FOREIGN: Final = (f"{DATABASE}-wal", f"{DATABASE}-shm")
_JOURNAL_MAGIC: Final = bytes.fromhex("d9d505f920a163d7")
_NOTE: Final = ".beside"
_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0)


def require_plain_files(folder: str) -> None:
    """Refuse a folder whose files are links, or make SQLite reach for files outside of it.

    The database itself is not opened: closing it again would release the locks that SQLite holds
    on it in this process.
    """
    for name in (DATABASE, _JOURNAL, LOCK, *_FOREIGN, TEMPORARY):
        path = os.path.join(folder, name)
        try:
            mode = os.lstat(path).st_mode
        except OSError:
            continue
        wanted = stat.S_ISDIR if name == TEMPORARY else stat.S_ISREG
        if not wanted(mode) or name in _FOREIGN:
            raise StoreDamagedError(
                f"{folder!r} holds {name!r}, which is a link or not of a store, and could reach "
                "files outside the folder; restore the store from a copy"
            )
    try:
        with suppress(FileNotFoundError), open(os.path.join(folder, _JOURNAL), "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - len(_JOURNAL_MAGIC)))
            ending = file.read()
            # Such a journal names a file that SQLite would delete once it has rolled back.
            if ending == _JOURNAL_MAGIC:
                raise StoreDamagedError(
                    f"{folder!r} holds a journal that names a file outside of it; restore a copy"
                )
    except OSError as error:
        raise StoreError(
            f"{folder!r} cannot be read ({error.strerror}); check the permissions of the folder"
        ) from error


def former_path(folder: str, version: int) -> str:
    """Where the database is kept as it was before its schema changed."""
    return os.path.join(folder, f"{_FORMER}{version}.sqlite")


def remove_former(folder: str) -> None:
    """Remove copies from before a change of schema: they hold rows that are erased now."""
    for name in os.listdir(folder):
        if re.fullmatch(rf"{re.escape(_FORMER)}\d+\.sqlite", name):
            os.unlink(os.path.join(folder, name))


def open_lock(folder: str) -> int:
    """A descriptor of the lock file, which is made if it is not there; never through a link."""
    path = os.path.join(folder, LOCK)
    flags = os.O_RDWR | _NO_LINK | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        try:
            descriptor = os.open(path, flags)
        except FileNotFoundError:
            with suppress(FileExistsError):  # another process was faster
                os.close(os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o600))
            descriptor = os.open(path, flags)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise StoreDamagedError(
                f"{folder!r} holds {LOCK!r} as a link to another file; remove it"
            ) from error
        raise StoreError(
            f"{folder!r} cannot be written ({error.strerror}); check the permissions of the folder"
        ) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise StoreDamagedError(f"{folder!r} holds {LOCK!r}, which is no file; remove it")
    return descriptor


def is_own(descriptor: int) -> bool:
    """Whether a file has one name only, so that writing to it changes no other."""
    return os.fstat(descriptor).st_nlink == 1


class Draft:
    """A file in ``tmp`` that takes its place outside once it is complete."""

    def __init__(self, folder: str) -> None:
        self._folder = os.path.join(folder, TEMPORARY)
        self._token = secrets.token_hex(8)
        self.path = os.path.join(self._folder, self._token)

    def sync(self) -> None:
        """Have what was written on disk."""
        _sync(self.path)

    def place(self, target: str) -> None:
        """Move the file to its place; what is there keeps its permissions."""
        with suppress(FileNotFoundError):
            os.chmod(self.path, stat.S_IMODE(os.stat(target).st_mode))
        try:
            os.replace(self.path, target)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            self._copy(target)
        _sync(os.path.dirname(target))

    def _copy(self, target: str) -> None:
        """Move the file to another file system: a copy beside its place, then the place."""
        beside = os.path.join(os.path.dirname(target), f".adiabat-{self._token}.tmp")
        with open(self.path + _NOTE, "w", encoding="utf-8", errors="surrogateescape") as note:
            note.write(beside)
        _sync(self.path + _NOTE)
        _sync(self._folder)
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK, 0o600)
        try:
            with open(self.path, "rb") as source, open(descriptor, "wb") as file:
                shutil.copyfileobj(source, file)
                file.flush()
                os.fsync(file.fileno())
            shutil.copymode(self.path, beside)
            os.replace(beside, target)
        except BaseException:
            with suppress(OSError):
                os.unlink(beside)
            raise


@contextmanager
def drafting(folder: str) -> Iterator[Draft]:
    """A draft that vanishes at the end of the block, unless it was placed. Under the lock only."""
    draft = Draft(folder)
    with suppress(FileExistsError):
        os.mkdir(os.path.join(folder, TEMPORARY), 0o700)
    require_plain_files(folder)
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK
        os.close(os.open(draft.path, flags, 0o600))
        yield draft
    finally:
        clean(folder)


def needs_cleaning(folder: str) -> bool:
    """Whether there is anything that a process may have left behind."""
    return any(os.path.lexists(os.path.join(folder, name)) for name in (TEMPORARY, _JOURNAL))


def clean(folder: str) -> None:
    """Remove all drafts, and copies of them that were on their way. Under the lock only."""
    temporary = os.path.join(folder, TEMPORARY)
    with suppress(OSError):
        for name in os.listdir(temporary):
            if name.endswith(_NOTE):
                _remove_copy(os.path.join(temporary, name), name.removesuffix(_NOTE))
            with suppress(OSError):
                os.unlink(os.path.join(temporary, name))
        os.rmdir(temporary)


def _remove_copy(note: str, token: str) -> None:
    with open(note, encoding="utf-8", errors="surrogateescape") as file:
        beside = file.read(1 << 16)
    # A note may be a stranger's: only what is named after it is ours to remove.
    if os.path.basename(beside) == f".adiabat-{token}.tmp":
        with suppress(OSError, ValueError):
            os.unlink(beside)


def _sync(path: str) -> None:
    if os.name != "posix" and os.path.isdir(path):
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
