# SPDX-License-Identifier: BSD-3-Clause
"""Tables: a data frame where pandas is installed, a dictionary of arrays where it is not."""

from __future__ import annotations

from typing import Any


def as_frame(columns: dict[str, Any]) -> Any:
    """Columns of one length as a `pandas.DataFrame`, or as they are without pandas."""
    try:
        from pandas import DataFrame
    except ImportError:
        return columns
    return DataFrame(columns)
