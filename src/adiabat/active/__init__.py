# SPDX-License-Identifier: BSD-3-Clause
"""Which sample should be labelled next? (LGKM06 §6.2)."""

from adiabat.active.learner import ActiveLearner
from adiabat.active.queries import query

__all__ = ["ActiveLearner", "query"]
