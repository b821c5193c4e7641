# SPDX-License-Identifier: BSD-3-Clause
"""C-SVC as rows of problem (P), one machine for each pair of classes.

A sample of weight w in the machine of classes (first, second) is one row:

    second:  t = +1,  0 <= u <= C w          first:  t = -1,  -C w <= u <= 0          d = 0

so that u = y alpha of CP01 (1) with y = +1 for the second class, and f > 0 speaks for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from adiabat._core.rows import codes_in, has_codes
from adiabat.formulations.base import NO_ROWS, Key, Rows
from adiabat.formulations.labels import label_array, typed_labels
from adiabat.formulations.price import FIRST_BOUND, price_fields, reach, require_price
from adiabat.typing import FloatArray, IntArray

#: Types of labels that are kept, beside those that NumPy takes for them by itself.
LABEL_TYPES = (
    "", "object", "int8", "int16", "int32", "uint8", "uint16", "uint32", "uint64", "float32",
)  # fmt: skip


@dataclass(frozen=True)
class CSVC:
    """The formulation with its parameters resolved.

    Classes are known here by code; `label` says which label a code stands for, and pairs are
    ordered by label, so that they do not change when other classes come and go. `bound` stands in
    for an infinite C. `label_type` is the NumPy type that labels came in, if it is not theirs by
    nature: int8, say, or object.
    """

    C: float
    label: dict[int, Any] = field(default_factory=dict)
    class_weight: Mapping[int, float] = field(default_factory=dict)
    bound: float = FIRST_BOUND
    label_type: str = ""

    name: ClassVar[str] = "c_svc"
    target_type: ClassVar[Any] = np.int64
    targets_move: ClassVar[bool] = False
    shift_free: ClassVar[bool] = True

    def codes(self, target: IntArray) -> list[int]:
        """Codes of the classes present, in the order of their labels."""
        present = self.label if has_codes(target, self.label) else codes_in(target)
        return sorted(present, key=lambda code: self.label[code])

    def classes(self, target: IntArray) -> npt.NDArray[Any]:
        """Labels of the classes present, in their order and in the type that they came in."""
        everyone = has_codes(target, self.label)
        return self._all_classes.copy() if everyone else self._labels(self.codes(target))

    @cached_property
    def _all_classes(self) -> npt.NDArray[Any]:
        return self._labels(sorted(self.label, key=lambda code: self.label[code]))

    def _labels(self, codes: list[int]) -> npt.NDArray[Any]:
        return typed_labels(label_array([self.label[code] for code in codes]), self.label_type)

    def machines(self, target: IntArray) -> list[Key]:
        """One machine for each pair of classes present."""
        codes = self.codes(target)
        return [(a, b) for i, a in enumerate(codes) for b in codes[i + 1 :]]

    def name_machine(self, machine: Key) -> tuple[Any, ...]:
        """The labels of its two classes; f > 0 speaks for the second."""
        return tuple(self.label[code] for code in machine)

    def concerns(self, machine: Key, targets: set[int]) -> bool:
        """Whether samples of these classes have rows in a machine."""
        return machine[0] in targets or machine[1] in targets

    def rows(self, machine: Key, target: IntArray, weight: FloatArray, own: FloatArray) -> Rows:
        """Rows of samples with these targets and weights in a machine."""
        first, second = machine
        if len(target) == 0:
            return NO_ROWS
        sample = np.flatnonzero((target == first) | (target == second))
        positive = target[sample] == second
        factors = self.class_weight.get(second, 1.0), self.class_weight.get(first, 1.0)
        per_class = np.where(positive, *factors) if factors != (1.0, 1.0) else 1.0
        most = reach(self.C, self.bound, weight[sample], per_class)
        return Rows(
            sample=sample,
            t=np.where(positive, 1.0, -1.0),
            lo=np.where(positive, 0.0, -most),
            hi=np.where(positive, most, 0.0),
        )

    def total(self, machine: Key, target: IntArray, weight: FloatArray) -> float:
        """The weights of the two classes balance."""
        return 0.0

    def resolve(self, target: IntArray, weight: FloatArray) -> CSVC:
        """The last sample of a class takes the class with it."""
        if has_codes(target, self.label):
            return self
        present = set(codes_in(target))
        return replace(
            self,
            label={code: label for code, label in self.label.items() if code in present},
            class_weight={code: w for code, w in self.class_weight.items() if code in present},
        )

    def stays(self, target: IntArray, gone: IntArray) -> bool:
        """Whether a sample of each class stays; new ones have classes that it knows."""
        return bool(has_codes(target, self.label, gone))

    def reshapes(self, before: CSVC) -> bool:
        """Whether C or the factor on it of a class that stays is another."""
        if self is before:
            return False
        stay = set(self.label) & set(before.label)
        factors = [[known.class_weight.get(code, 1.0) for code in stay] for known in (self, before)]
        box = [(known.C, known.bound) for known in (self, before)]
        return box[0] != box[1] or factors[0] != factors[1]

    def raised(self) -> CSVC | None:
        """With the next bound that may stand in for an infinite C; None if C is finite."""
        return replace(self, bound=self.bound * FIRST_BOUND) if self.C == np.inf else None

    def require_sound(self, target: IntArray) -> None:
        """Raise ValueError if parameters or targets read from a file make no sense."""
        require_price(self.C, self.bound)
        if self.label_type not in LABEL_TYPES:
            raise ValueError("the labels have a type that is unknown")
        if not set(np.unique(target).tolist()) <= set(self.label):
            raise ValueError("a target has no label")

    def to_dict(self) -> dict[str, Any]:
        """The parameters, classes as [code, label, factor on C]."""
        classes = [[code, label, self.class_weight.get(code)] for code, label in self.label.items()]
        kind = {"label_type": self.label_type} if self.label_type else {}
        return {**price_fields(self.C, self.bound), "classes": classes, **kind}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> CSVC:
        """Rebuild from what `to_dict` gave."""
        classes = fields["classes"]
        return cls(
            float(fields["C"]),
            {int(code): label for code, label, _ in classes},
            {int(code): float(factor) for code, _, factor in classes if factor is not None},
            float(fields.get("bound", FIRST_BOUND)),
            str(fields.get("label_type", "")),
        )
