# SPDX-License-Identifier: BSD-3-Clause
"""Labels of classes: how they are checked, and how outputs choose among them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

FloatArray = npt.NDArray[np.float64]


def check_labels(y: Any) -> npt.NDArray[Any]:
    """Labels as an array of numbers, truths or strings."""
    labels: npt.NDArray[Any] = np.asarray(y)
    if labels.ndim != 1:
        labels = column_or_1d(labels, warn=True)
    if labels.dtype == object and len({isinstance(label, str) for label in labels}) == 1:
        labels = np.array(labels.tolist())
    if labels.dtype.kind not in "iubU":  # numbers that may be continuous, or objects
        check_classification_targets(labels)
    return labels


def require_among(y: Any, classes: Any) -> None:
    """Refuse labels outside `classes`, if given."""
    if classes is None:
        return
    unknown = np.setdiff1d(np.unique(np.asarray(y)), np.asarray(classes))
    if len(unknown):
        raise ValueError(
            f"y has labels {unknown[:10].tolist()} that are not in classes="
            f"{np.asarray(classes).tolist()}; leave classes out to admit new ones"
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

    def _check_targets(self, y: Any) -> npt.NDArray[Any]:
        return check_labels(y)
