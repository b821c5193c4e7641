# SPDX-License-Identifier: BSD-3-Clause
"""How much memory a kernel machine will take, said before it is taken.

What grows is the kernel columns: a column of n values for each sample that carries weight, and half
as many again for those that lately did. Least squares takes square matrices: as many rows as there
are samples if it has a kernel, else as there are features. A process that takes more than there is
may be killed without a message, so the estimate is first compared with free memory, or a limit.

With a limit, kernel columns are what there is room for beside the rest, and those beyond are in a
file (`mapped`). How many there will be is not known beforehand, so the rest alone is
compared: the rows, twice, since they are copied when they outgrow their room; the arrays of the
machines; the factors of the margins there are.
"""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Real
from pathlib import Path
from typing import Any, Final

import scipy.sparse as sp

from adiabat._core.gram import Gram
from adiabat._core.panels import UNLIMITED
from adiabat.engine.mapped import LimitedMemory, limit_columns

#: Columns are kept for samples that lately carried weight as well: half as many again.
SPARE: Final = 1.5
_NUMBER: Final = 8  # bytes
# Arrays of a machine with an entry for each of its rows, and what an update copies of them.
_ARRAYS: Final = 24
# Fewer bytes are taken without asking the system, which takes as long as a small update.
_WORTH_ASKING: Final = 4e6
_FEWER_COLUMNS: Final = "fewer rows, retain=, a kernel with fewer support vectors, or more memory"
_UNITS: Final = (("GB", 1e9), ("MB", 1e6), ("kB", 1e3))


def estimated_bytes(n: int, n_features: int, n_support: int, n_machines: int = 1) -> float:
    """Bytes at the peak of learning n dense samples of which so many carry weight."""
    columns = SPARE * n_support * n
    return _NUMBER * (columns + n * (2.0 * n_features + _ARRAYS * n_machines))


def bytes_beside_columns(of_rows: float, n_rows: float, margins: Iterable[int]) -> float:
    """Bytes that no file can take: rows of samples, twice; rows of machines; factors of margins."""
    factors = sum([float(size) ** 2 for size in margins])
    return 2.0 * of_rows + _NUMBER * (_ARRAYS * n_rows + factors)


def bytes_of(X: Any) -> float:
    """Bytes of rows of features, dense or sparse, or of none."""
    if X is None:
        return 0.0
    parts = (X.data, X.indices, X.indptr) if sp.issparse(X) else (X,)
    return float(sum(part.nbytes for part in parts))


def bytes_of_rows(samples: Any) -> float:
    """Bytes of the features that are held, or of the kernel matrix that was given."""
    held = samples._held
    return 0.0 if held is None else float(held.nbytes)


def allot(gram: Gram, limit: float | None, beside: float) -> None:
    """Let kernel columns take what a limit leaves beside other bytes; the others are in a file.

    Without a limit, new ones are in memory.
    """
    if limit is None:
        gram.use(UNLIMITED)
        return
    limit_columns(gram, LimitedMemory(limit, max(0.0, limit - beside)))


def regain(samples: Any) -> None:
    """Compute columns anew that are another process's since a fork."""
    lost = samples.gram.lost
    if lost is not None:
        samples.slots(lost)
        samples.gram.lost = None


def require_room(
    needed: float, limit: float | None, what: str, remedy: str = _FEWER_COLUMNS
) -> None:
    """MemoryError if so many bytes are more than the limit, or than there are."""
    there = available_bytes() if limit is None else limit
    if there is not None and needed > there:
        source = "are free" if limit is None else "are allowed (memory_limit)"
        raise MemoryError(
            f"{what} needs about {readable(needed)}, and {readable(there)} {source}. Use {remedy}"
        )


def require_limit(limit: Any) -> None:
    """ValueError unless it is a number of bytes, or None."""
    if limit is not None and not (isinstance(limit, Real) and float(limit) > 0.0):
        raise ValueError(
            f"memory_limit={limit!r} must be a positive number of bytes, or None for what is free"
        )


def require_columns(gram: Gram, n: int, n_columns: int) -> None:
    """MemoryError if so many columns of n values are more than there is room for.

    With a limit there is a file for them.
    """
    needed = float(_NUMBER * n * n_columns)
    if needed >= _WORTH_ASKING and gram.memory.limit is None:
        require_room(needed, None, f"Keeping {n_columns} more kernel columns of {n} rows")


def has_room(gram: Gram, n_numbers: int) -> bool:
    """Whether so many numbers more may be kept in columns."""
    there = available_bytes() if gram.memory.limit is None else None
    return there is None or _NUMBER * n_numbers <= there


def require_matrices(side: int, count: int, what: str, remedy: str) -> None:
    """MemoryError if so many square matrices are more than there is room for."""
    needed = float(_NUMBER) * count * side * side
    if needed >= _WORTH_ASKING:
        require_room(needed, None, what, remedy)


def available_bytes() -> float | None:
    """Bytes that this process may still take; None if the system does not say."""
    found = [value for value in (_free(), _left_by_group()) if value is not None]
    return min(found, default=None)


def readable(size: float) -> str:
    """A number of bytes in words."""
    for unit, factor in _UNITS:
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size:.0f} bytes"


def _free() -> float | None:
    try:
        text = Path("/proc/meminfo").read_text()
        line = next(line for line in text.splitlines() if line.startswith("MemAvailable:"))
        return 1024.0 * int(line.split()[1])
    except (OSError, StopIteration, ValueError, IndexError):
        return None


def _left_by_group() -> float | None:
    """What the control group of a container leaves; None if it has no limit."""
    group = Path("/sys/fs/cgroup")
    try:
        most = float((group / "memory.max").read_text())
        return most - float((group / "memory.current").read_text())
    except (OSError, ValueError):
        return None
