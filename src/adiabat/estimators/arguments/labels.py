# SPDX-License-Identifier: BSD-3-Clause
"""Labels of classes: how they are checked, and how outputs choose among them.

No label loses a digit (`formulations/labels`). Labels are equal if Python says so: 1, 1.0 and True
are one label.
"""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from adiabat.formulations.c_svc import LABEL_TYPES
from adiabat.formulations.labels import label_array
from adiabat.typing import FloatArray


def type_of_labels(y: Any) -> str:
    """The type of an array of labels, if it is one of those that are kept; else nothing."""
    kind = getattr(y, "dtype", None)
    return kind.name if isinstance(kind, np.dtype) and kind.name in LABEL_TYPES else ""


def exact_labels(y: Any) -> Any:
    """Labels before anything is converted: numbers of mixed types as an array that loses none."""
    if y is None or isinstance(y, str):
        return y
    if hasattr(y, "dtype"):
        if isinstance(y.dtype, np.dtype) and y.dtype != object:
            return y
        y = np.asarray(y) if getattr(y, "ndim", 1) == 1 else y
        if getattr(y, "ndim", 1) != 1 or y.dtype != object:
            return y
    elif not isinstance(y, (list, tuple)):
        return y
    values = [value.item() if isinstance(value, np.generic) else value for value in y]
    return label_array(values) if values and all(isinstance(v, Real) for v in values) else y


def check_labels(y: Any) -> npt.NDArray[Any]:
    """Labels as an array of numbers, truths or strings."""
    labels: npt.NDArray[Any] = np.asarray(exact_labels(y))
    if labels.ndim != 1:
        labels = column_or_1d(labels, warn=True)
    if labels.dtype == object and len({isinstance(label, str) for label in labels}) == 1:
        labels = np.array(labels.tolist())
    if labels.dtype.kind not in "iubU":  # numbers that may be continuous, or objects
        check_classification_targets(labels)
    return labels


def joined(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Targets after one another, each exactly as it was."""
    if first.dtype.kind == second.dtype.kind or "U" in (first.dtype.kind, second.dtype.kind):
        return np.concatenate([first, second])
    return label_array([*first.tolist(), *second.tolist()])


def label_places(labels: Any, classes: Any) -> npt.NDArray[np.int64]:
    """Where each label is among the classes; -1 where it is none of them."""
    unique, inverse = np.unique(labels, return_inverse=True)
    place = {label: index for index, label in enumerate(np.asarray(classes).tolist())}
    found = np.array([place.get(label, -1) for label in unique.tolist()], dtype=np.int64)
    return found[inverse]


def require_among(y: Any, classes: Any) -> None:
    """Refuse labels outside `classes`, if given."""
    if classes is None:
        return
    known = np.asarray(exact_labels(classes))
    labels = np.asarray(exact_labels(y)).ravel()
    unknown = np.unique(labels[label_places(labels, known) < 0])
    if len(unknown):
        raise ValueError(
            f"y has labels {unknown[:10].tolist()} that are not in classes="
            f"{known.tolist()}; leave classes out to admit new ones"
        )


class OneAgainstRest:
    """A classifier with one output for two classes, and one for each of more."""

    classes_: npt.NDArray[Any]

    if TYPE_CHECKING:

        def _decide(self, X: Any) -> FloatArray: ...

    def decision_function(self, X: Any) -> FloatArray:
        """Outputs: (n,) for two classes, above 0 for ``classes_[1]``; else (n, n_classes)."""
        return self._concluded(self._decide(X))[0]

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Labels: the class of the largest output."""
        return self._concluded(self._decide(X))[1]

    def _concluded(self, outputs: FloatArray) -> tuple[FloatArray, npt.NDArray[Any]]:
        """Outputs in the form of `decision_function`, and what they predict."""
        if len(self.classes_) == 2:
            decision = outputs[:, 0]
            return decision, self.classes_[(decision > 0.0).astype(np.int64)]
        decision = outputs if len(self.classes_) > 2 else np.zeros((len(outputs), 1))
        return decision, self.classes_[decision.argmax(axis=1)]

    def _as_given(self, y: Any) -> Any:
        return exact_labels(y)

    def _check_targets(self, y: Any) -> npt.NDArray[Any]:
        return check_labels(y)
