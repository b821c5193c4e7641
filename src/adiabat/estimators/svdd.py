# SPDX-License-Identifier: BSD-3-Clause
"""The smallest sphere around most of the data, which learns and unlearns."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from adiabat.estimators.arguments.validation import KERNEL_CONSTRAINTS, as_csr, n_rows
from adiabat.estimators.kernel.scikit_learn import plain_sphere
from adiabat.estimators.novelty import NoveltyDetector
from adiabat.formulations.svdd import Sphere
from adiabat.retention import Policy
from adiabat.typing import FloatArray


class SVDD(NoveltyDetector):
    """Support vector data description: the smallest sphere, exact after every change (LGKM06 (23)).

    A sample outside costs C times its squared distance to the sphere, so that at most 1 / C samples
    (of weight 1) are left outside. While the model holds fewer than 1 / C samples the weights
    cannot sum to 1 within their bounds; C is then taken as 1 / n, so that the centre is the mean of
    the samples, and the sphere ends at the nearest of them. `partial_fit` may start there, and
    `forget` may end there; `fit` refuses a batch that is too small for C.

    Parameters
    ----------
    C : float, default=0.1
        Price of a sample outside; 1 or more leaves none outside.
    kernel, degree, gamma, coef0, tol, solver, retain, verbose, memory_limit
        As in :class:`adiabat.SVC`.

    Attributes
    ----------
    radius_ : float
        Radius of the sphere in feature space.
    offset_ : float
        Minus the squared radius.
    ids_ : ndarray
        Ids of the samples held, in the order in which they were learned.
    support_, support_vectors_, n_support_, dual_coef_
        The samples that carry weight and their weights, which sum to 1.
    gamma_ : float
        The gamma in force.
    last_update_ : UpdateReport
        What the last call that changed the model did.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from adiabat import SVDD
    >>> model = SVDD(C=1.0, kernel="linear").fit([[0.0, 0.0], [2.0, 0.0], [1.0, 0.5]])
    >>> round(model.radius_, 6)
    1.0
    >>> model.predict([[1.0, 0.9], [1.0, 1.1]])
    array([ 1, -1])
    """

    _shaping: ClassVar[tuple[str, ...]] = ("C",)
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "C": [Interval(Real, 0.0, None, closed="neither")],
        **KERNEL_CONSTRAINTS,
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        C: float = 0.1,
        kernel: str | Callable[[Any, Any], Any] = "rbf",
        degree: float = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        tol: float = 1e-9,
        solver: str = "auto",
        retain: Policy | None = None,
        verbose: bool | int = False,
        memory_limit: float | None = None,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.solver = solver
        self.retain = retain
        self.verbose = verbose
        self.memory_limit = memory_limit

    @property
    def radius_(self) -> float:
        """Radius of the sphere in feature space."""
        model = self._fitted("radius_")
        return float(np.sqrt(max(0.0, 2.0 * float(model.biases()[0]) + self._centre_square())))

    @property
    def offset_(self) -> float:
        """Minus the squared radius; ``decision_function = score_samples - offset_``."""
        return -(self.radius_**2)

    def centre_distance(self, X: Any, diagonal: Any = None) -> FloatArray:
        """Distances to the centre of the sphere, in feature space.

        Parameters
        ----------
        X : {array, data frame, sparse} of shape (n_samples, n_features)
            Samples; for ``kernel="precomputed"`` their kernel values against `ids_`.
        diagonal : array of shape (n_samples,), optional
            For ``kernel="precomputed"`` the values k(x, x) of the samples. Not needed where they
            are the same for all samples, as they are with an RBF kernel.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        distances: FloatArray = np.sqrt(np.maximum(-self.score_samples(X, diagonal), 0.0))
        return distances

    def score_samples(self, X: Any, diagonal: Any = None) -> FloatArray:
        """The negative squared distance to the centre: larger is more alike.

        Parameters
        ----------
        X, diagonal
            As in `centre_distance`.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self.decision_function(X, diagonal) + self.offset_

    def decision_function(self, X: Any, diagonal: Any = None) -> FloatArray:
        """The squared radius less the squared distance to the centre: above 0 inside.

        Parameters
        ----------
        X, diagonal
            As in `centre_distance`.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        values, own = 2.0 * self._decide(X)[:, 0], self._own(X, diagonal)
        rows = as_csr(self._check_at(X))
        return self._without_rounding(values - own, own, rows, 0.5 * own)

    def to_sklearn(self) -> Any:
        """A plain fitted :class:`sklearn.svm.OneClassSVM` with the same decision function.

        It exists for kernels with one k(x, x) for all x, such as ``rbf``.
        """
        check_is_fitted(self)
        return plain_sphere(self)

    # -- within ----------------------------------------------------------------------------------

    def _check_whole(self, weights: FloatArray) -> None:
        mass = float(weights.sum())
        if mass * self.C < 1.0 - 1e-12:
            raise ValueError(
                f"C={self.C!r} is too small for n_samples={len(weights)} of weight {mass:g}: the "
                f"weights could not sum to 1. Use C >= {1.0 / mass:.6g}, or start with partial_fit "
                "if more samples follow."
            )

    def _formulation(self, held: Any, rederive: bool = False) -> Sphere:
        return Sphere(float(self.C), float(self.C))

    def _decision_from(self, values: FloatArray) -> FloatArray:
        own = self._held_values()
        return self._without_rounding(2.0 * values - own, own, self._held_points(), 0.5 * own)

    def _centre_square(self) -> float:
        """|a|^2 = u'Ku, from the residuals of the rows with weight: Ku = r - b + t."""
        _, machine = self._model.machines[0]
        return float(machine.u @ (machine.r - machine.b + machine.t))

    def _own(self, X: Any, diagonal: Any) -> FloatArray:
        """k(x, x) of new samples."""
        model = self._model
        if self.kernel != "precomputed":
            return model.kernel.diagonal(as_csr(self._check_rows(X)))
        if diagonal is not None:
            return np.asarray(diagonal, dtype=np.float64)
        held = model.solver.samples.diagonal
        if np.ptp(held) > 1e-12 * np.max(np.abs(held)):
            raise ValueError(
                "diagonal is missing: with kernel='precomputed' and values k(x, x) that differ, "
                "pass those of the rows of X to decision_function or centre_distance"
            )
        return np.full(n_rows(X), held.mean())
