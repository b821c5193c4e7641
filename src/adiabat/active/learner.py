# SPDX-License-Identifier: BSD-3-Clause
"""The loop of active learning, in which a pool's decision values follow the model.

Of K(pool, support) only the columns of samples that come to carry weight are computed, and only
the weights that changed are applied: f += K[:, changed] du. Changes of the model that the learner
has not made itself are noticed, and all is computed anew.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from adiabat.active.queries import class_values, first_places, require_count, require_strategy
from adiabat.engine.report import UpdateReport
from adiabat.estimators.arguments.validation import as_csr, n_rows
from adiabat.estimators.svc import SVC
from adiabat.typing import FloatArray, IntArray

# Updates after which the sum is made anew from the columns held, so that rounding does not add up.
RENEWAL = 64


class ActiveLearner:
    """Ask for labels of a pool, teach the model, and know the pool's decision values after each.

    Parameters
    ----------
    model : SVC
        A fitted :class:`adiabat.SVC`, with a kernel other than ``"precomputed"``; it is taught,
        not copied.
    pool : {array, data frame, sparse} of shape (n_pool, n_features)
        Samples without labels.
    strategy : {"near_boundary", "largest_positive"}, default="near_boundary"
        As in :func:`query`.

    Attributes
    ----------
    remaining : ndarray
        Places in the pool of the samples not yet taught.
    scores : ndarray
        Their decision values.
    columns_computed : int
        Columns of kernel values against the pool computed so far.

    Examples
    --------
    >>> import numpy as np
    >>> from adiabat import SVC
    >>> from adiabat.active import ActiveLearner
    >>> pool = np.linspace(0.0, 9.0, 200)[:, None]
    >>> model = SVC(kernel="linear", C=1e4).fit([[0.0], [9.0]], [0, 1])
    >>> learner = ActiveLearner(model, pool)
    >>> for _ in range(8):
    ...     asked = learner.query()
    ...     report = learner.teach(asked, (pool[asked, 0] > 2.0).astype(int))
    >>> model.predict([[1.9], [2.1]])
    array([0, 1])
    """

    _columns: FloatArray  # kernel values of the remaining samples against `_names`
    _sums: FloatArray  # their decision values less b, by machine
    _weights: FloatArray
    _expected: UpdateReport  # the last update that is known of

    def __init__(self, model: Any, pool: Any, strategy: str = "near_boundary") -> None:
        if not isinstance(model, SVC):
            raise TypeError(f"model={model!r} is not an adiabat.SVC; use query with other models")
        require_strategy(strategy)
        check_is_fitted(model)
        if model.kernel == "precomputed":
            raise ValueError(
                "kernel='precomputed' has no rows to compute the pool's kernel values from; use "
                "query with the values of the pool against ids_"
            )
        self.model = model
        self.strategy = strategy
        self.remaining: IntArray = np.arange(n_rows(pool))
        self.columns_computed = 0
        self._pool = as_csr(model._check_rows(pool))
        self._start()

    @property
    def scores(self) -> FloatArray:
        """Decision values of the remaining samples, one a class where there are more than two."""
        self._follow()
        if len(self.model.classes_) < 2:
            return np.zeros(len(self.remaining))
        return class_values(self.model, self._sums + self.model._model.biases())

    def query(self, n: int = 1) -> IntArray:
        """Places in the pool of the n samples to be labelled next."""
        count = require_count(n, len(self.remaining))
        return self.remaining[first_places(self.scores, self.strategy, count)]

    def teach(self, places: Any, y: Any, ids: Any = None) -> UpdateReport:
        """Learn samples of the pool with the labels given; they are then not asked for again.

        Parameters
        ----------
        places : sequence of int
            Places in the pool, as `query` gives them.
        y : sequence
            Their labels.
        ids : sequence, optional
            Names of the samples in the model.

        Returns
        -------
        UpdateReport
        """
        chosen = np.atleast_1d(np.asarray(places))
        if chosen.ndim != 1 or (chosen.size and chosen.dtype.kind not in "iu"):
            raise ValueError(f"places={places!r} must be a sequence of integers")
        chosen = chosen.astype(np.int64)
        if not np.isin(chosen, self.remaining).all() or len(np.unique(chosen)) < len(chosen):
            raise ValueError(
                f"places={places!r} must be among `remaining`, each once: a sample is taught once"
            )
        kept = np.flatnonzero(~np.isin(self.remaining, chosen))
        self._follow()
        report = self._expected = self.model.update(self._rows(chosen), y, ids=ids)
        self.remaining = self.remaining[kept]
        self._columns, self._sums = self._columns[kept], self._sums[kept]
        return report

    # -- within ----------------------------------------------------------------------------------

    def _rows(self, places: IntArray) -> Any:
        return self._pool[places]

    def _start(self) -> None:
        """Nothing known of the model."""
        self._expected = self.model.last_update_
        self._version = -1
        self._machines: list[Any] = []
        self._names: list[Any] = []  # ids of the columns
        self._columns = np.empty((len(self.remaining), 0))
        self._weights = np.empty((0, 0))
        self._sums = np.empty((len(self.remaining), 0))
        self._steps = 0

    def _follow(self) -> None:
        """Bring kernel columns and sums to where the model is."""
        model = self.model._model
        if self.model.last_update_ is not self._expected:
            self._start()  # another kernel, it may be, or other features under the same id
        elif model.version == self._version:
            return
        places = model.support()
        names = model.ledger.ids[places].tolist()
        weights = model.weights(places)
        known = {name: column for column, name in enumerate(self._names)}
        place_of = np.array([known.get(name, -1) for name in names], dtype=np.int64)
        columns = np.empty((len(self.remaining), len(names)))
        old = np.flatnonzero(place_of >= 0)
        fresh = np.flatnonzero(place_of < 0)
        columns[:, old] = self._columns[:, place_of[old]]
        if len(fresh):
            rows = model.features(places[fresh])
            columns[:, fresh] = model.kernel.block(self._rows(self.remaining), rows)
            self.columns_computed += len(fresh)
        machines = [key for key, _ in model.machines]
        self._steps += 1
        if machines == self._machines and self._steps % RENEWAL:
            change = weights.copy()
            change[old] -= self._weights[place_of[old]]
            moved = np.flatnonzero(change.any(axis=1))
            self._sums = self._sums + columns[:, moved] @ change[moved]
            gone = np.setdiff1d(np.arange(len(self._names)), place_of[old])
            self._sums -= self._columns[:, gone] @ self._weights[gone]
        else:
            self._sums = columns @ weights
        self._machines, self._names = machines, names
        self._columns, self._weights = columns, weights
        self._version = model.version
