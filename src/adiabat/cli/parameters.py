# SPDX-License-Identifier: BSD-3-Clause
"""Parameters of estimators as they are written on the command line."""

from __future__ import annotations


def as_parameter(text: str | None) -> float | str | None:
    """A number if it is one, else the text."""
    try:
        return None if text is None else float(text)
    except ValueError:
        return text
