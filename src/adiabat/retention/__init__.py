# SPDX-License-Identifier: BSD-3-Clause
"""What a model keeps: policies for the parameter `retain` of the estimators.

Whatever is kept, the model is the exact optimum on it, and its certificate says how many samples
that are, out of how many. A policy of one's own is a class with one method::

    from adiabat.retention import Policy, register

    @register                                  # only needed for model files
    class EveryOther(Policy):
        def leaving(self, held):
            return range(0, held.n - held.n_new, 2)
"""

from adiabat.retention.adaptive import Adaptive
from adiabat.retention.budget import Budget
from adiabat.retention.everything import All
from adiabat.retention.policy import Held, Policy, register
from adiabat.retention.reserve import Reserve
from adiabat.retention.support import Support
from adiabat.retention.window import Window

__all__ = [
    "Adaptive", "All", "Budget", "Held", "Policy", "Reserve", "Support", "Window", "register",
]  # fmt: skip
