# SPDX-License-Identifier: BSD-3-Clause
"""Faults put into a running package: an exception at a call, Ctrl-C at a line."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import adiabat

PACKAGE = Path(adiabat.__file__).parent
NEVER = 10**9


@contextmanager
def failing(owner: Any, name: str, k: int, error: BaseException) -> Iterator[list[int]]:
    """Let the k-th call of a function of the package raise; yields the count of calls."""
    original, calls = getattr(owner, name), [0]

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        calls[0] += 1
        if calls[0] == k:
            raise error
        return original(*args, **kwargs)

    setattr(owner, name, wrapped)
    try:
        yield calls
    finally:
        setattr(owner, name, original)


def injected(k: int) -> BaseException:
    """Ctrl-C or no memory, in turn."""
    return KeyboardInterrupt() if k % 2 else MemoryError("injected")


@contextmanager
def interruptible() -> Iterator[None]:
    """Ctrl-C as Python has it: started in the background, a program ignores it."""
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


@contextmanager
def interrupt_at_line(
    k: int, within: Path = PACKAGE, other_than: tuple[str, ...] = ()
) -> Iterator[list[int]]:
    """Ctrl-C, by a true signal, when the k-th line of a folder is about to run; yields the count.

    `other_than` are names of files that are passed over. A tracer can come between the end of a
    `with` block and the release of its lock, which a signal cannot.
    """
    lines, folder = [0], f"{within}/"

    def in_frame(frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            lines[0] += 1
            if lines[0] == k:
                signal.raise_signal(signal.SIGINT)
        return in_frame

    def on_call(frame: FrameType, event: str, argument: Any) -> Any:
        file = Path(frame.f_code.co_filename).as_posix()
        counted = file.startswith(folder) and not file.endswith(other_than)
        return in_frame if counted else None

    previous = sys.gettrace()
    with interruptible():
        sys.settrace(on_call)
        try:
            yield lines
        finally:
            sys.settrace(previous)
