# SPDX-License-Identifier: BSD-3-Clause
"""One writer at a time, and a lock that says who it is.

The lock is the operating system's, on a file of the folder, so it ends with the process that holds
it, however that ends. The file says which process and operation; never an id or a path.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Final

from adiabat.errors import StoreError, StoreLockedError
from adiabat.store.folder import is_own, open_lock

#: How the sentence begins that says who is being waited for.
WAITING: Final = "waiting for"
_PAUSE_SECONDS: Final = 0.02
_HELD_BYTE: Final = 1 << 30  # Windows locks bytes, not files: one far behind the text


@contextmanager
def writing(
    folder: str,
    operation: str,
    wait: float,
    announce: Callable[[str], None] | None = None,
) -> Iterator[None]:
    """Hold the lock of a store; wait up to `wait` seconds for another process."""
    descriptor = open_lock(folder)
    try:
        deadline = time.monotonic() + wait
        told = False
        while not _taken(descriptor):
            if time.monotonic() >= deadline:
                raise StoreLockedError(
                    f"{folder!r} is being changed by {_holder(descriptor)}; nothing was changed. "
                    f"Try again when it is done, or wait longer than {wait:g} seconds"
                )
            if announce is not None and not told:
                announce(f"{WAITING} {_holder(descriptor)}")
                told = True
            time.sleep(_PAUSE_SECONDS)
        _say(descriptor, operation)
        try:
            yield
        finally:
            _say(descriptor, None)
    finally:
        os.close(descriptor)


def _say(descriptor: int, operation: str | None) -> None:
    """Write who holds the lock, or with None that nobody does."""
    text = "" if operation is None else json.dumps(
        {
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "operation": operation,
            "since": datetime.now(UTC).isoformat(timespec="seconds"),
        }
    )  # fmt: skip
    # Only for readers of the file: the lock holds without it.
    with suppress(OSError):
        if is_own(descriptor):
            os.ftruncate(descriptor, 0)
            os.lseek(descriptor, 0, os.SEEK_SET)
            os.write(descriptor, text.encode())


def _holder(descriptor: int) -> str:
    try:
        os.lseek(descriptor, 0, os.SEEK_SET)
        said = json.loads(os.read(descriptor, 4096))
        return (
            f"process {said['pid']} on {said['host']} ({said['operation']}, since {said['since']})"
        )
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"


if sys.platform == "win32":
    import msvcrt

    def _taken(descriptor: int) -> bool:
        try:
            os.lseek(descriptor, _HELD_BYTE, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
else:
    import fcntl

    def _taken(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            raise StoreError(
                f"the file system of the store cannot lock files ({error.strerror}), and without "
                "locks two processes could write at once; nothing was changed. Put the store on a "
                "local disk"
            ) from error
        return True
