# SPDX-License-Identifier: BSD-3-Clause
"""The support vector classifier that learns and unlearns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from numbers import Real
from typing import Any, ClassVar, cast

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from adiabat.estimators.arguments.labels import (
    check_labels,
    exact_labels,
    require_among,
    type_of_labels,
)
from adiabat.estimators.arguments.validation import KERNEL_CONSTRAINTS, as_csr, read_only
from adiabat.estimators.confidence.calibration import CALIBRATIONS
from adiabat.estimators.confidence.classifier import ConfidentClassifier
from adiabat.estimators.kernel import rounding, votes
from adiabat.estimators.kernel.change import SampleChange
from adiabat.estimators.kernel.libsvm_parameters import (
    LIBSVM_CONSTRAINTS,
    LibsvmParameters,
    filled,
    iterations,
)
from adiabat.estimators.kernel.model import Model
from adiabat.estimators.kernel.regularization import AlongC, Shape
from adiabat.estimators.kernel.scikit_learn import plain_svc
from adiabat.estimators.kernel_machine import KernelMachine
from adiabat.estimators.what_if.leave_one_out import leave_one_out
from adiabat.estimators.what_if.results import LeaveOneOut
from adiabat.formulations.c_svc import CSVC
from adiabat.formulations.labels import label_array
from adiabat.retention import Policy
from adiabat.typing import FloatArray, IntArray

# Labels up to which they are looked up one by one.
FEW_LABELS = 256


class SVC(LibsvmParameters, ConfidentClassifier, ClassifierMixin, AlongC, KernelMachine):
    """C-support vector classification that learns and unlearns exactly.

    After every `partial_fit`, `forget`, `revise` and `update` the model is the one that a full
    retraining on the samples it then holds would give, and `certificate` says so.

    Parameters
    ----------
    C : float, default=1.0
        Price of a margin error; above 0. With ``inf`` none is allowed (a hard margin), and data
        that cannot be separated are refused.
    kernel : {"linear", "poly", "rbf", "laplacian", "chi2", "precomputed"} or callable, \
