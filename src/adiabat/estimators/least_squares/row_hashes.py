# SPDX-License-Identifier: BSD-3-Clause
"""Which rows a model that keeps none has learned: a salted hash of each, 16 bytes.

A hash is BLAKE2b of features, target and weight, keyed with a random salt. It says whether a row
was learned, and nothing of its values to who has no guess of them; who has the salt can try guesses
out. Equal rows have equal hashes, and each is counted.

A model merged from others keeps their hashes apart, each with its own salt: hashes cannot be salted
anew without the rows.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from adiabat._core.thread_pool import in_slices
from adiabat.errors import NotLearnedError
from adiabat.feature_maps import spelled_out
from adiabat.typing import FloatArray

Hashes = npt.NDArray[np.bytes_]

_BYTES: Final = 16
_SALT_BYTES: Final = 32
_BLOCK: Final = 1024  # rows made dense together
_TYPE: Final = np.dtype(f"S{_BYTES}")
_NAMED: Final = 10  # rows at fault that an error names
_REMEDY: Final = (
    "Pass rows as they were learned, to the last bit, with their target and sample_weight"
)


@dataclass(frozen=True)
class Content:
    """What is hashed of rows: features, labels if they have some, and other numbers."""

    X: Any
    labels: npt.NDArray[Any] | None
    numbers: FloatArray

    def __len__(self) -> int:
        return len(self.numbers)


@dataclass(frozen=True)
class _Part:
    """Hashes with one salt, sorted; equal rows are as many equal entries."""

    salt: bytes
    hashes: Hashes

    def with_hashes(self, new: Hashes) -> _Part:
        new = np.sort(new)
        return _Part(self.salt, np.insert(self.hashes, np.searchsorted(self.hashes, new), new))

    def removing(self, gone: Hashes) -> tuple[_Part, npt.NDArray[np.bool_]]:
        """Without hashes, each as often as it is given; and which of them were there."""
        unique, inverse = np.unique(gone, return_inverse=True)
        first = np.searchsorted(self.hashes, unique)
        there = np.searchsorted(self.hashes, unique, side="right") - first
        # the rank of each among its equals
        order = np.argsort(inverse, kind="stable")
        starts = np.searchsorted(inverse[order], np.arange(len(unique)))
        rank = np.empty(len(gone), dtype=np.int64)
        rank[order] = np.arange(len(gone)) - np.repeat(starts, np.bincount(inverse))
        found = rank < there[inverse]
        places = first[inverse[found]] + rank[found]
        return _Part(self.salt, np.delete(self.hashes, places)), found


class RowHashes:
    """Hashes of the rows in a model; never changed, only replaced."""

    def __init__(self, parts: tuple[_Part, ...]) -> None:
        self._parts = parts

    @classmethod
    def empty(cls) -> RowHashes:
        """Of a model that has learned nothing, with a salt of its own."""
        return cls((_Part(secrets.token_bytes(_SALT_BYTES), np.empty(0, dtype=_TYPE)),))

    def __len__(self) -> int:
        return sum(len(part.hashes) for part in self._parts)

    def learned(self, rows: Content) -> RowHashes:
        """With rows added."""
        if len(rows) == 0:
            return self
        own, *others = self._parts
        return RowHashes((own.with_hashes(_hashed(rows, own.salt)), *others))

    def unlearned(self, rows: Content, name: str) -> RowHashes:
        """Without rows; NotLearnedError if one is not there. `name` is the argument they are."""
        left = np.arange(len(rows))
        parts = []
        for part in self._parts:
            if len(left):
                part, found = part.removing(_hashed(rows, part.salt)[left])
                left = left[~found]
            parts.append(part)
        if len(left):
            named = ", ".join(f"{name}[{row}]" for row in left[:_NAMED].tolist())
            more = f" and {len(left) - _NAMED} more" if len(left) > _NAMED else ""
            raise NotLearnedError(
                f"{named}{more}: never learned, or unlearned already, since the hash is not among "
                f"the {len(self)} that this model remembers. {_REMEDY}"
            )
        return RowHashes(tuple(parts))

    def merged(self, other: RowHashes) -> RowHashes:
        """With all hashes of another model; those with the same salt become one."""
        parts = list(self._parts)
        for part in other._parts:
            place = self._place(part.salt)
            if place is None:
                parts.append(part)
            else:
                parts[place] = parts[place].with_hashes(part.hashes)
        return RowHashes(tuple(parts))

    def subtracted(self, other: RowHashes) -> RowHashes:
        """Without the hashes of another model; NotLearnedError if they are not all there."""
        parts = list(self._parts)
        for part in other._parts:
            if len(part.hashes) == 0:
                continue
            place = self._place(part.salt)
            missing = len(part.hashes)
            if place is not None:
                parts[place], found = parts[place].removing(part.hashes)
                missing = int(np.sum(~found))
            if missing:
                raise NotLearnedError(
                    f"other has {missing} rows whose hashes are not among those merged into this "
                    "model. Subtract a model that was merged, as it was then, or forget its rows"
                )
        kept = [part for place, part in enumerate(parts) if place == 0 or len(part.hashes)]
        return RowHashes(tuple(kept))

    def _place(self, salt: bytes) -> int | None:
        salts = [part.salt for part in self._parts]
        return salts.index(salt) if salt in salts else None

    # -- files -----------------------------------------------------------------------------------

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays for a model file."""
        salts = b"".join(part.salt for part in self._parts)
        return {
            "row_hashes": np.concatenate([part.hashes for part in self._parts]),
            "row_hash_salts": np.frombuffer(salts, np.uint8).reshape(-1, _SALT_BYTES),
            "row_hash_counts": np.array([len(part.hashes) for part in self._parts]),
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, Any]) -> RowHashes:
        """What `to_arrays` gave; ValueError if it is inconsistent."""
        hashes, salts = arrays["row_hashes"], arrays["row_hash_salts"]
        counts = arrays["row_hash_counts"]
        sound = (
            hashes.ndim == 1 and hashes.dtype == _TYPE
            and salts.dtype == np.uint8 and salts.shape == (len(counts), _SALT_BYTES)
            and counts.dtype == np.int64 and counts.shape == (len(salts),) and len(counts) > 0
            and counts.min() >= 0 and counts.sum() == len(hashes)
            and len({salt.tobytes() for salt in salts}) == len(salts)
        )  # fmt: skip
        if not sound:
            raise ValueError("the hashes of the rows are not sound")
        split = np.split(hashes, np.cumsum(counts)[:-1])
        return cls(
            tuple(
                _Part(salt.tobytes(), np.sort(part))
                for salt, part in zip(salts, split, strict=True)
            )
        )


