# SPDX-License-Identifier: BSD-3-Clause
"""What the commands say: sentences for people, JSON for scripts, exit codes for both.

Results go to standard output, all else (progress, errors) to standard error, so that ``--json``
can be piped.
"""

from __future__ import annotations

import json
import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, NoReturn

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from adiabat.errors import (
    AdiabatError,
    IdError,
    InputFileError,
    NotOptimalError,
    StoreDamagedError,
    StoreError,
    StoreLockedError,
    StoreUpgradeWarning,
)
from adiabat.logs import PROGRESS, logger
from adiabat.store.lock import WAITING
from adiabat.store.words import counted, printable

#: Exit codes, as documented in docs/command_line.md.
OK: Final = 0
CHECK_FAILED: Final = 1
USAGE: Final = 2
BAD_INPUT: Final = 3
STORE: Final = 4
LOCKED: Final = 5
NOT_OPTIMAL: Final = 6
INTERRUPTED: Final = 130

_CODES: Final[tuple[tuple[type[BaseException], int], ...]] = (
    (StoreLockedError, LOCKED),
    (StoreDamagedError, STORE),
    (StoreError, STORE),
    (NotOptimalError, NOT_OPTIMAL),
    (IdError, BAD_INPUT),
    (InputFileError, BAD_INPUT),
    (AdiabatError, BAD_INPUT),
    (ImportError, USAGE),
    (ValueError, BAD_INPUT),
    (TypeError, BAD_INPUT),
    (OSError, STORE),
    (MemoryError, STORE),
)

out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)


def show(result: dict[str, Any], as_json: bool, lines: list[str]) -> None:
    """Print a result: its fields as one JSON object, or the lines."""
    if as_json:
        sys.stdout.write(json.dumps(result) + "\n")  # in ASCII, whatever the terminal takes
        return
    for line in lines:
        out.print(foreign(line))


def foreign(value: Any) -> Text:
    """Text that may be a stranger's, for the terminal: never markup, never a control sequence."""
    return Text(printable(value))


_progress: Progress | None = None


def announce(sentence: str) -> None:
    """Say what is being done, on a terminal; what is being waited for, always."""
    if _progress is not None:
        _progress.update(_progress.task_ids[0], description=printable(sentence))
    elif sentence.startswith(WAITING):
        err.print(foreign(sentence), style="dim")


def advance(done: int, total: int) -> None:
    """How far the work is, on a terminal."""
    if _progress is not None:
        _progress.update(_progress.task_ids[0], completed=done, total=total)


class _Announcer(logging.Handler):
    """What long work says of itself, on a terminal."""

    def emit(self, record: logging.LogRecord) -> None:
        announce(record.getMessage())


@contextmanager
def _announcing_progress() -> Iterator[None]:
    """Say on a terminal how far an update is."""
    log, announcer = logger(PROGRESS), _Announcer()
    level = log.level
    log.addHandler(announcer)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(announcer)
        log.setLevel(level)


@contextmanager
def _noting_upgrades() -> Iterator[None]:
    """Say on standard error that a store is brought up to date, as an error would be said."""
    shown = warnings.showwarning

    def show_upgrade(message: Any, category: Any, *rest: Any, **more: Any) -> None:
        if issubclass(category, StoreUpgradeWarning):
            err.print(foreign(f"adiabat: {message}"), style="yellow")
        else:
            shown(message, category, *rest, **more)

    with warnings.catch_warnings():
        warnings.simplefilter("always", StoreUpgradeWarning)
        warnings.showwarning = show_upgrade
        yield


@contextmanager
def working(what: str, as_json: bool = False) -> Iterator[None]:
    """Show that work is under way, on a terminal; turn errors into a sentence and an exit code."""
    global _progress
    try:
        if err.is_terminal:
            columns = (
                SpinnerColumn(),
                TextColumn("{task.description}", markup=False),
                BarColumn(bar_width=30),
                TimeElapsedColumn(),
            )
            with (
                _noting_upgrades(),
                _announcing_progress(),
                Progress(*columns, console=err, transient=True) as _progress,
            ):
                _progress.add_task(printable(what), total=None)
                yield
        else:
            with _noting_upgrades():
                yield
    except KeyboardInterrupt:
        _fail("interrupted; the store is as it was after its last acknowledged operation",
              INTERRUPTED, as_json)  # fmt: skip
    except tuple(kind for kind, _ in _CODES) as error:
        code = next(code for kind, code in _CODES if isinstance(error, kind))
        _fail(str(error), code, as_json)
    finally:
        _progress = None


def _fail(message: str, code: int, as_json: bool) -> NoReturn:
    if as_json:
        sys.stdout.write(json.dumps({"error": message, "exit_code": code}) + "\n")
    err.print(foreign(f"adiabat: {message}"), style="red")
    raise typer.Exit(code)


def certificate_sentence(certificate: dict[str, Any] | None) -> str:
    """A certificate in a sentence."""
    if certificate is None:
        return "The model has no rows."
    held = certificate["held_fixed"]
    fixed = f", holding {', '.join(f'{k}={_brief(v)}' for k, v in held.items())}" if held else ""
    verdict = "the optimum" if certificate["ok"] else "NOT the optimum"
    return (
        f"The model is {verdict} on its {counted(certificate['n_samples'], 'row')} "
        f"(residual {certificate['residual']:.1e}, {certificate['tol']:.1e} allowed){fixed}."
    )


def _brief(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
