# SPDX-License-Identifier: BSD-3-Clause
"""Bets against exchangeability, on p-values as they come.

While a stream is exchangeable its smoothed conformal p-values are independent and uniform, and no
strategy of betting on them gains: the capital M is a martingale from 1 on, and P(sup M >= odds) is
at most 1 / odds (Ville). A large capital is evidence of drift: at odds of 100 an alarm is false on
one stream of 100 at most. Vovk, Gammerman and Shafer 2005; Vovk et al., Retrain or not retrain,
2021.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

# A p-value of 0 would be infinite evidence; smoothed ones are 0 by rounding at most.
LEAST = 1e-12


class Martingale:
    """Capital of a gambler who bets against exchangeability.

    Attributes
    ----------
    log_value : float
        Logarithm of the capital now.
    largest : float
        The largest capital so far.
    """

    def __init__(self) -> None:
        self.log_value = 0.0
        self.largest = 1.0

    @property
    def value(self) -> float:
        """The capital now; 1 at the start."""
        return math.exp(min(self.log_value, 700.0))

    def update(self, p: float) -> float:
        """Bet on one p-value, and return the capital after it."""
        if not 0.0 <= p <= 1.0:
            raise ValueError(f"p={p!r} must be between 0 and 1")
        self.log_value = self._bet(max(float(p), LEAST))
        self.largest = max(self.largest, self.value)
        return self.value

    def reset(self) -> None:
        """Begin anew with a capital of 1."""
        self.__dict__.update(type(self)(**self._parameters()).__dict__)

    def _bet(self, p: float) -> float:
        """The logarithm of the capital once p is known."""
        raise NotImplementedError

    def _parameters(self) -> dict[str, Any]:
        return {}


class PowerMartingale(Martingale):
    """Bets on small p-values: the capital is multiplied by epsilon p^(epsilon - 1).

    Parameters
    ----------
    epsilon : float, default=0.5
        Between 0 and 1, both excluded; smaller bets more.
    """

    def __init__(self, epsilon: float = 0.5) -> None:
        if not 0.0 < epsilon < 1.0:
            raise ValueError(f"epsilon={epsilon!r} must be between 0 and 1, both excluded")
        super().__init__()
        self.epsilon = epsilon

    def _bet(self, p: float) -> float:
        return self.log_value + math.log(self.epsilon) + (self.epsilon - 1.0) * math.log(p)

    def _parameters(self) -> dict[str, Any]:
        return {"epsilon": self.epsilon}


class SimpleJumper(Martingale):
    """Bets on small, on large or on no p-values, and moves between the three.

    A part of the capital stands on each of 1 + e (p - 1/2), e in (-1, 0, 1); with every step a part
    `jump` of it is shared out anew. It finds drift that begins late, and p-values that crowd at
    either end.

    Parameters
    ----------
    jump : float, default=0.01
        Above 0 and at most 1.
    """

    def __init__(self, jump: float = 0.01) -> None:
        if not 0.0 < jump <= 1.0:
            raise ValueError(f"jump={jump!r} must be above 0 and at most 1")
        super().__init__()
        self.jump = jump
        self._share: FloatArray = np.full(3, 1.0 / 3.0)  # of the capital, by e

    def _bet(self, p: float) -> float:
        mixed = (1.0 - self.jump) * self._share + self.jump / 3.0
        won = mixed * (1.0 + np.array([-1.0, 0.0, 1.0]) * (p - 0.5))
        gain = float(won.sum())
        self._share = won / gain
        return self.log_value + math.log(gain)

    def _parameters(self) -> dict[str, Any]:
        return {"jump": self.jump}
