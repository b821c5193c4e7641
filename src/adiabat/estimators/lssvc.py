# SPDX-License-Identifier: BSD-3-Clause
"""The least-squares classifier that learns and unlearns without keeping a row."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from adiabat.errors import NotLearnedError
from adiabat.estimators.arguments.labels import OneAgainstRest, label_places, require_among
from adiabat.estimators.arguments.validation import MAX_TOL
from adiabat.estimators.least_squares.analysis import trained_on
from adiabat.estimators.least_squares.rows import Rows, TargetPlan
from adiabat.estimators.least_squares_machine import LeastSquaresMachine
from adiabat.formulations.labels import label_array
from adiabat.lssvm.machine import LeastSquares
from adiabat.typing import FloatArray


class LSSVC(OneAgainstRest, ClassifierMixin, LeastSquaresMachine):
    """Least-squares support vector classification in closed form, learned and unlearned exactly.

    Minimises ``rho ||w||^2 + sum_i s_i (w'phi(x_i) + b - y_i)^2`` with y = +1, -1 (LKW19).
    It keeps w, the second moments of the rows and a matrix that follows from them: no training row.
    More than two classes are one against the rest, as many right-hand sides of one matrix.

    Parameters
    ----------
    rho : float, default=1.0
        Price of the norm of w; above 0. The bias is free of it.
    feature_map : transformer or None, default=None
        The map phi; None for the features as they are. See :mod:`adiabat.feature_maps`. Scalers,
        imputers and encoders of adiabat follow the rows: after any changes they, and the model, are
        those fitted to the rows that are there.
    fit_intercept : bool, default=True
        Whether there is a bias b.
    tol : float, default=1e-10
        How far w and b may be off, relative to their size. They are as a rule exact to rounding;
        beyond `tol` an update is refused.
    remember : {"hashes"} or None, default=None
        Whether to keep a salted hash of each row (16 bytes), so that rows which were never learned,
        or unlearned already, are refused. Rows must then be passed to the last bit as they were
        learned.

    Attributes
    ----------
    classes_ : ndarray
        Labels of the classes present, sorted.
    coef_ : ndarray of shape (1 or n_classes, n_outputs_of_the_map)
        w, a row for each output.
    intercept_ : ndarray
        b of each output.
    C_ : ndarray
        The auxiliary matrix of LKW19 (4), I - rho (rho I + Phi Phi')^-1; with a bias, Phi is taken
        about its mean.
    n_samples_ : int
        Rows in the model.
    last_update_ : UpdateReport
        What the last call that changed the model did.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from adiabat import LSSVC
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> y = np.array(["no", "no", "yes", "yes"])
    >>> model = LSSVC(rho=0.1).fit(X, y)
    >>> model.predict([[0.4], [2.6]])
    array(['no', 'yes'], dtype='<U3')
    >>> _ = model.forget(X[1:2], y[1:2])
    >>> np.allclose(model.coef_, LSSVC(rho=0.1).fit(X[[0, 2, 3]], y[[0, 2, 3]]).coef_)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "rho": [Interval(Real, 0.0, None, closed="neither")],
        "feature_map": [HasMethods(["fit", "transform"]), None],
        "fit_intercept": ["boolean"],
        "tol": [Interval(Real, 0.0, MAX_TOL, closed="right")],
        "remember": [StrOptions({"hashes"}), None],
    }

    def __init__(
        self,
        rho: float = 1.0,
        feature_map: Any = None,
        fit_intercept: bool = True,
        tol: float = 1e-10,
        remember: str | None = None,
    ) -> None:
        self.rho = rho
        self.feature_map = feature_map
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.remember = remember

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> LSSVC:
        """Learn further rows.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        classes : array, optional
            If given, labels outside it are an error. Classes never seen before are welcome
            without it, at any call.

        Returns
        -------
        self
        """
        require_among(y, classes)
        self.update(X, y, sample_weight=sample_weight)
        return self

    # -- leaving rows out ------------------------------------------------------------------------

    def _last_of_its_kind(self, y: Any) -> npt.NDArray[np.bool_]:
        lonely = self.classes_[np.array(self._class_counts) == 1]
        return label_places(y, lonely) >= 0

    def _leave_one_out_outputs(self, rows: Rows, row: int) -> FloatArray:
        if len(rows) == 1:
            return np.zeros(self._model.solution.shape[1])
        twin = trained_on(self, rows, np.delete(np.arange(len(rows)), row))
        outputs: FloatArray = twin._decide(rows.X[[row]])[0]
        gone = np.flatnonzero(label_places(self.classes_, twin.classes_) < 0)
        if len(gone) == 0:
            return outputs
        if len(self.classes_) == 2:  # one class is left, and it is certain
            return np.array([np.inf if gone[0] == 0 else -np.inf])
        if len(twin.classes_) == 2:
            outputs = np.array([-outputs[0], outputs[0]])
        return np.insert(outputs, gone[0], -np.inf)

    # -- labels ----------------------------------------------------------------------------------

    def _plan(self, added: Rows, removed: Rows) -> TargetPlan:
        started = self.__sklearn_is_fitted__()
        old = self.classes_ if started else np.array([], dtype=added.y.dtype)
        count = dict(zip(old.tolist(), self._class_counts, strict=True)) if started else {}
        for label, number in zip(*np.unique(removed.y, return_counts=True), strict=True):
            if count.get(label.item(), 0) < number:
                raise NotLearnedError(
                    f"remove_y has the label {label.item()!r} {number} times, and the model has "
                    f"{count.get(label.item(), 0)} rows of it; its labels are {old.tolist()[:10]}"
                )
            count[label.item()] -= int(number)
        for label, number in zip(*np.unique(added.y, return_counts=True), strict=True):
            if count and isinstance(label.item(), str) != isinstance(next(iter(count)), str):
                raise ValueError(
                    f"y has the label {label.item()!r}, but the labels so far are like "
                    f"{next(iter(count))!r}; use one type of label"
                )
            count[label.item()] = count.get(label.item(), 0) + int(number)
        return _planned(count, old)

    def _joint_plan(self, other: Any, sign: float) -> tuple[TargetPlan, list[int | None]]:
        count = dict(zip(self.classes_.tolist(), self._class_counts, strict=True))
        for label, number in zip(other.classes_.tolist(), other._class_counts, strict=True):
            if isinstance(label, str) != isinstance(next(iter(count)), str):
                raise ValueError(f"other has the label {label!r}; use one type of label")
            count[label] = count.get(label, 0) + int(sign) * number
            if count[label] < 0:
                raise NotLearnedError(
                    f"other has {number} rows of the label {label!r}, more than this model"
                )
        plan = _planned(count, self.classes_)
        place = {label: index for index, label in enumerate(other.classes_.tolist())}
        return plan, [place.get(label) for label in plan.state[0].tolist()]

    def _columns(self, y: Any, plan: TargetPlan) -> FloatArray:
        classes, _ = plan.state
        which = label_places(y, classes)
        return np.asarray(which[:, None] == np.arange(len(classes)), dtype=np.float64)

    def _adopt(self, model: LeastSquares, plan: TargetPlan) -> LeastSquares:
        classes, counts = plan.state
        if plan.emptied:
            stay = [i for i in range(len(classes)) if i not in plan.emptied]
            model = model.retargeted(stay, one_against_rest(len(stay)))
            classes, counts = classes[stay], [counts[i] for i in stay]
        self.classes_, self._class_counts = classes, counts
        return model


def _planned(count: dict[Any, int], old: npt.NDArray[Any]) -> TargetPlan:
    """The plan that leads from the old classes to those counted."""
    classes = np.unique(label_array(list(count)))
    place = {label: index for index, label in enumerate(old.tolist())}
    return TargetPlan(
        columns=[place.get(label) for label in classes.tolist()],
        combine=one_against_rest(len(classes)),
        emptied=[i for i, label in enumerate(classes.tolist()) if count[label] == 0],
        state=(classes, [count[label] for label in classes.tolist()]),
    )


def one_against_rest(n_classes: int) -> FloatArray:
    """What the outputs aim at, in terms of the constant and of each class's indicator: 2 t - 1."""
    if n_classes < 2:
        return np.zeros((1 + n_classes, 0))
    chosen = [1] if n_classes == 2 else range(n_classes)
    combine = np.zeros((1 + n_classes, len(chosen)))
    combine[0] = -1.0
    for output, label in enumerate(chosen):
        combine[1 + label, output] = 2.0
    return combine