def _hashed(rows: Content, salt: bytes) -> Hashes:
    """The hash of each row, in order."""
    hashes = np.empty(len(rows), dtype=_TYPE)
    keyed = _keyed(rows, salt)

    def work(span: slice) -> None:
        for start in range(span.start, span.stop, _BLOCK):
            part = slice(start, min(span.stop, start + _BLOCK))
            _hash_block(spelled_out(rows.X[part]), rows.numbers[part], keyed, start, hashes[part])

    in_slices(work, len(rows), len(rows) * int(rows.X.shape[1]))
    return hashes


def _hash_block(
    X: FloatArray,
    numbers: FloatArray,
    keyed: Callable[[int], Any],
    start: int,
    out: Hashes,
) -> None:
    """Rows of whole numbers up to 255 are hashed as bytes, which are an eighth as many."""
    with np.errstate(invalid="ignore"):
        small = X.astype(np.uint8)
    whole = (small == X).all(axis=1).tolist()
    small_bytes, X_bytes = small.data.cast("B"), _little(X).data.cast("B")
    rest, k, width = _little(numbers).data.cast("B"), X.shape[1], 8 * numbers.shape[1]
    digests = bytearray()
    for row in range(len(X)):
        hasher = keyed(start + row)
        if whole[row]:
            hasher.update(b"w")
            hasher.update(small_bytes[k * row : k * (row + 1)])
        else:
            hasher.update(b"f")
            hasher.update(X_bytes[8 * k * row : 8 * k * (row + 1)])
        hasher.update(rest[width * row : width * (row + 1)])
        digests += hasher.digest()
    out[:] = np.frombuffer(bytes(digests), dtype=_TYPE)


def _keyed(rows: Content, salt: bytes) -> Callable[[int], Any]:
    """For a row, a hash begun with the salt and its label."""
    empty = hashlib.blake2b(key=salt, digest_size=_BYTES)
    if rows.labels is None:
        return lambda row: empty.copy()
    labels, codes = np.unique(rows.labels, return_inverse=True)
    begun = []
    for label in labels.tolist():
        text = b"s" + label.encode() if isinstance(label, str) else b"n%d" % int(label)
        begun.append(empty.copy())
        begun[-1].update(len(text).to_bytes(8, "little") + text)
    places = codes.tolist()
    return lambda row: begun[places[row]].copy()


def _little(values: FloatArray) -> FloatArray:
    """Values in little-endian order on every CPU; 0 has one sign."""
    return np.ascontiguousarray(values + 0.0, dtype="<f8")
