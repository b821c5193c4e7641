# SPDX-License-Identifier: BSD-3-Clause
"""The map of a model: what it decides, its margin, and the set of every sample."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from adiabat.analysis.sets import held_model, sets
from adiabat.estimators.kernel.partition import ERROR, MARGIN, RESERVE
from adiabat.plots.canvas import (
    COLOURS,
    INK,
    MARKERS,
    SIZES,
    axes,
    class_style,
    legend_beside,
    legend_key,
    pyplot,
)
from adiabat.plots.plane import Plane, edges_of
from adiabat.typing import FloatArray


class MarginDisplay:
    """A model in the plane of two features: decisions, margin, and the set of every sample.

    Diamonds are MARGIN vectors, squares ERROR vectors (at the bound C), small circles RESERVE;
    classes differ by the filling of the marker. The solid line is f = 0, the dashed lines are the
    margin. A regression on one feature is drawn as its curve with the tube around it.

    With the model `before` an update, its boundary is dotted, samples that came are ringed and
    samples that went are crossed out. Make it with :meth:`from_estimator`.

    Parameters
    ----------
    grid : list of ndarray
        Coordinates of the map along each feature.
    values : ndarray
        Decision values (of a regression, predictions) on the grid.
    regions : ndarray or None
        For more than two classes, the number of the class on the grid.
    samples : ndarray of shape (n_samples, 2)
        Coordinates of the samples; for a curve, feature and target.
    sets : ndarray of shape (n_samples,)
        ``"MARGIN"``, ``"ERROR"`` or ``"RESERVE"``.
    labels : ndarray of shape (n_samples,)
        Numbers of their classes; zeros where there are none.
    classes : sequence
        The labels of the classes.
    plane : Plane
        Which features are drawn, and what the others are.
    tube : float or None
        Half the width of the tube of a regression.
    kind : {"classes", "novelty", "regression", "curve"}
        What is drawn.
    values_before : ndarray or None
        As `values` (for more than two classes, as `regions`), before the update.
    came, went : ndarray of shape (_, 2)
        Coordinates of the samples that came, and of those that went.

    Attributes
    ----------
    ax_, figure_
        The axes and the figure it was drawn in.
    markers_ : list of Line2D
        The samples, by set and class.
    legend_ : Legend or None
        The legend.

    Examples
    --------
    >>> from adiabat import SVC
    >>> from adiabat.plots import MarginDisplay
    >>> model = SVC(kernel="linear").fit([[-1.0, 0.0], [1.0, 0.0], [3.0, 1.0]], [0, 1, 1])
    >>> display = MarginDisplay.from_estimator(model, resolution=20)
    >>> display.ax_.get_xlabel()
    'feature 0'
    """

    def __init__(
        self,
        *,
        grid: list[FloatArray],
        values: FloatArray,
        regions: Any,
        samples: FloatArray,
        sets: npt.NDArray[Any],
        labels: npt.NDArray[np.int64],
        classes: Any,
        plane: Plane,
        kind: str,
        tube: float | None = None,
        values_before: FloatArray | None = None,
        came: FloatArray | None = None,
        went: FloatArray | None = None,
    ) -> None:
        self.grid = grid
        self.values = values
        self.regions = regions
        self.samples = samples
        self.sets = sets
        self.labels = labels
        self.classes = classes
        self.plane = plane
        self.kind = kind
        self.tube = tube
        self.values_before = values_before
        self.came = np.empty((0, 2)) if came is None else came
        self.went = np.empty((0, 2)) if went is None else went

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        before: Any = None,
        features: Any = None,
        fixed: Any = None,
        resolution: int = 200,
        padding: float = 0.08,
        limits: Any = None,
        ax: Any = None,
        legend: bool = True,
    ) -> MarginDisplay:
        """Draw a fitted model.

        Parameters
        ----------
        estimator : fitted SVC, SVR, OneClassSVM or SVDD
            The model, after the update if there is one to show.
        before : the same, optional
            A copy of the model made before the update (`copy.deepcopy`).
        features : pair of int or str, optional
            Which features are drawn; needed where there are more than two. Samples are drawn where
            these two put them.
        fixed : array of shape (n_features,), optional
            Where the other features are held; at their means by default.
        resolution : int, default=200
            Points of the grid along each feature.
        padding : float, default=0.08
            Room around the samples, as a part of their range.
        limits : pair of (low, high), optional
            The part of the plane that is drawn, instead: of a curve, one pair in a list.
        ax : Axes, optional
            Where to draw; new axes by default.
        legend : bool, default=True
            Whether to draw a legend, to the right of the axes.

        Returns
        -------
        MarginDisplay
        """
        pyplot("MarginDisplay")
        if not 2 <= resolution <= 2000:
            raise ValueError(f"resolution={resolution!r} must be from 2 to 2000 points")
        held = held_model(estimator)
        kind = _kind(estimator, features)
        plane = Plane.of(estimator, features, fixed, 1 if kind == "curve" else 2)
        samples = _coordinates(estimator, plane, kind)
        came = went = np.empty((0, 2))
        if before is not None:
            held_before = held_model(before)
            if before.n_features_in_ != estimator.n_features_in_ or type(before) is not type(
                estimator
            ):
                raise ValueError(
                    "before must be an earlier state of the same model, made by copy.deepcopy"
                )
            old = _coordinates(before, plane, kind)
            ids, ids_before = held.ledger.ids.tolist(), held_before.ledger.ids.tolist()
            came = samples[[sample not in set(ids_before) for sample in ids]]
            went = old[[sample not in set(ids) for sample in ids_before]]
        width = len(plane.features)
        edges = edges_of(np.concatenate([samples, went])[:, :width], padding, limits)
        grid = [np.linspace(low, high, resolution) for low, high in edges]
        mesh = np.stack(np.meshgrid(*grid), axis=-1)
        points = mesh.reshape(-1, width)
        values, regions = plane.decide(estimator, points)
        labels = np.zeros(len(held), dtype=np.int64)
        classes: Any = []
        if kind == "classes":
            classes = estimator.classes_
            codes = {label: i for i, label in enumerate(classes.tolist())}
            known = held.formulation.label
            labels = np.array([codes[known[code]] for code in held.target])
        display = cls(
            grid=grid,
            values=values.reshape(mesh.shape[:-1]),
            regions=None if regions is None else regions.reshape(mesh.shape[:-1]),
            samples=samples,
            sets=sets(estimator),
            labels=labels,
            classes=classes,
            plane=plane,
            kind=kind,
            tube=estimator.epsilon if kind in ("curve", "regression") else None,
            values_before=None
            if before is None
            else _before(plane, before, points).reshape(mesh.shape[:-1]),
            came=came,
            went=went,
        )
        return display.plot(ax=ax, legend=legend)

    def plot(self, ax: Any = None, *, legend: bool = True) -> MarginDisplay:
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
        ax = axes("MarginDisplay", ax)
        if self.kind == "curve":
            self._draw_curve(ax)
        else:
            self._draw_map(ax)
        self._draw_samples(ax)
        ax.set_xlim(self.grid[0][0], self.grid[0][-1])
        if self.kind != "curve":
            ax.set_ylim(self.grid[1][0], self.grid[1][-1])
        ax.set_xlabel(self.plane.names[0])
        ax.set_ylabel("target" if self.kind == "curve" else self.plane.names[1])
        if self.plane.others:
            ax.set_title(self.plane.others, fontsize="small")
        self.legend_ = legend_beside(ax, self._handles()) if legend else None
        self.ax_ = ax
        self.figure_ = ax.figure
        return self

    # -- parts -----------------------------------------------------------------------------------

    def _draw_map(self, ax: Any) -> None:
        x, y = self.grid
        if self.regions is not None:
            n = len(self.classes)
            if self.values_before is not None:
                for number in np.unique(self.values_before):
                    self._line(ax, (self.values_before == number) * 1.0, [0.5], ":", 1.6)
            ax.contourf(
                x, y, self.regions, levels=np.arange(n + 1) - 0.5, colors=_tints(n), alpha=0.2
            )
            for number in range(n):
                self._line(ax, (self.regions == number) * 1.0, [0.5], "-", 0.9)
            return
        if self.kind == "regression":
            shades = ax.contourf(x, y, self.values, levels=12, cmap="Greys", alpha=0.55)
            ax.figure.colorbar(shades, ax=ax, label="prediction", pad=0.02)
            return
        ends = [min(-1.0, float(self.values.min())), max(1.0, float(self.values.max()))]
        ax.contourf(
            x, y, self.values, levels=[ends[0] - 1.0, 0.0, ends[1] + 1.0],
            colors=["#FFFFFF", "#DCE6EE"],
        )  # fmt: skip
        self._line(ax, self.values, [0.0], "-", 1.6)
        if self.kind == "classes":
            self._line(ax, self.values, [-1.0, 1.0], "--", 0.9)
        if self.values_before is not None:
            self._line(ax, self.values_before, [0.0], ":", 1.6)

    def _line(
        self, ax: Any, values: FloatArray, levels: list[float], style: str, width: float
    ) -> None:
        inside = [level for level in levels if values.min() < level < values.max()]
        if inside:  # matplotlib warns of levels that are nowhere
            ax.contour(
                *self.grid, values, levels=inside, colors=INK, linestyles=style, linewidths=width
            )

    def _draw_curve(self, ax: Any) -> None:
        [x] = self.grid
        ax.plot(x, self.values, color=INK, linewidth=1.6)
        assert self.tube is not None
        ax.fill_between(x, self.values - self.tube, self.values + self.tube, color="#DCE6EE")
        for edge in (-self.tube, self.tube):
            ax.plot(x, self.values + edge, color=INK, linewidth=0.9, linestyle="--")
        if self.values_before is not None:
            ax.plot(x, self.values_before, color=INK, linewidth=1.6, linestyle=":")

    def _draw_samples(self, ax: Any) -> None:
        self.markers_ = []
        for kind in (RESERVE, ERROR, MARGIN):  # MARGIN on top
            for number in range(max(1, len(self.classes))):
                chosen = (self.sets == kind) & (self.labels == number)
                if chosen.any():
                    self.markers_ += ax.plot(
                        *self.samples[chosen].T, linestyle="", marker=MARKERS[kind],
                        markersize=SIZES[kind], markeredgewidth=0.8, zorder=3,
                        **self._filling(number),
                    )  # fmt: skip
        for points, (style, _) in zip((self.came, self.went), self._changes(), strict=True):
            if len(points):
                ax.plot(*points.T, zorder=4, **style)

    def _filling(self, number: int) -> dict[str, Any]:
        return class_style(number if len(self.classes) else 1)

    def _changes(self) -> list[tuple[dict[str, Any], str]]:
        """How samples that came and that went are marked, and what the legend says."""
        size = 13.0 if len(self.came) <= 12 else 9.0  # many rings would hide each other
        ring = {"marker": "o", "markersize": size, "markerfacecolor": "none"}
        cross = {"marker": "x", "markersize": 8.5}
        shared = {"linestyle": "", "markeredgecolor": INK}
        return [
            ({**shared, **ring, "markeredgewidth": 1.3}, f"came ({len(self.came)})"),
            ({**shared, **cross, "markeredgewidth": 1.8}, f"went ({len(self.went)})"),
        ]

    def _handles(self) -> list[Any]:
        handles: list[Any] = []
        for kind in (MARGIN, ERROR, RESERVE):
            label = f"{kind} ({int(np.sum(self.sets == kind))})"
            look = {"marker": MARKERS[kind], "markersize": SIZES[kind], "markeredgecolor": INK}
            handles.append(legend_key(label, linestyle="", markerfacecolor="#BBBBBB", **look))
        for number, name in enumerate(self.classes):
            look = {"marker": "o", "markersize": 8.0, **self._filling(number)}
            handles.append(legend_key(f"class {name}", linestyle="", **look))
        lines = {
            "classes": [("-", "boundary, f = 0"), ("--", "margin, f = ±1")],
            "novelty": [("-", "boundary, f = 0")],
            "curve": [("-", "prediction"), ("--", f"tube, ± {self.tube}")],
        }.get(self.kind, [])
        if self.regions is not None:
            lines = [("-", "boundary")]
        if self.values_before is not None and self.kind != "regression":
            lines = [*lines, (":", "before")]
        handles += [
            legend_key(label, color=INK, linestyle=style, linewidth=1.3) for style, label in lines
        ]
        for points, (marks, label) in zip((self.came, self.went), self._changes(), strict=True):
            if len(points):
                handles.append(legend_key(label, **marks))
        return handles


def _tints(n: int) -> list[str]:
    """Colours of regions: those of the markers, the hollow class on white."""
    return ["#FFFFFF", *(COLOURS[i % len(COLOURS)] for i in range(n - 1))]


def _kind(estimator: Any, features: Any) -> str:
    if hasattr(estimator, "classes_"):
        return "classes"
    if hasattr(estimator, "decision_function"):
        return "novelty"
    if features is None:
        return "curve" if estimator.n_features_in_ == 1 else "regression"
    return "curve" if np.ndim(features) == 0 or len(features) == 1 else "regression"


def _coordinates(model: Any, plane: Plane, kind: str) -> FloatArray:
    found = plane.samples(model)
    return np.column_stack([found, held_model(model).target]) if kind == "curve" else found


def _before(plane: Plane, model: Any, points: FloatArray) -> FloatArray:
    """What was decided before: the class, or a decision value."""
    values, regions = plane.decide(model, points)
    return values if regions is None else np.asarray(regions, dtype=np.float64)
