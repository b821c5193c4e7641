# SPDX-License-Identifier: BSD-3-Clause
"""What leaving out each sample does to the model's word on it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from adiabat.analysis.sensitivity import Agreement, check_sensitivity
from adiabat.analysis.sets import held_model, sets
from adiabat.estimators.kernel.partition import ERROR, MARGIN, RESERVE
from adiabat.plots.canvas import (
    COLOURS,
    INK,
    MARKERS,
    SIZES,
    axes,
    legend_beside,
    legend_key,
    pyplot,
)

KINDS = ("effect", "response")
FILLS = {RESERVE: "#BBBBBB", MARGIN: COLOURS[0], ERROR: COLOURS[1]}


class LeaveOneOutDisplay:
    """Exact leave-one-out margins of all samples.

    Of kind ``"effect"``: the margin without the sample against the margin with it. On the diagonal
    nothing depends on the sample; below the shaded line the model is wrong about it once it is
    left out. Of kind ``"response"``: the approximation by linear response (CP01 3.2) against the
    exact margin; samples in the hatched quarters are judged differently by the two, and are
    circled. Make it with :meth:`from_estimator`.

    Parameters
    ----------
    agreement : Agreement
        Exact and approximate margins, of :func:`adiabat.analysis.check_sensitivity`.
    sets : ndarray of shape (n,)
        The sets of the samples.
    kind : {"effect", "response"}
        What is drawn.

    Attributes
    ----------
    ax_, figure_
        The axes and the figure it was drawn in.
    markers_ : list of Line2D
        The samples, by set.

    Examples
    --------
    >>> from adiabat import SVC
    >>> from adiabat.plots import LeaveOneOutDisplay
    >>> model = SVC(kernel="linear", C=10.0).fit([[-3.0], [-1.0], [1.0], [4.0]], [0, 0, 1, 1])
    >>> display = LeaveOneOutDisplay.from_estimator(model)
    >>> display.ax_.get_title()
    'leave-one-out errors: 1 of 4'
    """

    def __init__(self, *, agreement: Agreement, sets: npt.NDArray[Any], kind: str) -> None:
        self.agreement = agreement
        self.sets = sets
        self.kind = kind

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        kind: str = "effect",
        machine: Any = None,
        ax: Any = None,
        legend: bool = True,
    ) -> LeaveOneOutDisplay:
        """Leave out each sample of a model in turn; the model is not changed.

        Parameters
        ----------
        estimator : fitted SVC, SVR, OneClassSVM or SVDD
            The model.
        kind : {"effect", "response"}, default="effect"
            What is drawn.
        machine : pair of labels, optional
            Which pair of classes, where there are more than two.
        ax, legend
            As in `plot`.

        Returns
        -------
        LeaveOneOutDisplay
        """
        pyplot("LeaveOneOutDisplay")
        if kind not in KINDS:
            raise ValueError(f"kind={kind!r} must be one of {KINDS}")
        agreement = check_sensitivity(estimator, machine=machine)
        held = held_model(estimator)
        places = held.ledger.locate(agreement.sensitivity.ids.tolist())
        name = agreement.sensitivity.machine or None
        found = sets(estimator, name)[places]
        return cls(agreement=agreement, sets=found, kind=kind).plot(ax=ax, legend=legend)

    def plot(self, ax: Any = None, *, legend: bool = True) -> LeaveOneOutDisplay:
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
        ax = axes("LeaveOneOutDisplay", ax)
        found, exact = self.agreement.sensitivity, self.agreement.exact_g
        x, y = (found.g, exact) if self.kind == "effect" else (exact, found.loo_g)
        shown = np.isfinite(x) & np.isfinite(y)
        self._draw_frame(ax, x[shown], y[shown], found.threshold)
        self.markers_: list[Any] = []
        for kind in (RESERVE, ERROR, MARGIN):
            chosen = shown & (self.sets == kind)
            self.markers_ += ax.plot(
                x[chosen], y[chosen], linestyle="", marker=MARKERS[kind], markersize=SIZES[kind],
                markerfacecolor=FILLS[kind], markeredgecolor=INK, markeredgewidth=0.7, zorder=3,
                label=f"{kind} ({int(np.sum(self.sets == kind))})",
            )  # fmt: skip
        handles = self.markers_[::-1]
        if self.kind == "response":
            differ = shown & np.isin(found.ids, self.agreement.disagree)
            handles += ax.plot(
                x[differ], y[differ], linestyle="", marker="o", markersize=12,
                markerfacecolor="none", markeredgecolor=INK, markeredgewidth=1.2, zorder=4,
                label=f"judged differently ({len(self.agreement.disagree)})",
            )  # fmt: skip
            ax.set_xlabel("exact margin g without the sample")
            ax.set_ylabel("the same by linear response")
        else:
            ax.set_xlabel("margin g of the sample")
            ax.set_ylabel("margin g without the sample")
        errors = int(self.agreement.exact_error.sum())
        ax.set_title(f"leave-one-out errors: {errors} of {len(exact)}", fontsize="medium")
        if legend:
            legend_beside(ax, [*handles, *self._keys()])
        self.ax_ = ax
        self.figure_ = ax.figure
        return self

    # -- parts -----------------------------------------------------------------------------------

    def _draw_frame(
        self, ax: Any, x: npt.NDArray[Any], y: npt.NDArray[Any], threshold: float
    ) -> None:
        """The diagonal, and where samples count as wrong."""
        both = np.concatenate([x, y, [threshold]])
        low, high = float(both.min()), float(both.max())
        room = 0.05 * (high - low or 1.0)
        low, high = low - room, high + room
        ax.set_xlim(low, high)
        ax.set_ylim(low, high)
        ax.set_aspect("equal")
        ax.plot([low, high], [low, high], color=INK, linewidth=0.8, linestyle=":", zorder=1)
        if self.kind == "effect":
            ax.axhspan(low, threshold, color="#EDEDED", zorder=0)
            ax.axhline(threshold, color=INK, linewidth=1.0, zorder=1)
            return
        for left, bottom in ((low, threshold), (threshold, low)):
            width, height = (
                (threshold - low, high - threshold)
                if left == low
                else (high - threshold, threshold - low)
            )
            ax.add_patch(_quarter((left, bottom), width, height))

    def _keys(self) -> list[Any]:
        from matplotlib.patches import Patch

        line = legend_key("no difference", color=INK, linewidth=0.8, linestyle=":")
        if self.kind == "effect":
            return [line, Patch(facecolor="#EDEDED", edgecolor=INK, label="leave-one-out error")]
        return [line]


def _quarter(corner: tuple[float, float], width: float, height: float) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle(
        corner, width, height, facecolor="none", edgecolor="#CFCFCF", hatch="//", linewidth=0.0,
        zorder=0,
    )  # fmt: skip
