# SPDX-License-Identifier: BSD-3-Clause
"""Parameters and attributes that scikit-learn's machines have because of how LIBSVM solves.

The optimum does not depend on them, so they are taken and change nothing. A value that would ask
for another result is refused, with what to do instead.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from sklearn.utils._param_validation import Interval

from adiabat.estimators.arguments.validation import read_only

#: What every machine of scikit-learn takes for LIBSVM's sake.
LIBSVM_CONSTRAINTS: Final[dict[str, list[Any]]] = {
    "shrinking": ["boolean"],
    "cache_size": [Interval(Real, 0, None, closed="neither")],
    "verbose": ["verbose"],
    "max_iter": [Interval(Integral, -1, None, closed="left")],
}

#: Limits from here on are never meant to stop a fit before its end.
ENOUGH: Final = 1_000


class LibsvmParameters:
    """A machine that can be written as scikit-learn's is."""

    max_iter: int

    def _validate_params(self) -> None:
        super()._validate_params()  # type: ignore[misc]
        if self.max_iter != -1 and self.max_iter < ENOUGH:
            raise ValueError(
                f"max_iter={self.max_iter!r}: every fit ends at the optimum, and there is no "
                "stopping before it; leave max_iter at -1, or at 1,000 or more. To fit faster, use "
                "fewer rows"
            )

    @property
    def fit_status_(self) -> int:
        """0: the model is the optimum, or `fit` would have raised."""
        self._fitted("fit_status_")  # type: ignore[attr-defined]
        return 0

    @property
    def shape_fit_(self) -> tuple[int, int]:
        """How many samples are held, and how many features they have."""
        model: Any = self._fitted("shape_fit_")  # type: ignore[attr-defined]
        return len(model), int(self.n_features_in_)  # type: ignore[attr-defined]

    @property
    def n_iter_(self) -> Any:
        """Rounds and breakpoints of the last update, at least 1."""
        self._fitted("n_iter_")  # type: ignore[attr-defined]
        return iterations(self)


def iterations(estimator: Any) -> int:
    """Rounds and breakpoints of the last update of an estimator, at least 1."""
    report = estimator.last_update_
    return int(max(1, report.rounds + report.breakpoints))


def filled(values: Any) -> npt.NDArray[Any]:
    """A read-only array of these values."""
    return read_only(np.array(values))
