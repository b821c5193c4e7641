# SPDX-License-Identifier: BSD-3-Clause
"""The ledger: which samples a model knows, by id, in the order they were learned.

An id is an ``int``, ``str``, ``bytes`` or ``UUID``, and all ids of a ledger are of one kind. The
*order index* of an id is its place among those known now, 0 for the oldest; it falls when an older
one is deleted. So that a deletion need not renumber a dictionary, each id keeps a *serial* for
life: serials grow with the order, hence the order index is a binary search among them.

Invariants: `_ids[i]`, `_serials[i]` and `_serial_of[_ids[i]]` speak of the same sample;
`_serials` is strictly increasing; no method changes anything when it raises.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Sized
from typing import Any, Final, TypeAlias
from uuid import UUID

import numpy as np
import numpy.typing as npt

from adiabat._core.room import Room, removed
from adiabat._core.rows import delete_entries
from adiabat.engine.row_change import NO_ROWS
from adiabat.errors import LISTED, IdError, ModelFileError
from adiabat.estimators.arguments.indices import names_in

__all__ = ["Id", "Ledger"]

Id: TypeAlias = int | str | bytes | UUID
IndexArray: TypeAlias = npt.NDArray[np.int64]

# Integers up to 128 bits are ids, so that hashes and UUIDs taken as numbers are.
_INT_LIMIT: Final = 1 << 128
# Deleted one by one up to so many.
_FEW: Final = 8
_INT64: Final = np.iinfo(np.int64)
_KINDS: Final = {int: "int", str: "str", bytes: "bytes", UUID: "UUID"}


class Ledger:
    """Ids of the samples known, in learning order.

    Examples
    --------
    >>> ledger = Ledger()
    >>> ledger.append(ledger.validate_new(["ann", "bob", "eve"], None, 3))
    >>> ledger.locate("eve")
    array([2])
    >>> ledger.delete([0])
    >>> ledger.locate("eve"), "ann" in ledger, len(ledger)
    (array([1]), False, 2)
    """

    def __init__(self) -> None:
        self._ids: list[Id] = []
        self._serials: IndexArray = np.empty(0, np.int64)
        self._room = Room()
        self._serial_of: dict[Id, int] = {}
        self._kind: str | None = None
        self._next_serial = 0
        self._next_number = 0
        self._array: npt.NDArray[Any] | None = None

    def __len__(self) -> int:
        return len(self._ids)

    def __contains__(self, item: object) -> bool:
        try:
            kind, values = _normalise([item])
        except IdError:
            return False
        return kind == self._kind and values[0] in self._serial_of

    def __repr__(self) -> str:
        # The ids themselves stay out of logs.
        return f"<Ledger of {len(self)} {self._kind or ''} ids>".replace("  ", " ")

    @property
    def ids(self) -> npt.NDArray[Any]:
        """The ids in order, read-only: int64 where all are such integers, else objects."""
        if self._array is None:
            array = np.empty(len(self._ids), np.int64 if self._fits_int64() else object)
            array[:] = self._ids
            self._array = _read_only(array)
        return self._array

    def name_at(self, order_index: int) -> Id:
        """The id at an order index."""
        return self._ids[order_index]

    @property
    def next_number(self) -> int:
        """The number that the next sample without an id gets; above every integer ever used."""
        return self._next_number

    @property
    def n_seen(self) -> int:
        """How many ids were ever recorded, those deleted included."""
        return self._next_serial

    def validate_new(self, ids: Any, X: Any, n: int, *, leaving: Iterable[int] = ()) -> list[Id]:
        """Ids for `n` new samples, checked; nothing is recorded.

        Parameters
        ----------
        ids : sequence, scalar or None
            The ids given by the caller. None takes them from the index of `X` if that is a pandas
            index of ids, and else counts on from `next_number`.
        X : object
            The samples as the caller gave them; only its ``index`` is looked at.
        n : int
            Number of samples.
        leaving : iterable of int, optional
            Order indices of samples that leave in the same step; their ids are free again.

        Returns
        -------
        list
            Plain Python ids, for `append`.

        Raises
        ------
        IdError
            If the ids are too few or too many, repeated, already known, or of the wrong kind.
        """
        source = "ids"
        if ids is None:
            ids = names_in(X)
            source = "ids (taken from the index of X; pass ids= or reset the index)"
        if ids is None:
            ids = range(self._next_number, self._next_number + n)
            source = "ids (running numbers, since none were given)"
        elif isinstance(ids, (set, frozenset, Mapping)):
            raise IdError(f"ids is a {type(ids).__name__}, which has no order; pass a list")
        given = _as_list(ids)
        if len(given) != n:
            raise IdError(f"{source} has length {len(given)}, X has {n} samples; pass one id each")
        gone: Collection[Id] = ()
        if not isinstance(leaving, Sized) or len(leaving):
            gone = {self._ids[i] for i in self._checked_order(leaving)}
        return self._checked_new(given, source, gone)

    def locate(self, ids: Any, missing: str = "raise") -> IndexArray:
        """Order indices of `ids`, in the order given.

        Parameters
        ----------
        ids : scalar or collection
            One id, or several.
        missing : {"raise", "ignore"}
            What to do about ids that are not known. Ids of another kind than the known ones raise
            either way: ``"17"`` is not 17, and passing over it would forget nothing.

        Returns
        -------
        ndarray of int64

        Raises
        ------
        IdError
            If ids are repeated, of another kind, or unknown.
        """
        if missing not in ("raise", "ignore"):
            raise ValueError(f"missing={missing!r} must be 'raise' or 'ignore'")
        given = _as_list(ids)
        if not given:
            return NO_ROWS
        kind, values = _normalise(given)
        self._require_kind(kind, "ids", len(self._ids))
        _require_unique(values, "ids")
        serials = [self._serial_of.get(value) for value in values]
        if None in serials:
            if missing == "raise":
                unknown = [value for value in values if value not in self._serial_of]
                raise IdError(
                    f"ids: {_listing(unknown)} not known to this model; "
                    "pass missing='ignore' to pass over them"
                )
            serials = [serial for serial in serials if serial is not None]
        places = self._serials.searchsorted(np.array(serials, np.int64))
        return places.astype(np.int64, copy=False)

    def append(self, ids: Iterable[Any]) -> None:
        """Record new ids at the end of the order."""
        self.record(self._checked_new(_as_list(ids), "ids", frozenset()))

    def record(self, values: Sequence[Id]) -> None:
        """Record ids that `validate_new` has found to be new."""
        if not values:
            return
        serials = np.arange(self._next_serial, self._next_serial + len(values), dtype=np.int64)
        self._serials = self._room.extended("serials", self._serials, serials)
        self._serial_of.update(zip(values, serials.tolist(), strict=True))
        self._ids.extend(values)
        self._next_serial += len(values)
        self._kind = _KINDS[type(values[0])]
        array, self._array = self._array, None
        if self._kind == "int":
            self._next_number = max(self._next_number, max(values) + 1)  # type: ignore[operator]
            if array is not None and array.dtype == np.int64 and _fit_int64(values):
                more = np.array(values, np.int64)
                self._array = _read_only(delete_entries(array, NO_ROWS, more))

    def delete(self, order_indices: Any) -> None:
        """Drop the samples at these order indices."""
        order = self._checked_order(order_indices)
        if not order:
            return
        order = sorted(order)
        for index in order:
            del self._serial_of[self._ids[index]]
        gone = np.array(order, np.int64)
        self._serials = removed(self._serials, gone)
        if self._array is not None:  # of objects, those that stay may all be integers
            integers = self._array.dtype == np.int64
            self._array = _read_only(delete_entries(self._array, gone)) if integers else None
        if len(order) <= _FEW:  # others move up, and are not counted as references anew
            for index in reversed(order):
                del self._ids[index]
        else:
            stay: list[Any] = []
            first = 0
            for index in order:
                stay += self._ids[first:index]
                first = index + 1
            self._ids = stay + self._ids[first:]
        if not self._ids:
            self._kind, self._array = None, None

    def __getstate__(self) -> dict[str, npt.NDArray[Any]]:
        return self.to_arrays()

    def __setstate__(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        self.__dict__.update(Ledger.from_arrays(arrays).__dict__)

    def copy(self) -> Ledger:
        """An independent copy."""
        twin = Ledger()
        twin._ids = self._ids.copy()
        twin._serials = self._serials.copy()
        twin._serial_of = self._serial_of.copy()
        twin._kind = self._kind
        twin._next_serial = self._next_serial
        twin._next_number = self._next_number
        twin._array = self._array
        return twin

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The ledger as arrays without objects; `from_arrays` reads them back.

        Only ids that are known are written, and nothing of those deleted.
        """
        arrays: dict[str, npt.NDArray[Any]] = {
            "ledger_next": np.array(str(self._next_number)),
            "ledger_seen": np.array(self.n_seen),
        }
        if self._fits_int64():
            arrays["ledger_kind"] = np.array("int64")
            arrays["ledger_ids"] = np.array(self._ids, np.int64)
            return arrays
        # NumPy drops trailing zeros of text and pads it to the longest; a buffer does neither.
        encoded = [_encode(value) for value in self._ids]
        arrays["ledger_kind"] = np.array(self._kind)
        arrays["ledger_ids"] = np.frombuffer(b"".join(encoded), np.uint8)
        arrays["ledger_ends"] = np.cumsum([len(item) for item in encoded], dtype=np.int64)
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Ledger:
        """Rebuild a ledger from what `to_arrays` gave; ModelFileError if it is not sound."""
        try:
            kind = str(arrays["ledger_kind"])
            data = arrays["ledger_ids"]
            next_number = int(str(arrays["ledger_next"]))
            if kind == "int64":
                if data.dtype != np.int64 or data.ndim != 1:
                    raise ValueError("integer ids must be a 1-D int64 array")
                values: list[Any] = data.tolist()
            else:
                values = _decode_all(kind, data, arrays["ledger_ends"])
            ledger = cls()
            ledger.append(values)
            if not ledger._next_number <= next_number <= _INT_LIMIT:
                raise ValueError("the running number is out of range")
            n_seen = int(arrays["ledger_seen"])
            if n_seen < len(ledger):
                raise ValueError("there are more ids than were ever recorded")
        except (IdError, KeyError, ValueError, TypeError, AttributeError) as error:
            raise ModelFileError(
                f"the ids in the model file are not sound ({error}); restore the file from a copy, "
                "or save the model again"
            ) from error
        ledger._next_number = next_number
        ledger._next_serial = n_seen
        return ledger

    def _fits_int64(self) -> bool:
        if self._kind is None:
            return True
        if self._kind != "int":
            return False
        return _fit_int64(self._ids)

    def _checked_new(self, given: list[Any], source: str, gone: Collection[Id]) -> list[Id]:
        kind, values = _normalise(given, source)
        self._require_kind(kind, source, len(self) - len(gone))
        _require_unique(values, source)
        known = [value for value in values if value in self._serial_of and value not in gone]
        if known:
            raise IdError(
                f"{source}: {_listing(known)} already known to this model; use new ids, or revise "
                "the samples that have them"
            )
        return values

    def _require_kind(self, kind: str | None, source: str, n_known: int) -> None:
        if kind is not None and n_known and kind != self._kind:
            raise IdError(
                f"{source}: these are {kind}, the ids of this model are {self._kind}; "
                f"pass {self._kind} ids"
            )

    def _checked_order(self, order_indices: Any) -> list[int]:
        order = np.asarray(
            order_indices if hasattr(order_indices, "__len__") else list(order_indices)
        )
        if order.size == 0:
            return []
        if order.ndim != 1 or order.dtype.kind not in "iu":
            raise TypeError("order indices must be a 1-D sequence of integers")
        indices: list[int] = order.tolist()
        if min(indices) < 0 or max(indices) >= len(self):
            raise IndexError(f"order indices must lie between 0 and {len(self) - 1}")
        if len(set(indices)) != len(indices):
            raise ValueError("order indices must not repeat")
        return indices


