# SPDX-License-Identifier: BSD-3-Clause
"""The support vectors stay (SLS99)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from adiabat.retention.policy import Held, Policy, register


@register
class Support(Policy):
    """After each batch only the support vectors stay, to be learned with the next (SLS99).

    Before a classifier has seen a second class there are no support vectors, and all samples stay.
    Later the others go without a trace in the decision function, except
    where a formulation depends on the number of samples: nu of :class:`adiabat.OneClassSVM` is a
    part of the samples held, and so after each batch of its support vectors.

    Examples
    --------
    >>> from adiabat import SVC
    >>> from adiabat.retention import Support
    >>> model = SVC(kernel="linear", C=10.0, retain=Support())
    >>> _ = model.fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> model.ids_
    array([1, 2])
    >>> model.certificate().n_samples, model.certificate().n_seen
    (2, 4)
    """

    def leaving(self, held: Held) -> Iterable[int]:
        """Samples without weight."""
        return np.flatnonzero(held.decided & (held.weight == 0.0)).tolist()
