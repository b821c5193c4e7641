# SPDX-License-Identifier: BSD-3-Clause
"""Feature maps phi for the least-squares machines, as scikit-learn transformers.

==================  ==============================================================
Linear              phi(x) = x
Polynomial          all monomials, so that phi(x)'phi(z) = (gamma x'z + coef0)^degree
RandomFourier       sqrt(2/D) cos(omega'x + beta), E phi(x)'phi(z) = exp(-gamma |x-z|^2)
Nystroem            K(x, L) K(L, L)^-1/2 for given landmarks L
==================  ==============================================================

None looks at the rows it is fitted on, only at how many columns they have: what comes or goes
later cannot change what a map means. The landmarks of `Nystroem` are data all the same, and stay
in the model whatever it forgets.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from numbers import Integral, Real
from typing import Any, ClassVar, Final

import numpy as np
import scipy.sparse as sp
from scipy.special import ndtri
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from adiabat._core.kernel_values import multiply
from adiabat.inputs import require_csr
from adiabat.kernels import make_kernel
from adiabat.preprocessing.basis import FILL_GAPS, is_linear, same_settings
from adiabat.typing import FloatArray

__all__ = ["Linear", "Nystroem", "Polynomial", "RandomFourier"]


# Eigenvalues of the landmarks' kernel below this share of the largest are noise, and left out.
_NEGLIGIBLE: Final = 1e-12


class FeatureMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Base of the maps: `fit` learns the number of columns, `transform` maps rows."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}
    _n_features_out: int

    def fit(self, X: Any, y: Any = None) -> Any:
        """Set up the map for rows of this many columns; their values are not looked at."""
        self._validate_params()
        X = _checked(self, X, reset=True)
        self._set_up(X.shape[1])
        return self

    def transform(self, X: Any) -> FloatArray:
        """The features of some rows, dense."""
        check_is_fitted(self, "_n_features_out")
        return self._map(spelled_out(_checked(self, X, reset=False)))

    def _set_up(self, width: int) -> None:
        raise NotImplementedError

    def _map(self, X: FloatArray) -> FloatArray:
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class Linear(FeatureMap):
    """The features as they are.

    Examples
    --------
    >>> from adiabat import LSSVC
    >>> from adiabat.feature_maps import Linear
    >>> model = LSSVC(feature_map=Linear()).fit([[0.0], [1.0], [2.0]], [0, 1, 1])
    >>> model.predict([[1.9]]).tolist()
    [1]
    """

    def _set_up(self, width: int) -> None:
        self._n_features_out = width

    def _map(self, X: FloatArray) -> FloatArray:
        return X


class Polynomial(FeatureMap):
    """All monomials, scaled so that their inner product is the polynomial kernel.

    Parameters
    ----------
    degree : int, default=2
        Highest degree.
    gamma : float, default=1.0
        Factor on the inner product.
    coef0 : float, default=1.0
        Constant >= 0; with 0 only monomials of exactly `degree` are there.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 2.0], [3.0, -1.0]])
    >>> phi = Polynomial(degree=2).fit_transform(X)
    >>> np.allclose(phi @ phi.T, (X @ X.T + 1.0) ** 2)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "degree": [Interval(Integral, 1, None, closed="left")],
        "gamma": [Interval(Real, 0.0, None, closed="neither")],
        "coef0": [Interval(Real, 0.0, None, closed="left")],
    }

    def __init__(self, degree: int = 2, gamma: float = 1.0, coef0: float = 1.0) -> None:
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0

    def _set_up(self, width: int) -> None:
        columns = width + (self.coef0 > 0.0)
        chosen = list(itertools.combinations_with_replacement(range(columns), self.degree))
        self._factors = np.array(chosen, dtype=np.int64)
        ways = [
            math.factorial(self.degree)
            / math.prod(math.factorial(row.count(column)) for column in set(row))
            for row in chosen
        ]
        self._scale = np.sqrt(np.array(ways))
        self._n_features_out = len(chosen)

    def _map(self, X: FloatArray) -> FloatArray:
        X = math.sqrt(self.gamma) * X
        if self.coef0 > 0.0:
            X = np.column_stack([X, np.full(len(X), math.sqrt(self.coef0))])
        phi = np.tile(self._scale, (len(X), 1))
        for factor in self._factors.T:
            phi *= X[:, factor]
        return phi