default="rbf"
        A callable takes two arrays of rows and returns their kernel matrix, which must be
        positive semidefinite. Rows may then be anything, such as texts: X is a list of them, and
        the callable gets lists.
    degree : float, default=3
        Degree of the ``poly`` kernel, 0 or at least 1. With a fraction, or with a negative `coef0`,
        the kernel is semidefinite on some rows only, and is refused on others.
    gamma : {"scale", "auto"} or float, default="scale"
        Coefficient of ``rbf``, ``poly``, ``laplacian`` and ``chi2``. ``"scale"`` is
        1 / (n_features * variance of X), weighted by `sample_weight`, at `fit`; the value is
        then kept (`gamma_`).
    coef0 : float, default=0.0
        Constant of the ``poly`` kernel.
    tol : float, default=1e-9
        Largest violation of the optimality conditions that is accepted, in units of each row's
        target, beside a few roundings of its own decision value.
    class_weight : dict, "balanced" or None, default=None
        Factors on C by class. ``"balanced"`` is resolved at `fit` and then kept fixed.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        Shape of `decision_function` with more than two classes.
    solver : {"auto", "path", "exchange"}, default="auto"
        How updates reach the new optimum. The result is the same.
    retain : adiabat.retention.Policy, optional
        Which samples stay when others are learned, such as ``Window(1000)``; all by default. The
        model is the optimum on those it holds.
    verbose : bool or int, default=False
        Whether calls that take more than a second print how far they are, once a second.
    shrinking, cache_size, max_iter
        Taken for scikit-learn's sake; they change nothing. `max_iter` below 1,000 is refused: a fit
        ends at the optimum.
    break_ties : bool, default=False
        Changes nothing: `predict` is the class of the largest decision value, as with True.
    probability : False
        Probabilities are asked for by `calibration`.
    calibration : {"sigmoid", "isotonic", "venn_abers"} or None, default=None
        With it there is `predict_proba`, fitted on exact leave-one-out and unlearned with the rows.
    random_state : any, default=None
        Changes nothing: nothing here is random.
    memory_limit : float or None, default=None
        Bytes that the model may take. Kernel columns beyond are kept in a temporary file, with the
        same results; rows that do not fit are refused. None for what is free, and no file.

    Attributes
    ----------
    classes_ : ndarray
        Labels of the classes present, sorted; of the type in which they came to `fit`.
    ids_ : ndarray
        Ids of the samples held, in the order in which they were learned.
    support_ : ndarray
        Places in `ids_` of the samples that carry weight, grouped by class.
    support_vectors_ : ndarray or CSR
        Their features.
    n_support_ : ndarray
        How many there are in each class.
    dual_coef_, intercept_, coef_ : ndarray
        As in :class:`sklearn.svm.SVC`; `coef_` for the linear kernel only.
    gamma_ : float
        The gamma in force.
    n_iter_, fit_status_, shape_fit_, class_weight_
        As in scikit-learn; `n_iter_` counts rounds and breakpoints of the last update, of all
        machines together.
    last_update_ : UpdateReport
        What the last call that changed the model did.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from adiabat import SVC
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> model = SVC(kernel="linear", C=10.0).fit(X, ["no", "no", "yes", "yes"])
    >>> model.predict([[0.4], [2.6]])
    array(['no', 'yes'], dtype='<U3')
    >>> _ = model.forget([1])
    >>> model.predict([[1.2]])
    array(['yes'], dtype='<U3')
    >>> model.certificate().ok
    True
    """

    _shaping: ClassVar[tuple[str, ...]] = ("C", "class_weight")
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "C": [Interval(Real, 0.0, None, closed="right")],
        **KERNEL_CONSTRAINTS,
        **LIBSVM_CONSTRAINTS,
        "break_ties": ["boolean"],
        "probability": ["boolean"],
        "random_state": ["random_state"],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "decision_function_shape": [StrOptions({"ovr", "ovo"})],
        "calibration": [StrOptions(set(CALIBRATIONS)), None],
    }

    def __init__(
        self,
        C: float = 1.0,
        kernel: str | Callable[[Any, Any], Any] = "rbf",
        degree: float = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        tol: float = 1e-9,
        class_weight: Mapping[Any, float] | str | None = None,
        decision_function_shape: str = "ovr",
        solver: str = "auto",
        retain: Policy | None = None,
        shrinking: bool = True,
        cache_size: float = 200,
        verbose: bool | int = False,
        max_iter: int = -1,
        break_ties: bool = False,
        probability: bool = False,
        random_state: Any = None,
        calibration: str | None = None,
        memory_limit: float | None = None,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.class_weight = class_weight
        self.decision_function_shape = decision_function_shape
        self.solver = solver
        self.retain = retain
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.break_ties = break_ties
        self.probability = probability
        self.random_state = random_state
        self.calibration = calibration
        self.memory_limit = memory_limit

    def _validate_params(self) -> None:
        super()._validate_params()
        if self.probability:
            raise ValueError(
                "probability=True: which probabilities? Pass calibration='sigmoid', as "
                "scikit-learn has them, 'isotonic' or 'venn_abers' instead"
            )

    # -- learn ------------------------------------------------------------------------------------

    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: Any = None,
        sample_weight: Any = None,
        ids: Any = None,
    ) -> SVC:
        """Learn further samples.

        Parameters
        ----------
        X, y, sample_weight, ids
            As in `fit`. With ``kernel="precomputed"`` X has the new rows' kernel values against
            the samples of `ids_` in order, then against the new rows themselves.
        classes : array, optional
            If given, labels outside it are an error. Classes never seen before are welcome
            without it, at any call.

        Returns
        -------
        self
        """
        require_among(y, classes)
        self.update(X, y, ids=ids, sample_weight=sample_weight)
        return self

    # -- decide ------------------------------------------------------------------------------------

    def decision_function(self, X: Any) -> FloatArray:
        """Decision values.

        Returns
        -------
        ndarray
            Two classes: (n,), above 0 for ``classes_[1]``. More: (n, n_classes), the row-wise
            argmax being the prediction; or (n, pairs) with ``decision_function_shape="ovo"``,
            above 0 for the first class of the pair. One class: zeros of shape (n, 1).
        """
        pairs = self._without_rounding(X, self._decide(X))
        return self._shape()(pairs)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Labels: the class of the largest decision value."""
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ValueError("break_ties must be False when decision_function_shape is 'ovo'")
        pairs = self._without_rounding(X, self._decide(X))
        labels: npt.NDArray[Any] = self.classes_[votes.winners(pairs, len(self.classes_))]
        return labels

    def _without_rounding(self, X: Any, pairs: FloatArray) -> FloatArray:
        """Decision values of the pairs, 0 where they are 0 but for rounding."""
        rows = as_csr(self._check_at(X))
        return rounding.pairs_without(self._model, pairs, rows, self._own_values(rows))

    def leave_one_out(
        self,
        decisions: bool = True,
        n_jobs: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> LeaveOneOut:
        """What the model would say of each sample, had it never learned that sample.

        Exact for every sample, without a refit; the model is not changed.

        Parameters
        ----------
        decisions : bool, default=True
            Whether decision values are wanted; right or wrong alone is faster.
        n_jobs : int or None, default=None
            Samples removed at a time, as in joblib (-1: as many as there are cores). Threads,
            unless :func:`joblib.parallel_config` says otherwise.
        progress : callable, optional
            Called with (removals done, removals in all).

        Returns
        -------
        LeaveOneOut
        """
        self._require_askable()
        return leave_one_out(self, decisions, n_jobs, progress)

    def _shape(self) -> Shape:
        return partial(
            votes.shaped,
            n_classes=len(self.classes_),
            one_against_one=self.decision_function_shape == "ovo",
        )

    def to_sklearn(self) -> Any:
        """A plain fitted :class:`sklearn.svm.SVC` with the same decision function."""
        check_is_fitted(self)
        return plain_svc(self)

    # -- learned attributes ----------------------------------------------------------------------

    @property
    def support_(self) -> npt.NDArray[np.int32]:
        """Places in `ids_` of the samples that carry weight, grouped by class."""
        model = self._fitted("support_")
        places = model.support()
        codes = self._classes_known().codes(model.target)
        rank = np.array([codes.index(code) for code in model.target[places]], dtype=np.int64)
        return read_only(places[np.argsort(rank, kind="stable")].astype(np.int32))

    @property
    def support_vectors_(self) -> Any:
        """Features of the samples that carry weight (none with a precomputed kernel)."""
        model = self._fitted("support_vectors_")
        if model.kernel.name == "precomputed":
            return read_only(np.empty((0, 0)))
        return read_only(model.features(self.support_))

    @property
    def n_support_(self) -> npt.NDArray[np.int32]:
        """Samples that carry weight, by class."""
        model = self._fitted("n_support_")
        held = model.target[self.support_]
        codes = self._classes_known().codes(model.target)
        return read_only(np.array([np.sum(held == code) for code in codes], dtype=np.int32))

    @property
    def dual_coef_(self) -> FloatArray:
        """Coefficients of the support vectors, laid out as scikit-learn does."""
        model = self._fitted("dual_coef_")
        places = self.support_
        codes = self._classes_known().codes(model.target)
        rank = np.array([codes.index(code) for code in model.target[places]], dtype=np.int64)
        return read_only(votes.stacked(model.weights(places), rank, len(codes)))

    @property
    def intercept_(self) -> FloatArray:
        """B of every pair of classes."""
        model = self._fitted("intercept_")
        sign = 1.0 if len(self.classes_) == 2 else -1.0
        return read_only(sign * model.intercepts())

    @property
    def n_iter_(self) -> npt.NDArray[np.int32]:
        """Rounds and breakpoints of the last update, for every pair of classes."""
        model = self._fitted("n_iter_")
        return filled(np.full(len(model.machines), iterations(self), dtype=np.int32))

    @property
    def class_weight_(self) -> FloatArray:
        """Factors on C, by class."""
        model, known = self._fitted("class_weight_"), self._classes_known()
        return filled([known.class_weight.get(code, 1.0) for code in known.codes(model.target)])

    @property
    def coef_(self) -> FloatArray:
        """Weights of the features, one row a pair of classes; linear kernel only."""
        model = self._fitted("coef_")
        if self.kernel != "linear":
            raise AttributeError(
                f"coef_ exists for kernel='linear' only, and kernel={self.kernel!r}"
            )
        places = model.support()
        sign = 1.0 if len(self.classes_) == 2 else -1.0
        product = model.features(places).T @ model.weights(places)
        return read_only(sign * np.asarray(product).T)

    # -- labels ----------------------------------------------------------------------------------

    def _as_given(self, y: Any) -> Any:
        return exact_labels(y)

    def _check_targets(self, y: Any) -> npt.NDArray[Any]:
        return check_labels(y)

    def _first(self, X: Any, y: Any, *rest: Any, **more: Any) -> tuple[Model, SampleChange]:
        model, change = super()._first(X, y, *rest, **more)
        known = cast(CSVC, model.formulation)
        model.formulation = replace(known, label_type=type_of_labels(y))
        return model, change

    def _classes_known(self) -> CSVC:
        return cast(CSVC, self._model.formulation)

    def _formulation(self, held: Any, rederive: bool = False) -> CSVC:
        if held is None:
            return CSVC(float(self.C))
        resolved: CSVC = replace(held, C=float(self.C))
        if not rederive:
            return resolved
        return self._rederived(resolved, self._model.target, self._model.weight)

    def _rederived(self, known: CSVC, target: IntArray, weight: FloatArray) -> CSVC:
        code_of = {label: code for code, label in known.label.items()}
        factors = self._class_factors(list(code_of), code_of, target, weight)
        return replace(known, class_weight=factors)

    def _held_fixed(self) -> dict[str, Any]:
        held = super()._held_fixed()
        if self.class_weight is not None:
            known = self._classes_known()
            held["class_weight"] = {
                known.label[code]: factor for code, factor in known.class_weight.items()
            }
        return held

    def _after_change(self) -> None:
        model = self._model
        model.calibration = None
        self.classes_ = self._classes_known().classes(model.target)

    def _encode(
        self, labels: npt.NDArray[Any], weights: FloatArray, model: Model | None
    ) -> tuple[CSVC, IntArray]:
        """Class codes of labels, and a formulation that knows the classes among them."""
        known = self._formulation(None) if model is None else self._classes_known()
        code_of = {label: code for code, label in known.label.items()}
        if code_of and len(labels) <= FEW_LABELS:  # seldom is one of them new
            codes_of_few = [code_of.get(label) for label in labels.tolist()]
            if None not in codes_of_few:
                return known, np.array(codes_of_few, dtype=np.int64)
        unique, inverse = np.unique(labels, return_inverse=True)
        following = 1 + max(known.label, default=-1)
        mixed = [label for label in unique.tolist() if code_of and label not in code_of]
        for label in mixed:
            if isinstance(label, str) != isinstance(next(iter(code_of)), str):
                raise ValueError(
                    f"y has the label {label!r}, but the labels so far are like "
                    f"{next(iter(code_of))!r}; use one type of label"
                )
        fresh = [label for label in unique.tolist() if label not in code_of]
        label_array([*code_of, *fresh])  # refuses what `classes_` could not hold
        for label in fresh:
            code_of[label] = following
            following += 1
        codes = np.array([code_of[label] for label in unique.tolist()], dtype=np.int64)
        target = codes[inverse]
        labels_of = {code: label for label, code in code_of.items()}
        if not fresh:
            return known, target
        factors = dict(known.class_weight)
        every_target, every_weight = target, weights
        if model is not None:
            every_target = np.concatenate([model.target, target])
            every_weight = np.concatenate([model.weight, weights])
        factors.update(self._class_factors(fresh, code_of, every_target, every_weight))
        return replace(known, label=labels_of, class_weight=factors), target

    def _class_factors(
        self, fresh: list[Any], code_of: dict[Any, int], target: IntArray, weights: FloatArray
    ) -> dict[int, float]:
        """Factors on C of some classes, on all samples with these codes and weights."""
        if self.class_weight is None:
            return {}
        if not isinstance(self.class_weight, str):
            return {code_of[label]: self._own_factor(label) for label in fresh}
        n_classes = len(np.unique(target))
        total = float(weights.sum())
        factors = {}
        for label in fresh:
            own = float(weights[target == code_of[label]].sum())
            factors[code_of[label]] = total / (n_classes * own) if own > 0.0 else 1.0
        return factors

    def _own_factor(self, label: Any) -> float:
        """The factor on C that `class_weight`, a dictionary, has for a class."""
        factor: Any = self.class_weight.get(label, 1.0)  # type: ignore[union-attr]
        if not isinstance(factor, Real) or not 0.0 <= float(factor) < np.inf:
            raise ValueError(
                f"class_weight={self.class_weight!r} gives the class {label!r} the weight "
                f"{factor!r}; weights must be finite numbers >= 0"
            )
        return float(factor)
