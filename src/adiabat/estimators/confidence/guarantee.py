# SPDX-License-Identifier: BSD-3-Clause
"""What is proven of a result before any data are seen, in numbers and in words.

Of n samples and one newcomer, all exchangeable, and a method that treats them alike, with alpha one
less the level asked for:

==============  ====================================================================================
full            1 - alpha. Vovk, Gammerman and Shafer, Algorithmic Learning in a Random World, 2005.
minmax          1 - alpha. Barber, Candes, Ramdas and Tibshirani, Predictive inference with the
                jackknife+, 2021.
jackknife+      1 - 2 alpha. The same.
cv+, cross      1 - 2 alpha - min(2 (1 - alpha) (K - 1) / (n + K), (1 - K / n) / (K + 1)), with K
                folds; the second for folds of one size. The first: Gasparin and Ramdas, Improving
                the statistical efficiency of cross-conformal prediction, 2025, after Vovk. The
                second, and the first without (1 - alpha): Barber and others, theorem 4.
==============  ====================================================================================

Why the last line holds: the p-values of the folds, each that of a split, have the mean, weighted by
the sizes of the folds plus one, (K - 1 + (n + 1) p) / (n + K), p being the cross-conformal p-value.
Twice a weighted mean of p-values is a p-value (Vovk and Wang, Combining p-values via averaging,
2020), so that p <= alpha has probability at most 2 (K - 1 + (n + 1) alpha) / (n + K). The second
bound counts, in the tournament of all pairs of different folds, how many can win nearly always. A
value outside the interval of cv+ is outside the cross-conformal set, so that both hold for cv+.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from adiabat.estimators.learner import WITH_GAMMA
from adiabat.retention.everything import All
from adiabat.retention.window import Window
from adiabat.typing import FloatArray

Folds = list[npt.NDArray[np.int64]] | None


@dataclass(frozen=True)
class Guarantee:
    """What is proven of a result.

    Attributes
    ----------
    method : str
        How it was made.
    confidence_level : tuple of float
        The levels asked for; none for p-values, which serve all.
    coverage : tuple of float
        For each, the least probability that the result holds for a new sample, over the draw of
        the training samples and the new one, if nothing weakens it.
    weakened_by : tuple of str
        What was taken from the training samples alone, so that new ones are not treated alike. The
        numbers are then an aim, and no guarantee.
    by_class : bool
        Whether it holds for each class by itself.
    """

    method: str
    confidence_level: tuple[float, ...]
    coverage: tuple[float, ...]
    weakened_by: tuple[str, ...] = ()
    by_class: bool = False

    @property
    def holds(self) -> bool:
        """Whether nothing that is known weakens it."""
        return not self.weakened_by

    def __str__(self) -> str:
        if not self.confidence_level:
            return self._of_p_values()
        parts = ", ".join(f"{100.0 * max(0.0, share):.4g} %" for share in self.coverage)
        whom = "of the new samples of each class" if self.by_class else "of the new samples"
        if self.holds:
            return (
                f"{self.method}: guaranteed for at least {parts} {whom}, on average over training "
                "sets, if all samples are exchangeable and no parameter was chosen by these ones"
            )
        reasons = "; ".join(self.weakened_by)
        return f"{self.method}: aimed at {parts} {whom}, not guaranteed: {reasons}"

    def _of_p_values(self) -> str:
        whose = "its samples of each class" if self.by_class else "new samples like its own"
        said = f"p-values: of {whose} at most a part alpha has one up to alpha"
        if self.holds:
            return f"{said}, if all are exchangeable and no parameter was chosen by these ones"
        return f"{said}: aimed at, not guaranteed: {'; '.join(self.weakened_by)}"


def guarantee(
    estimator: Any,
    method: str,
    levels: FloatArray,
    n: int,
    folds: Folds = None,
    by_class: bool = False,
) -> Guarantee:
    """What is proven of a method on a model of n samples; by class, on the smallest class."""
    asked = tuple(float(level) for level in levels)
    covered = tuple(_coverage(method, 1.0 - level, n, folds, by_class) for level in asked)
    return Guarantee(method, asked, covered, what_weakens(estimator), by_class)


def _coverage(method: str, alpha: float, n: int, folds: Folds, by_class: bool) -> float:
    if method in ("full", "minmax"):
        return 1.0 - alpha
    if method == "jackknife+":
        return 1.0 - 2.0 * alpha
    assert folds is not None
    K, sizes = len(folds), {len(places) for places in folds}
    loss = 2.0 * (1.0 - alpha) * (K - 1) / (n + K)
    if len(sizes) == 1 and not by_class:  # of a class, folds hold as many as it happens
        loss = min(loss, (1.0 - K / n) / (K + 1))
    return 1.0 - 2.0 * alpha - loss


def what_weakens(estimator: Any) -> tuple[str, ...]:
    """What the model took from its samples alone, in words."""
    found = []
    kernel = getattr(estimator, "kernel", None)
    if kernel in WITH_GAMMA and estimator.gamma == "scale":
        found.append("gamma='scale' was taken from the training samples; pass a number")
    if getattr(estimator, "class_weight", None) == "balanced":
        found.append("class_weight='balanced' was taken from the training samples; pass factors")
    weight = getattr(estimator._model, "weight", None)
    if weight is not None and not np.all(weight == 1.0):
        found.append("sample_weight is not 1 for all, as it is for new samples")
    retain = getattr(estimator, "retain", None)
    if retain is not None and not isinstance(retain, (All, Window)):
        found.append(f"retain={retain!r} chose which samples are held")
    return tuple(found)