def _as_list(ids: Any) -> list[Any]:
    """`ids` as a list: a single id becomes a list of one."""
    if isinstance(ids, (list, tuple)):
        return list(ids)
    if isinstance(ids, (int, float, str, bytes, UUID, np.generic)) or ids is None:
        return [ids]
    if isinstance(ids, np.ndarray):
        if ids.ndim > 1:
            raise IdError(f"ids has shape {ids.shape}; pass a 1-D sequence")
        items = ids.tolist()
        return items if ids.ndim else [items]
    for convert in ("tolist", "to_list", "to_pylist"):
        # pandas, polars and Arrow in turn: each gives plain Python values that way.
        if hasattr(ids, convert):
            return list(getattr(ids, convert)())
    try:
        return list(ids)
    except TypeError:
        raise IdError(f"ids={ids!r} is neither an id nor a sequence of ids") from None


def _normalise(given: list[Any], source: str = "ids") -> tuple[str | None, list[Id]]:
    """The one kind of these ids (None if there are none), and each as a plain Python value."""
    kinds = set(map(type, given))
    if kinds and not kinds <= _KINDS.keys():
        given = [_plain(value, source) for value in given]
        kinds = set(map(type, given))
    if len(kinds) > 1:
        names = " and ".join(sorted(_KINDS[kind] for kind in kinds))
        raise IdError(f"{source} mixes {names}; pass ids of one kind")
    if not kinds:
        return None, given
    kind = _KINDS[kinds.pop()]
    if kind == "int" and max(map(abs, given)) >= _INT_LIMIT:
        raise IdError(f"{source}: integers must have at most 128 bits; pass longer ids as str")
    return kind, given


