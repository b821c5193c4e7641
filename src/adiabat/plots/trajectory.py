# SPDX-License-Identifier: BSD-3-Clause
"""Pictures of the path: weights and margins from breakpoint to breakpoint (CP01 figures 3, 5)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from adiabat.analysis.sets import held_model
from adiabat.analysis.trajectory import Trajectory, trajectories, unlearning_trajectory
from adiabat.engine.report import UpdateReport
from adiabat.plots.canvas import (
    COLOURS,
    INK,
    OTHERS,
    axes,
    legend_beside,
    legend_key,
    line_style,
    pyplot,
)

# More curves than this are not named one by one.
MOST_NAMED = 10
KINDS = ("alpha", "g", "unlearning")
_ROLES: dict[str, dict[str, Any]] = {
    "came": {"color": COLOURS[0], "linestyle": "-"},
    "went": {"color": COLOURS[5], "linestyle": "--"},
    "stayed": {"color": COLOURS[2], "linestyle": "-."},
}
_ERROR_LINE: dict[str, Any] = {"color": INK, "linewidth": 1.0, "linestyle": "-"}


class TrajectoryDisplay:
    """Samples along the path of an update.

    Of kind ``"alpha"`` or ``"g"``: weights, or margins, against the number of the breakpoint (CP01
    figure 3); samples of interest are named, the others are thin and grey. Of kind
    ``"unlearning"``: the margin of each sample against its own weight while it is unlearned (CP01
    figure 5); it ends at the leave-one-out margin, at weight 0, and the thin dotted line is where
    linear response would have it end. Make it with :meth:`from_estimator`, :meth:`from_report` or
    :meth:`from_trajectory`.

    Parameters
    ----------
    paths : list of Trajectory
        One; for ``"unlearning"`` one for each sample.
    ids : list
        The samples of interest; for ``"unlearning"`` one for each trajectory.
    kind : {"alpha", "g", "unlearning"}
        What is drawn.

    Attributes
    ----------
    ax_, figure_
        The axes and the figure it was drawn in.
    lines_ : list of Line2D
        The curves of the samples of interest.

    Examples
    --------
    >>> from adiabat import SVC
    >>> from adiabat.plots import TrajectoryDisplay
    >>> model = SVC(kernel="linear", C=10.0).fit([[-3.0], [-1.0], [1.0], [4.0]], [0, 0, 1, 1])
    >>> display = TrajectoryDisplay.from_estimator(model, ids=[1, 2])
    >>> [line.get_label() for line in display.lines_]
    ['id 1', 'id 2']
    """

    def __init__(self, *, paths: list[Trajectory], ids: list[Any], kind: str) -> None:
        self.paths = paths
        self.ids = ids
        self.kind = kind

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        ids: Any = None,
        *,
        kind: str = "unlearning",
        machine: Any = None,
        ax: Any = None,
        legend: bool = True,
    ) -> TrajectoryDisplay:
        """Draw how a model would unlearn samples; the model is not changed.

        Parameters
        ----------
        estimator : fitted SVC, SVR, OneClassSVM or SVDD
            The model.
        ids : id or sequence of ids, optional
            The samples; for ``kind="unlearning"``, which unlearns each of them from the whole
            model, all that carry weight by default. For the other kinds they go in one path.
        kind : {"unlearning", "alpha", "g"}, default="unlearning"
            What is drawn.
        machine : pair of labels, optional
            Which pair of classes, where there are more than two.
        ax, legend
            As in `plot`.

        Returns
        -------
        TrajectoryDisplay
        """
        pyplot("TrajectoryDisplay")
        _require_kind(kind)
        held = held_model(estimator)
        if ids is None and kind != "unlearning":
            raise ValueError(f"ids=None: kind={kind!r} needs the ids of the samples to unlearn")
        places = held.support() if ids is None else held.ledger.locate(ids)
        if len(places) == 0:
            raise ValueError("ids is empty: there is nothing to unlearn")
        chosen = held.ledger.ids[places].tolist()
        if kind == "unlearning":
            paths = [unlearning_trajectory(estimator, [c], machine=machine) for c in chosen]
        else:
            paths = [unlearning_trajectory(estimator, chosen, machine=machine)]
        return cls(paths=paths, ids=chosen, kind=kind).plot(ax=ax, legend=legend)

    @classmethod
    def from_report(
        cls,
        report: UpdateReport,
        *,
        ids: Any = None,
        kind: str = "alpha",
        machine: Any = None,
        ax: Any = None,
        legend: bool = True,
    ) -> TrajectoryDisplay:
        """Draw the path of an update that was traced.

        Parameters
        ----------
        report : UpdateReport
            Of ``model.update(..., trace=True)``.
        ids, kind, ax, legend
            As in `from_trajectory`.
        machine : pair of labels, optional
            Which pair of classes, where more than one pair moved.

        Returns
        -------
        TrajectoryDisplay
        """
        found = trajectories(report)
        if machine is not None:
            found = [path for path in found if set(path.machine) == set(machine)]
        if len(found) != 1:
            raise ValueError(
                f"the report has {len(found)} trajectories (machine={machine!r}); choose one of "
                f"{[path.machine for path in trajectories(report)]}"
            )
        return cls.from_trajectory(found[0], ids=ids, kind=kind, ax=ax, legend=legend)

    @classmethod
    def from_trajectory(
        cls,
        path: Trajectory,
        *,
        ids: Any = None,
        kind: str = "alpha",
        ax: Any = None,
        legend: bool = True,
    ) -> TrajectoryDisplay:
        """Draw a trajectory.

        Parameters
        ----------
        path : Trajectory
            Of :func:`adiabat.analysis.learning_trajectory`, for example.
        ids : sequence of ids, optional
            The samples of interest; by default those that came or went.
        kind : {"alpha", "g", "unlearning"}, default="alpha"
            What is drawn.
        ax, legend
            As in `plot`.

        Returns
        -------
        TrajectoryDisplay
        """
        pyplot("TrajectoryDisplay")
        _require_kind(kind)
        if ids is None:
            driven = path.leaving if kind == "unlearning" else path.entering | path.leaving
            ids = list(dict.fromkeys(path.ids[driven].tolist()))
        chosen = list(ids) if isinstance(ids, (list, tuple, np.ndarray)) else [ids]
        for sample in chosen:
            path.row_of(sample)
        paths = [path] * len(chosen) if kind == "unlearning" else [path]
        return cls(paths=paths, ids=chosen, kind=kind).plot(ax=ax, legend=legend)

    def plot(self, ax: Any = None, *, legend: bool = True) -> TrajectoryDisplay:
        """Draw it.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; new axes by default.
        legend : bool, default=True
            Whether to name the samples of interest, where they are few.

        Returns
        -------
        self
        """
        ax = axes("TrajectoryDisplay", ax)
        self.lines_: list[Any] = []
        if self.kind == "unlearning":
            self._draw_unlearning(ax)
        else:
            self._draw_steps(ax)
        if legend:
            named = self.lines_ if len(self.lines_) <= MOST_NAMED else []
            legend_beside(ax, [*named, *self._keys(few=bool(named))])
        self.ax_ = ax
        self.figure_ = ax.figure
        return self

    # -- parts -----------------------------------------------------------------------------------

    def _draw_steps(self, ax: Any) -> None:
        [path] = self.paths
        values = path.alpha if self.kind == "alpha" else path.g
        rows = [path.row_of(sample) for sample in self.ids]
        steps = np.arange(len(path))
        others = np.setdiff1d(np.arange(values.shape[1]), rows)
        moving = others[np.nanmax(path.alpha[:, others], axis=0, initial=0.0) > 0.0]
        ax.plot(steps, values[:, moving], zorder=1, **OTHERS)
        few = len(rows) <= MOST_NAMED
        for i, (sample, row) in enumerate(zip(self.ids, rows, strict=True)):
            style = line_style(i) if few else _ROLES[_role(path, row)]
            self.lines_ += ax.plot(
                steps, values[:, row], linewidth=1.6 if few else 0.9, label=f"id {sample}",
                marker="o" if len(path) <= 40 and few else None, markersize=3, zorder=2, **style,
            )  # fmt: skip
        if self.kind == "g":
            ax.axhline(0.0, color=INK, linewidth=0.8)
        ax.set_xlim(0, max(1, len(path) - 1))
        ax.locator_params(axis="x", integer=True)
        ax.set_xlabel("breakpoint")
        ax.set_ylabel("weight α" if self.kind == "alpha" else "margin g")

    def _draw_unlearning(self, ax: Any) -> None:
        few = len(self.ids) <= MOST_NAMED
        for i, (path, sample) in enumerate(zip(self.paths, self.ids, strict=True)):
            alpha, g = path.of(sample)
            style = line_style(i)
            if few:
                self._draw_response(ax, alpha, g, style["color"])
            self.lines_ += ax.plot(
                alpha, g, label=f"id {sample}", linewidth=1.5 if few else 0.8,
                marker="o" if few else None, markersize=3.5, zorder=2, **style,
            )  # fmt: skip
            ax.plot(
                alpha[-1:], g[-1:], marker="o", markersize=7 if few else 3.5,
                markerfacecolor="white", color=style["color"], clip_on=False, zorder=3,
            )  # fmt: skip
        if any(path.machine for path in self.paths):
            ax.axhline(-1.0, zorder=1, **_ERROR_LINE)
        ax.set_xlim(left=0.0)
        ax.set_xlabel("weight α while the sample is unlearned")
        ax.set_ylabel("margin g of the sample")

    def _draw_response(
        self, ax: Any, alpha: npt.NDArray[Any], g: npt.NDArray[Any], colour: str
    ) -> None:
        """The first segment, drawn on to alpha = 0."""
        moved = np.flatnonzero(alpha < alpha[0])
        if len(moved):
            first = moved[0]  # what came before it are other samples that met at the start
            slope = (g[first - 1] - g[first]) / (alpha[0] - alpha[first])
            ax.plot(
                [alpha[0], 0.0], [g[0], g[first - 1] - slope * alpha[0]], color=colour,
                linewidth=0.8, linestyle=":", zorder=1,
            )  # fmt: skip

    def _keys(self, few: bool) -> list[Any]:
        if self.kind != "unlearning":
            keys = [legend_key("other samples", **OTHERS)]
            if not few:
                [path] = self.paths
                roles = {_role(path, path.row_of(sample)) for sample in self.ids}
                named = [legend_key(role, **_ROLES[role]) for role in sorted(roles)]
                return [*named, *(keys if len(self.ids) < len(set(path.ids.tolist())) else [])]
            return keys
        hollow = {"marker": "o", "markerfacecolor": "white", "color": INK, "linestyle": ""}
        keys = [legend_key("leave-one-out margin", **hollow)]
        if few:
            keys.append(legend_key("linear response", color=INK, linestyle=":", linewidth=0.8))
        if any(path.machine for path in self.paths):
            keys.append(legend_key("leave-one-out error below", **_ERROR_LINE))
        return keys


def _role(path: Trajectory, row: int) -> str:
    return "came" if path.entering[row] else "went" if path.leaving[row] else "stayed"


def _require_kind(kind: str) -> None:
    if kind not in KINDS:
        raise ValueError(f"kind={kind!r} must be one of {KINDS}")
