# SPDX-License-Identifier: BSD-3-Clause
"""A regression of one feature with the intervals of its predictions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from adiabat.estimators.what_if.copies import own_rows, own_targets
from adiabat.plots.canvas import INK, axes, legend_beside, line_style, pyplot
from adiabat.typing import FloatArray


class IntervalDisplay:
    """Predictions of a regression of one feature, and intervals around them, by method.

    Make it with :meth:`from_estimator`.

    Parameters
    ----------
    x, prediction : ndarray of shape (n_points,)
        Where, and what is predicted.
    intervals : dict of str to ndarray of shape (n_points, 2)
        Ends of the intervals, by the label of their method.
    samples : ndarray of shape (n_samples, 2)
        Feature and target of the samples.
    confidence_level : float
        Of the intervals.

    Attributes
    ----------
    ax_, figure_
        The axes and the figure it was drawn in.
    line_ : Line2D
        The prediction.
    bounds_ : dict of str to list of Line2D
        Lower and upper ends, by method.

    Examples
    --------
    >>> import numpy as np
    >>> from adiabat import SVR
    >>> from adiabat.plots import IntervalDisplay
    >>> x = np.linspace(0.0, 6.0, 40)
    >>> model = SVR(C=3.0, gamma=1.0).fit(x[:, None], np.sin(x) + 0.2 * np.cos(9.0 * x))
    >>> display = IntervalDisplay.from_estimator(model, methods=["jackknife+"], n_points=20)
    >>> display.ax_.get_title()
    'intervals at 90 %'
    """

    def __init__(
        self,
        *,
        x: FloatArray,
        prediction: FloatArray,
        intervals: dict[str, FloatArray],
        samples: FloatArray,
        confidence_level: float,
    ) -> None:
        self.x, self.prediction, self.intervals = x, prediction, intervals
        self.samples, self.confidence_level = samples, confidence_level

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        confidence_level: float = 0.9,
        methods: Sequence[str] = ("full", "jackknife+"),
        n_points: int = 200,
        ax: Any = None,
        legend: bool = True,
    ) -> IntervalDisplay:
        """Intervals along the feature of a model; it is not changed.

        Parameters
        ----------
        estimator : fitted SVR or KernelLSSVR of one feature
            The model.
        confidence_level : float, default=0.9
            Of the intervals.
        methods : sequence of str, default=("full", "jackknife+")
            As in `predict_interval`.
        n_points : int, default=200
            Places along the feature.
        ax, legend
            As in `plot`.

        Returns
        -------
        IntervalDisplay
        """
        pyplot("IntervalDisplay")
        if getattr(estimator, "n_features_in_", None) != 1 or estimator.kernel == "precomputed":
            raise ValueError("IntervalDisplay draws along one feature; fit the model on one column")
        model = estimator._model
        if hasattr(model, "y"):  # of least squares
            rows, targets = model.X, model.y
        else:
            rows, targets = own_rows(estimator), own_targets(estimator)
        rows = rows.toarray() if hasattr(rows, "toarray") else np.asarray(rows)
        x = np.linspace(rows.min(), rows.max(), n_points)
        asked = x[:, None]
        if hasattr(estimator, "feature_names_in_"):
            pandas = __import__("pandas")
            asked = pandas.DataFrame(asked, columns=estimator.feature_names_in_)
        found = {
            method: estimator.predict_interval(asked, confidence_level, method)[1][:, :, 0]
            for method in methods
        }
        return cls(
            x=x, prediction=estimator.predict(asked), intervals=found,
            samples=np.column_stack([rows[:, 0], targets]), confidence_level=confidence_level,
        ).plot(ax=ax, legend=legend)  # fmt: skip

    def plot(self, ax: Any = None, *, legend: bool = True) -> IntervalDisplay:
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
        ax = axes("IntervalDisplay", ax)
        ax.plot(
            *self.samples.T, linestyle="", marker="o", markersize=3.5, markerfacecolor="none",
            markeredgecolor=INK, markeredgewidth=0.7, label="samples",
        )  # fmt: skip
        look = {"color": INK, "linewidth": 1.6, "label": "predicted"}
        (self.line_,) = ax.plot(self.x, self.prediction, **look)
        self.bounds_: dict[str, list[Any]] = {}
        for k, (method, ends) in enumerate(self.intervals.items()):
            look = {**line_style(k), "linewidth": 1.3}
            low = ax.plot(self.x, ends[:, 0], **look, label=method)
            self.bounds_[method] = [*low, *ax.plot(self.x, ends[:, 1], **look)]
            if k == 0:
                ax.fill_between(self.x, ends[:, 0], ends[:, 1], color=look["color"], alpha=0.12)
        ax.set_title(f"intervals at {100.0 * self.confidence_level:g} %", fontsize="medium")
        ax.set_xlabel("feature")
        ax.set_ylabel("target")
        if legend:
            legend_beside(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self
