# SPDX-License-Identifier: BSD-3-Clause
"""Numbers in sentences."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """``1 row``, ``1,000 rows``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
