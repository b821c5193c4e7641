# SPDX-License-Identifier: BSD-3-Clause
"""What a formulation says: which machines there are, and which rows of problem (P) a sample is.

    minimise 1/2 u'Ku - t'u   subject to   lo <= u <= hi,  sum u = d

The engine knows rows and nothing else, so that a new kind of machine is one file like its
neighbours here and one line in `formulations/__init__.py`; docs/formulations.md writes one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt

from adiabat.typing import FloatArray, IntArray

Key = tuple[int, ...]

# The key of the machine where there is but one.
ONLY: Key = (0,)


class Rows(NamedTuple):
    """Rows of one machine: which of the given samples they stand for, and (t, lo, hi).

    Rows of one sample follow each other, and come in the same order each time.
    """

    sample: IntArray
    t: FloatArray
    lo: FloatArray
    hi: FloatArray


NO_ROWS = Rows(np.empty(0, dtype=np.int64), np.empty(0), np.empty(0), np.empty(0))


class Formulation(Protocol):
    """A kind of kernel machine with its parameters resolved; immutable."""

    name: ClassVar[str]
    #: Type of the targets: int64 for codes of classes, float64 for numbers.
    target_type: ClassVar[Any]
    #: Whether a new target moves the same rows (numbers), or needs others (classes).
    targets_move: ClassVar[bool]
    #: Whether d is 0, so that adding a constant to the kernel changes nothing.
    shift_free: ClassVar[bool]

    def machines(self, target: npt.NDArray[Any]) -> list[Key]:
        """The machines that samples with these targets need, in a fixed order."""

    def name_machine(self, machine: Key) -> tuple[Any, ...]:
        """What users call a machine: the labels of its classes, or () where there is but one."""

    def concerns(self, machine: Key, targets: set[Any]) -> bool:
        """Whether samples with these targets have rows in a machine."""

    def rows(
        self, machine: Key, target: npt.NDArray[Any], weight: FloatArray, own: FloatArray
    ) -> Rows:
        """Rows of samples with these targets, weights and own kernel values k(x, x)."""

    def total(self, machine: Key, target: npt.NDArray[Any], weight: FloatArray) -> float:
        """The sum d that the weights of a machine on all these samples have."""

    def resolve(self, target: npt.NDArray[Any], weight: FloatArray) -> Self:
        """The formulation for exactly these samples, whatever it takes from all of them."""

    def stays(self, target: npt.NDArray[Any], gone: IntArray) -> bool:
        """Whether it and its machines are the same whichever other samples come, once those at
        some places have gone; False where that takes a look at all samples.
        """

    def reshapes(self, before: Self) -> bool:
        """Whether samples that stay have other rows (t, lo, hi) than before."""

    def raised(self) -> Self | None:
        """With the next bound that may stand in for an infinite C; None if C is finite."""

    def require_sound(self, target: npt.NDArray[Any]) -> None:
        """Raise ValueError if parameters or targets read from a file make no sense."""

    def to_dict(self) -> dict[str, Any]:
        """The parameters as plain JSON values."""

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Self:
        """Rebuild from what `to_dict` gave."""


class OneMachine:
    """What formulations with a single machine over all samples share."""

    target_type: ClassVar[Any] = np.float64
    targets_move: ClassVar[bool] = True

    def machines(self, target: npt.NDArray[Any]) -> list[Key]:
        """One, as soon as there is a sample."""
        return [ONLY] if len(target) else []

    def name_machine(self, machine: Key) -> tuple[Any, ...]:
        """It needs no name."""
        return ()

    def concerns(self, machine: Key, targets: set[Any]) -> bool:
        """Every sample has rows in it."""
        return bool(targets)

    def resolve(self, target: npt.NDArray[Any], weight: FloatArray) -> Self:
        """Nothing is taken from the samples."""
        return self

    def stays(self, target: npt.NDArray[Any], gone: IntArray) -> bool:
        """Unknown, unless a formulation says so."""
        return False

    def raised(self) -> Self | None:
        """There is no bound to raise."""
        return None

    def reshapes(self, before: Self) -> bool:
        """Every parameter is in every row."""
        return self != before

    def to_dict(self) -> dict[str, Any]:
        """The parameters as plain JSON values."""
        return dict(vars(self))

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Self:
        """Rebuild from what `to_dict` gave."""
        return cls(**{name: float(value) for name, value in fields.items()})


def require_range(
    name: str, value: float, least: float, most: float = np.inf, closed: bool = False
) -> None:
    """Raise ValueError unless least < value <= most (`closed`: least <= value), and finite."""
    enough = value >= least if closed else value > least
    if not (enough and value <= most and np.isfinite(value)):
        raise ValueError(f"{name}={value!r} is out of range")
