# SPDX-License-Identifier: BSD-3-Clause
"""The support vectors and what is near the margin stay (CP01 §2.6)."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Real
from typing import Any

import numpy as np

from adiabat.retention.policy import Held, Policy, register


@register
class Reserve(Policy):
    """Samples with 0 < g < eps stay beside the support vectors (CP01 §2.6).

    g is how far a sample is beyond its margin, in units of the decision function. The larger eps,
    the less likely is it that a sample is missing that later ones would have made a support vector.

    Parameters
    ----------
    eps : float
        Above 0.

    Examples
    --------
    >>> from adiabat import SVC
    >>> from adiabat.retention import Reserve
    >>> model = SVC(kernel="linear", C=10.0, retain=Reserve(0.5))
    >>> model.fit([[0.0], [1.0], [1.1], [5.0]], [0, 1, 1, 1]).ids_
    array([0, 1, 2])
    """

    def __init__(self, eps: float) -> None:
        given: Any = eps
        if not isinstance(given, Real) or not 0.0 < float(given) < np.inf:
            raise ValueError(
                f"Reserve: eps={eps!r} must be a finite number > 0; Support() keeps no reserve, "
                "All() everything"
            )
        self.eps = float(given)

    def leaving(self, held: Held) -> Iterable[int]:
        """Samples without weight that are eps or more beyond the margin."""
        beyond = (held.weight == 0.0) & (held.slack >= self.eps)
        return np.flatnonzero(held.decided & beyond).tolist()