class RandomFourier(FeatureMap):
    """Random Fourier features of the Gaussian kernel ``exp(-gamma |x - z|^2)``.

    Parameters
    ----------
    n_components : int, default=100
        How many; the error of the kernel falls with its root.
    gamma : float, default=1.0
        Of the kernel. A number: ``"scale"`` would depend on the rows.
    seed : int, default=0
        The same seed gives the same features, on every machine and with every version.

    Examples
    --------
    >>> from adiabat.feature_maps import RandomFourier
    >>> phi = RandomFourier(gamma=1.0, n_components=50, seed=0)
    >>> phi.fit_transform([[0.0], [1.0]]).shape
    (2, 50)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "gamma": [Interval(Real, 0.0, None, closed="neither")],
        "seed": [Interval(Integral, 0, None, closed="left")],
    }

    def __init__(self, n_components: int = 100, gamma: float = 1.0, seed: int = 0) -> None:
        self.n_components = n_components
        self.gamma = gamma
        self.seed = seed

    def _set_up(self, width: int) -> None:
        # Raw bits, since NumPy promises the same bits for ever, but not the same normal numbers.
        count = (width + 1) * self.n_components
        bits = np.random.PCG64(int(self.seed)).random_raw(count)
        uniform = ((bits >> np.uint64(11)) + 0.5) * 2.0**-53
        uniform = uniform.reshape(width + 1, self.n_components)
        self._omega = math.sqrt(2.0 * self.gamma) * ndtri(uniform[:width])
        self._beta = 2.0 * np.pi * uniform[width]
        self._n_features_out = int(self.n_components)

    def _map(self, X: FloatArray) -> FloatArray:
        phi = multiply(X, self._omega)
        phi += self._beta
        np.cos(phi, out=phi)
        phi *= math.sqrt(2.0 / self.n_components)
        return phi


class Nystroem(FeatureMap):
    """Kernel values against landmarks, whitened: phi(x) = K(x, L) K(L, L)^-1/2.

    Parameters
    ----------
    landmarks : array of shape (n_landmarks, n_features)
        Rows to compare with. They are data that the model keeps whatever it forgets: choose rows
        that need not be forgotten, such as made-up ones. The certificate names them.
    kernel : {"rbf", "poly", "linear", "laplacian"}, default="rbf"
        The kernel.
    gamma, degree, coef0
        Its parameters, as numbers.

    Examples
    --------
    >>> from adiabat.feature_maps import Nystroem
    >>> phi = Nystroem(landmarks=[[0.0], [1.0]], gamma=1.0)
    >>> phi.fit_transform([[0.5]]).shape
    (1, 2)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "landmarks": ["array-like"],
        "kernel": [StrOptions({"rbf", "poly", "linear", "laplacian"})],
        "gamma": [Interval(Real, 0.0, None, closed="neither")],
        "degree": [Interval(Integral, 1, None, closed="left")],
        "coef0": [Interval(Real, 0.0, None, closed="left")],
    }

    def __init__(
        self,
        landmarks: Any = None,
        kernel: str = "rbf",
        gamma: float = 1.0,
        degree: int = 3,
        coef0: float = 1.0,
    ) -> None:
        self.landmarks = landmarks
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0

    def _set_up(self, width: int) -> None:
        landmarks = check_array(self.landmarks, dtype=np.float64, input_name="landmarks")
        if landmarks.shape[1] != width:
            raise ValueError(
                f"landmarks has {landmarks.shape[1]} columns, X has {width}; they must agree"
            )
        self._kernel = make_kernel(
            self.kernel, gamma=self.gamma, degree=self.degree, coef0=self.coef0, X=landmarks
        )
        values, vectors = np.linalg.eigh(self._kernel.block(landmarks, landmarks))
        kept = values > _NEGLIGIBLE * values[-1]
        self._landmarks = landmarks.copy()
        self._whitening = vectors[:, kept] / np.sqrt(values[kept])
        self._n_features_out = int(kept.sum())

    def _map(self, X: FloatArray) -> FloatArray:
        return multiply(self._kernel.block(X, self._landmarks), self._whitening)


def _checked(feature_map: FeatureMap, X: Any, reset: bool) -> Any:
    X = require_csr(X) if sp.issparse(X) else X
    return validate_data(feature_map, X, accept_sparse="csr", dtype=np.float64, reset=reset)


def spelled_out(X: Any) -> FloatArray:
    """Rows as a dense array."""
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)


def mapped(feature_map: Any, X: Any) -> FloatArray:
    """Features of checked rows, dense; of no map, the rows themselves."""
    if not is_linear(feature_map):
        return spelled_out(X if feature_map is None else feature_map.transform(X))
    phi = spelled_out(feature_map.transform(spelled_out(X) if sp.issparse(X) else X))
    if np.isnan(phi).any():
        raise ValueError(f"X has gaps that nothing fills; {FILL_GAPS}")
    return phi


def same_map(one: Any, other: Any) -> bool:
    """Whether two feature maps, or None for none, have the same meaning."""
    if one is other:
        return True
    if is_linear(one):
        return same_settings(one, other)
    if type(one) is not type(other) or not hasattr(one, "get_params"):
        return False
    mine, theirs = one.get_params(), other.get_params()
    return mine.keys() == theirs.keys() and all(
        np.array_equal(mine[name], theirs[name]) for name in mine
    )


def description(feature_map: Any) -> dict[str, Any]:
    """What a fitted map adds to the things that retraining must hold fixed."""
    if feature_map is None or isinstance(feature_map, Linear):
        return {}
    held: dict[str, Any] = {"feature_map": type(feature_map).__name__}
    if isinstance(feature_map, Nystroem):
        rows = np.ascontiguousarray(feature_map._landmarks)
        digest = hashlib.sha256(rows.tobytes()).hexdigest()[:12]
        held["landmarks"] = f"{len(rows)} rows of data, sha256 {digest}"
    elif isinstance(feature_map, RandomFourier):
        held["seed"] = int(feature_map.seed)
    elif not isinstance(feature_map, FeatureMap):
        held["feature_map"] += " as fitted on the first batch"
    return held


#: The maps that a model file can name, and no others.
BY_NAME: Final = {kind.__name__: kind for kind in (Linear, Nystroem, Polynomial, RandomFourier)}