def _plain(value: Any, source: str) -> Id:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, UUID):
        return UUID(int=value.int)
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    # Called on the base class: a subclass (an enum, say) may print itself differently.
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bytes):
        return bytes(memoryview(value))
    raise IdError(
        f"{source}: {value!r} is a {type(value).__name__}; an id must be an int, str, bytes or UUID"
    )


def _require_unique(values: list[Id], source: str) -> None:
    if len(values) == 1 or len(set(values)) == len(values):
        return
    seen: set[Id] = set()
    repeated: dict[Id, None] = {}
    for value in values:
        if value in seen:
            repeated[value] = None
        seen.add(value)
    raise IdError(f"{source}: {_listing(list(repeated))} repeated; each id may appear once")


def _listing(values: list[Id]) -> str:
    """'2 ids (3, 4) are', with at most ten of them."""
    shown = ", ".join(repr(value) for value in values[:LISTED])
    more = ", ..." if len(values) > LISTED else ""
    return f"{len(values)} {'id' if len(values) == 1 else 'ids'} ({shown}{more}) " + (
        "is" if len(values) == 1 else "are"
    )


def _encode(value: Id) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, UUID):
        return value.bytes
    return str(value).encode("utf-8", "surrogatepass")


def _decode_all(kind: str, data: npt.NDArray[Any], ends: npt.NDArray[Any]) -> list[Id]:
    if data.dtype != np.uint8 or data.ndim != 1 or ends.dtype != np.int64 or ends.ndim != 1:
        raise ValueError("the buffer of ids has the wrong type")
    stops = ends.tolist()
    starts = [0, *stops[:-1]]
    if not stops or stops[-1] != data.size or (np.diff(ends, prepend=0) < 0).any():
        raise ValueError("the buffer of ids has the wrong length")
    buffer = data.tobytes()
    pieces = [buffer[a:b] for a, b in zip(starts, stops, strict=True)]
    if kind == "bytes":
        return list(pieces)
    if kind == "UUID":
        return [UUID(bytes=piece) for piece in pieces]
    if kind == "str":
        return [piece.decode("utf-8", "surrogatepass") for piece in pieces]
    if kind == "int":
        return [int(piece) for piece in pieces]
    raise ValueError(f"ids of kind {kind!r} are unknown")


def _fit_int64(numbers: Sequence[Any]) -> bool:
    return bool(_INT64.min <= min(numbers) and max(numbers) <= _INT64.max)


def _read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    array.setflags(write=False)
    return array
