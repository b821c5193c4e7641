# SPDX-License-Identifier: BSD-3-Clause
"""From decision values to probabilities: the curve, and the samples it was fitted on."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from adiabat.estimators.confidence.calibration import calibrated
from adiabat.estimators.confidence.pair_values import pair_values
from adiabat.plots.canvas import COLOURS, INK, axes, class_style, legend_beside, pyplot
from adiabat.typing import FloatArray


class CalibrationDisplay:
    """The probability of the second class against the decision value.

    Samples stand at 0 or 1, by their class, where the model without them decides. Of Venn-Abers
    both curves are drawn, p0 and p1, and what lies between them is shaded. Make it with
    :meth:`from_estimator`.

    Parameters
    ----------
    decision, probability : ndarray of shape (n_points,)
        The curve.
    interval : ndarray of shape (n_points, 2) or None
        p0 and p1.
    left_out : ndarray of shape (n_samples,)
        Leave-one-out decision values of the samples.
    second : ndarray of bool, of shape (n_samples,)
        Which are of the second class.
    classes : tuple of two labels

    Attributes
    ----------
    ax_, figure_
        The axes and the figure it was drawn in.
    line_ : Line2D
        The curve.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from adiabat import SVC
    >>> from adiabat.plots import CalibrationDisplay
    >>> X, y = make_moons(60, noise=0.35, random_state=0)
    >>> model = SVC(gamma=0.5, calibration="sigmoid").fit(X, y)
    >>> CalibrationDisplay.from_estimator(model).ax_.get_ylabel()
    'probability of 1'
    """

    def __init__(
        self,
        *,
        decision: FloatArray,
        probability: FloatArray,
        interval: FloatArray | None,
        left_out: FloatArray,
        second: npt.NDArray[np.bool_],
        classes: tuple[Any, Any],
    ) -> None:
        self.decision, self.probability, self.interval = decision, probability, interval
        self.left_out, self.second, self.classes = left_out, second, classes

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, n_points: int = 400, ax: Any = None, legend: bool = True
    ) -> CalibrationDisplay:
        """The curve of a model of two classes; it is not changed.

        Parameters
        ----------
        estimator : fitted SVC with a `calibration`
            The model.
        n_points : int, default=400
            Points of the curve.
        ax, legend
            As in `plot`.

        Returns
        -------
        CalibrationDisplay
        """
        pyplot("CalibrationDisplay")
        if getattr(estimator, "calibration", None) is None or len(estimator.classes_) != 2:
            raise ValueError(
                "CalibrationDisplay draws a model of two classes with a calibration; pass "
                "SVC(calibration='sigmoid', ...)"
            )
        estimator._require_unchanged()
        model = estimator._model
        known, left_out = calibrated(estimator, model), pair_values(estimator)[:, 0]
        decision = np.linspace(left_out.min(), left_out.max(), n_points)
        interval = None
        if estimator.calibration == "venn_abers":
            interval = known.two_answers(decision[:, None])
        first, second = estimator.classes_.tolist()
        codes = model.formulation.codes(model.target)
        return cls(
            decision=decision, probability=known.probabilities(decision[:, None])[:, 1],
            interval=interval, left_out=left_out, second=model.target == codes[1],
            classes=(first, second),
        ).plot(ax=ax, legend=legend)  # fmt: skip

    def plot(self, ax: Any = None, *, legend: bool = True) -> CalibrationDisplay:
        """Draw it.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; new axes by default.
        legend : bool, default=True
            Whether to draw a legend, to the right of the axes.

        Returns
        -------
        self
        """
        ax = axes("CalibrationDisplay", ax)
        (self.line_,) = ax.plot(self.decision, self.probability, color=INK, label="probability")
        if self.interval is not None:
            ax.fill_between(
                self.decision, *self.interval.T, step="mid", color=COLOURS[0], alpha=0.25,
                label="between p0 and p1",
            )  # fmt: skip
        for number, own in enumerate((~self.second, self.second)):
            ax.plot(
                self.left_out[own], np.full(int(own.sum()), float(number)), linestyle="",
                marker="o", markersize=5.0, **class_style(number), alpha=0.6, clip_on=False,
                label=f"{self.classes[number]}, left out",
            )  # fmt: skip
        ax.axvline(0.0, color="#B8B8B8", linewidth=0.7, zorder=0)
        ax.axhline(0.5, color="#B8B8B8", linewidth=0.7, zorder=0)
        ax.set_xlabel("decision value")
        ax.set_ylabel(f"probability of {self.classes[1]}")
        if legend:
            legend_beside(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self
