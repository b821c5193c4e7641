# SPDX-License-Identifier: BSD-3-Clause
"""The one-class machine that learns and unlearns."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from adiabat.estimators.arguments.validation import KERNEL_CONSTRAINTS, as_csr
from adiabat.estimators.kernel.libsvm_parameters import LIBSVM_CONSTRAINTS, LibsvmParameters
from adiabat.estimators.kernel.scikit_learn import plain_one_class
from adiabat.estimators.novelty import NoveltyDetector
from adiabat.formulations.one_class import OneClass
from adiabat.retention import Policy
from adiabat.typing import FloatArray


class OneClassSVM(LibsvmParameters, NoveltyDetector):
    """One-class SVM (Schoelkopf's nu form) that learns and unlearns exactly.

    At most a part `nu` of the samples is left outside, at least a part `nu` carries weight. Both
    are parts of the samples now in the model: every addition and removal moves them.

    Parameters
    ----------
    nu : float, default=0.5
        The part of the samples, above 0 and at most 1.
    kernel, degree, gamma, coef0, tol, solver, retain, verbose, memory_limit
        As in :class:`adiabat.SVC`.
    shrinking, cache_size, max_iter
        Taken for scikit-learn's sake; they change nothing. `max_iter` below 1,000 is refused: a fit
        ends at the optimum.

    Attributes
    ----------
    offset_ : float
        What separates inside from outside: decision_function = score_samples - offset_.
    ids_ : ndarray
        Ids of the samples held, in the order in which they were learned.
    support_, support_vectors_, n_support_, dual_coef_, intercept_, coef_
        As in :class:`sklearn.svm.OneClassSVM`; `coef_` for the linear kernel only.
    gamma_ : float
        The gamma in force.
    n_iter_, fit_status_, shape_fit_, class_weight_
        As in scikit-learn; `n_iter_` counts rounds and breakpoints of the last update.
    last_update_ : UpdateReport
        What the last call that changed the model did.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from adiabat import OneClassSVM
    >>> model = OneClassSVM(nu=0.6, gamma=0.5).fit([[0.0], [0.1], [0.2], [5.0]])
    >>> model.predict([[0.1], [5.0]])
    array([ 1, -1])
    >>> model.forget([0, 1, 2]).predict([[0.1], [5.0]])
    array([-1,  1])
    """

    _shaping: ClassVar[tuple[str, ...]] = ("nu",)
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "nu": [Interval(Real, 0.0, 1.0, closed="right")],
        **KERNEL_CONSTRAINTS,
        **LIBSVM_CONSTRAINTS,
    }

    def __init__(
        self,
        nu: float = 0.5,
        kernel: str | Callable[[Any, Any], Any] = "rbf",
        degree: float = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        tol: float = 1e-9,
        solver: str = "auto",
        retain: Policy | None = None,
        shrinking: bool = True,
        cache_size: float = 200,
        verbose: bool | int = False,
        max_iter: int = -1,
        memory_limit: float | None = None,
    ) -> None:
        self.nu = nu
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.solver = solver
        self.retain = retain
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.memory_limit = memory_limit

    @property
    def offset_(self) -> float:
        """What separates inside from outside, on the scale of `score_samples`."""
        return -float(self.intercept_[0])

    def score_samples(self, X: Any) -> FloatArray:
        """The weighted sum of kernel values to the samples learned: larger is more alike."""
        return self.decision_function(X) + self.offset_

    def decision_function(self, X: Any) -> FloatArray:
        """`score_samples` less `offset_`: above 0 inside, below 0 outside."""
        values, rows = self._decide(X)[:, 0], as_csr(self._check_at(X))
        return self._without_rounding(values, self._own_values(rows), rows)

    def to_sklearn(self) -> Any:
        """A plain fitted :class:`sklearn.svm.OneClassSVM` with the same decision function."""
        check_is_fitted(self)
        return plain_one_class(self)

    def _formulation(self, held: Any, rederive: bool = False) -> OneClass:
        return OneClass(float(self.nu))
