# SPDX-License-Identifier: BSD-3-Clause
"""P-values, sets of labels and probabilities, as methods of a classifier."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.metaestimators import available_if

from adiabat.estimators.confidence.calibration import Calibration, calibrated
from adiabat.estimators.confidence.cross import cross_p_values
from adiabat.estimators.confidence.folds import folds_of
from adiabat.estimators.confidence.guarantee import guarantee
from adiabat.estimators.confidence.levels import ROUNDING, check_levels, rank_at
from adiabat.estimators.confidence.p_values import p_values_of_labels
from adiabat.estimators.confidence.results import Prediction, PValues
from adiabat.typing import FloatArray

NO_LEVELS = np.empty(0)


def _is_calibrated(estimator: Any) -> bool:
    if estimator.calibration is None:
        raise AttributeError(
            "predict_proba exists with calibration='sigmoid', 'isotonic' or 'venn_abers' only, "
            "and calibration=None"
        )
    return True


def _has_two_answers(estimator: Any) -> bool:
    if estimator.calibration != "venn_abers":
        raise AttributeError(
            "predict_proba_interval exists with calibration='venn_abers' only, and "
            f"calibration={estimator.calibration!r}"
        )
    return True


class ConfidentClassifier:
    """A classifier that says how sure it is, and of what."""

    calibration: str | None
    classes_: npt.NDArray[Any]

    def predict_p(
        self,
        X: Any,
        smoothing: bool = False,
        random_state: Any = None,
        *,
        per_class: bool = False,
        score: str = "margin",
        diagonal: Any = None,
    ) -> PValues:
        """P-values of every label: how many samples are as strange as the row would be with it.

        Full conformal prediction: the row is learned with each label, ranked among all samples by
        that model, and unlearned again, all exactly. The model itself is not changed.

        Parameters
        ----------
        X : {array, data frame, sparse} of shape (n_points, n_features)
            Rows; for ``kernel="precomputed"`` their kernel values against `ids_`.
        smoothing : bool, default=False
            Whether ties count by a random part, so that p-values of true labels are uniform;
            otherwise ties count in full.
        random_state : int, RandomState instance or None, default=None
            For `smoothing`.
        per_class : bool, default=False
            Whether rows are ranked among the samples of the label tried only (Mondrian), so that
            the guarantee holds for each class by itself.
        score : {"margin", "loo"}, default="margin"
            How strange a sample is: its y f(x), the least over the pairs that its class is in, by
            the model with all samples, or by the model without that sample, which takes longer.
        diagonal : array of shape (n_points,), optional
            With ``kernel="precomputed"``, the values k(x, x) of the rows.

        Returns
        -------
        ndarray of shape (n_points, n_classes)
            In the order of `classes_`, with a `guarantee`.

        Examples
        --------
        >>> from adiabat import SVC
        >>> X = [[0.0], [0.2], [0.4], [0.6], [2.0], [2.2], [2.4], [2.6]]
        >>> model = SVC(kernel="linear", C=10.0).fit(X, [0, 0, 0, 0, 1, 1, 1, 1])
        >>> model.predict_p([[0.3], [1.3]]).round(2)
        array([[0.56, 0.11],
               [0.22, 0.22]])
        """
        self._askable()
        found = p_values_of_labels(
            self, X, diagonal, score=score, per_class=per_class, smoothing=smoothing,
            random_state=random_state,
        )  # fmt: skip
        promised = guarantee(self, "full", NO_LEVELS, self._n(), by_class=per_class)
        return PValues.of(found, promised)

    def predict_set(
        self,
        X: Any,
        confidence_level: Any = 0.9,
        method: str = "full",
        cv: Any = None,
        *,
        per_class: bool = False,
        score: str = "margin",
        diagonal: Any = None,
    ) -> Prediction:
        """Predictions, and sets of labels that hold the true one at a chosen confidence.

        Parameters
        ----------
        X, per_class, score, diagonal
            As in `predict_p`.
        confidence_level : float or list of float, default=0.9
            How many of the sets should hold the true label; between 0 and 1.
        method : {"full", "cross"}, default="full"
            ``"full"`` learns the row with each label; ``"cross"`` takes the models without each
            fold, which is faster for many rows and promises less.
        cv : int, splitter or iterable of splits, optional
            Folds of ``"cross"``, each sample in one of them; 5, drawn by a fixed seed, by default.

        Returns
        -------
        prediction : ndarray of shape (n_points,)
            As by `predict`.
        sets : ndarray of bool, of shape (n_points, n_classes, n_levels)
            Which labels are in the sets. The tuple of both has a `guarantee`.
        """
        self._askable()
        if method not in ("full", "cross"):
            raise ValueError(f"method={method!r} must be 'full' or 'cross'")
        if method == "full" and cv is not None:
            raise ValueError(f"cv={cv!r} is for method='cross', and method='full'")
        if method == "cross" and score != "margin":
            raise ValueError(f"score={score!r} is for method='full', and method='cross'")
        levels, folds = check_levels(confidence_level), None
        n = self._require_enough(levels, per_class)
        if method == "cross":
            folds = folds_of(self._n(), cv)
            p_values = cross_p_values(self, X, folds, per_class)
        else:
            p_values = p_values_of_labels(self, X, diagonal, score=score, per_class=per_class)
        sets = p_values[:, :, None] > (1.0 - levels) + ROUNDING / (self._n() + 1)
        promised = guarantee(self, method, levels, n, folds, per_class)
        prediction = self.predict(X)  # type: ignore[attr-defined]
        return Prediction.of(prediction, sets, promised)

    @available_if(_is_calibrated)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities of the classes, fitted on exact leave-one-out decision values.

        Each sample enters with what the model without it says of it, so that there are no folds
        and no seed; two samples of a class suffice. They are fitted when first asked for, and
        again after each change of the model. More than two classes are coupled pair by pair.
        `predict` stays the class of the largest decision value, which may be another.

        Returns
        -------
        ndarray of shape (n_points, n_classes)
            In the order of `classes_`.
        """
        return self._calibration().probabilities(self._pairs(X))

    @available_if(_is_calibrated)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> FloatArray:
        """Logarithms of the probabilities of the classes; -inf where one is 0.

        Returns
        -------
        ndarray of shape (n_points, n_classes)
            In the order of `classes_`.
        """
        with np.errstate(divide="ignore"):
            logarithms: FloatArray = np.log(self.predict_proba(X))
        return logarithms

    @available_if(_has_two_answers)  # type: ignore[untyped-decorator]
    def predict_proba_interval(self, X: Any) -> FloatArray:
        """Two probabilities of ``classes_[1]``, by Venn-Abers: one of them is calibrated.

        p0 is fitted with the row as one of ``classes_[0]``, p1 with it as one of ``classes_[1]``.
        For two classes: nothing of the kind is proven of probabilities that are coupled from pairs.

        Returns
        -------
        ndarray of shape (n_points, 2)
            p0 and p1.
        """
        return self._calibration().two_answers(self._pairs(X))

    # -- within ----------------------------------------------------------------------------------

    def _askable(self) -> None:
        self._require_askable()  # type: ignore[attr-defined]

    def _n(self) -> int:
        model: Any = self._model  # type: ignore[attr-defined]
        return len(model)

    def _pairs(self, X: Any) -> FloatArray:
        values: FloatArray = self._decide(X)  # type: ignore[attr-defined]
        return values

    def _calibration(self) -> Calibration:
        self._askable()
        model: Any = self._model  # type: ignore[attr-defined]
        return calibrated(self, model)

    def _require_enough(self, levels: FloatArray, per_class: bool) -> int:
        """How many samples a label is ranked among at least.

        Levels at which no label could ever be left out are refused.
        """
        model: Any = self._model  # type: ignore[attr-defined]
        n, whose = len(model), "the model has"
        if per_class:
            codes = model.formulation.codes(model.target)
            members = [int(np.sum(model.target == code)) for code in codes]
            n = min(members)
            whose = f"the class {self.classes_.tolist()[members.index(n)]!r} has"
        for level in levels:
            rank_at(float(level), n, whose)
        return n
