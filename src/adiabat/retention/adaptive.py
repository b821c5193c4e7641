# SPDX-License-Identifier: BSD-3-Clause
"""As many samples as belong together: where the stream has drifted, the window is cut."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import numpy as np

from adiabat.martingales import Martingale, PowerMartingale, SimpleJumper
from adiabat.retention.policy import Held, Policy, Timing, register, require_size

# Slacks nearer to each other than this tie: those of MARGIN samples are 0 but for rounding.
TIE = 1e-8
BETTING: dict[str, type[Martingale]] = {"power": PowerMartingale, "jumper": SimpleJumper}


@register
class Adaptive(Policy):
    """Samples since the last drift: an alarm cuts the window where the evidence began.

    Each new sample is ranked among those held by its slack in the model that has learned it, which
    is its exact conformal p-value. A martingale bets on these p-values; at the `odds` chosen it
    raises the alarm, which is false on one stream of `odds` at most, and the samples before the
    point from which the capital grew are unlearned. Then it begins anew.

    Parameters
    ----------
    odds : float, default=100.0
        Capital at which there is an alarm; above 1.
    betting : {"jumper", "power"}, default="jumper"
        How it bets (:mod:`adiabat.martingales`).
    size : int, optional
        Samples to keep at most; the oldest go first.
    seed : int, default=0
        Of the numbers by which ties are broken.

    Notes
    -----
    P-values of the samples held are kept with them, in memory and in pickles, and leave with them;
    a model file holds none, so that a loaded model begins anew.

    Examples
    --------
    >>> import numpy as np
    >>> from adiabat import SVC
    >>> from adiabat.retention import Adaptive
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 1))
    >>> y = np.where(np.arange(200) < 120, X[:, 0] > 0, X[:, 0] < 0).astype(int)
    >>> model = SVC(gamma=0.5, retain=Adaptive()).fit(X[:20], y[:20])
    >>> for k in range(20, 200):
    ...     _ = model.partial_fit(X[k : k + 1], y[k : k + 1])
    >>> bool(model.ids_[0] > 100)
    True
    """

    timing: ClassVar[Timing] = "after"

    def __init__(
        self,
        odds: float = 100.0,
        betting: str = "jumper",
        size: int | None = None,
        seed: int = 0,
    ) -> None:
        if not odds > 1.0:
            raise ValueError(f"Adaptive: odds={odds!r} must be above 1")
        if betting not in BETTING:
            raise ValueError(f"Adaptive: betting={betting!r} must be 'jumper' or 'power'")
        self.odds, self.betting = float(odds), betting
        self.size = None if size is None else require_size("Adaptive", size)
        self.seed = seed

    def leaving(self, held: Held) -> Iterable[int]:
        """Those before the drift, if there is one, and the oldest of those too many."""
        ids, notes = held.ids.tolist(), held.notes
        slack = np.where(held.decided, held.slack, np.inf)
        rng = np.random.default_rng([self.seed, held.n_seen])
        for k in range(held.n - held.n_new, held.n):
            below = int(np.sum(slack[:k] < slack[k] - TIE))
            ties = int(np.sum(np.abs(slack[:k] - slack[k]) <= TIE)) if slack[k] < np.inf else k
            notes[ids[k]] = (below + rng.uniform() * (ties + 1)) / (k + 1)
        known = [k for k in range(held.n) if ids[k] in notes]
        martingale, capital = BETTING[self.betting](), [0.0]
        first = 0
        for k in known:
            martingale.update(notes[ids[k]])
            capital.append(martingale.log_value)
            if martingale.value >= self.odds:
                first = known[int(np.argmin(capital))]
                for name in ids:
                    notes.pop(name, None)
                break
        most = held.n if self.size is None else self.size
        return range(max(first, held.n - most))
