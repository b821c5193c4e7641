# SPDX-License-Identifier: BSD-3-Clause
"""Numbers and foreign text in sentences."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable
from typing import Any


def counted(count: int, noun: str) -> str:
    """``1 row``, ``1,000 rows``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def printable(value: Any) -> str:
    r"""Text on one line that no terminal, page or file takes for more than text.

    Control characters, marks that change the direction of writing, ends of lines and halves of
    characters stand as escapes, such as ``\x1b``.
    """
    text = str(value)
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or unicodedata.category(char) == "Zs" else _escaped(char)
        for char in text
    )


def _escaped(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The known name that is nearest to one that is not, as the end of a sentence; or nothing."""
    lowered = {item.lower(): item for item in known}
    near = difflib.get_close_matches(name.lower(), list(lowered), 1)
    return f"; did you mean {lowered[near[0]]!r}?" if near else ""
