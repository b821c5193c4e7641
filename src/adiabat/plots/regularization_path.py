# SPDX-License-Identifier: BSD-3-Clause
"""The weights of all samples for every C between two values."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from adiabat.analysis.sets import find_machine, held_model
from adiabat.errors import IdError
from adiabat.plots.canvas import INK, OTHERS, axes, legend_beside, legend_key, line_style, pyplot

KINDS = ("share", "weight")
# So many samples are named where none are asked for.
NAMED = 6
# Points drawn between the ends: between breakpoints a weight is linear in C, a share is not.
POINTS = 200


class RegularizationPathDisplay:
    """The weights of samples against C, exact at every C.

    Of kind ``"share"``: weights as a part of C. A sample at 1 is an ERROR vector, one at 0 carries
    no weight, those between hold the margin (sample weights and class weights move the 1). Of kind
    ``"weight"``: the weights themselves. Small ticks on the upper edge are breakpoints, where a
    sample changes sets. Make it with :meth:`from_estimator` or :meth:`from_path`.

    Parameters
    ----------
    C : ndarray of shape (n_points,)
        Values of C, ascending.
    weights : ndarray of shape (n_points, n_samples)
        Weights alpha there, at least 0.
    sample_ids : ndarray of shape (n_samples,)
        The samples' ids.
    ids : list
        The samples that are named.
    breakpoints : ndarray
        Values of C at which a sample changes sets.
    kind : {"share", "weight"}
        What is drawn.

    Attributes
    ----------
    ax_, figure_
        The axes and the figure it was drawn in.
    lines_ : list of Line2D
        The curves of the named samples.

    Examples
    --------
    >>> from adiabat import SVC
    >>> from adiabat.plots import RegularizationPathDisplay
    >>> model = SVC(kernel="linear").fit([[-3.0], [-1.0], [1.0], [4.0]], [0, 0, 1, 1])
    >>> display = RegularizationPathDisplay.from_estimator(model, 0.01, 10.0)
    >>> sorted(line.get_label() for line in display.lines_)
    ['id 0', 'id 1', 'id 2', 'id 3']
    """

    def __init__(
        self,
        *,
        C: npt.NDArray[np.float64],
        weights: npt.NDArray[np.float64],
        sample_ids: npt.NDArray[Any],
        ids: list[Any],
        breakpoints: npt.NDArray[np.float64],
        kind: str,
    ) -> None:
        self.C = C
        self.weights = weights
        self.sample_ids = sample_ids
        self.ids = ids
        self.breakpoints = breakpoints
        self.kind = kind

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        C_min: float,
        C_max: float,
        *,
        ids: Any = None,
        kind: str = "share",
        machine: Any = None,
        ax: Any = None,
        legend: bool = True,
    ) -> RegularizationPathDisplay:
        """Follow a model from C_min to C_max; the model is not changed.

        Parameters
        ----------
        estimator : fitted estimator with `regularization_path`
            The model.
        C_min, C_max : float
            The ends.
        ids, kind, ax, legend
            As in `from_path`.
        machine : pair of labels, optional
            Which pair of classes, where there are more than two.

        Returns
        -------
        RegularizationPathDisplay
        """
        pyplot("RegularizationPathDisplay")
        held_model(estimator)
        if not hasattr(estimator, "regularization_path"):
            raise TypeError(f"{type(estimator).__name__} has no regularization_path; use an SVC")
        column = find_machine(estimator, machine)
        path = estimator.regularization_path(C_min, C_max)
        return cls.from_path(path, ids=ids, kind=kind, column=column, ax=ax, legend=legend)

    @classmethod
    def from_path(
        cls,
        path: Any,
        *,
        ids: Any = None,
        kind: str = "share",
        column: int = 0,
        ax: Any = None,
        legend: bool = True,
    ) -> RegularizationPathDisplay:
        """Draw a path that is there already.

        Parameters
        ----------
        path : RegularizationPath
            Of ``model.regularization_path(C_min, C_max)``.
        ids : id or sequence of ids, optional
            The samples to name; by default those whose weight moves most as a part of C.
        kind : {"share", "weight"}, default="share"
            What is drawn.
        column : int, default=0
            Which machine, where there are several.
        ax, legend
            As in `plot`.

        Returns
        -------
        RegularizationPathDisplay
        """
        pyplot("RegularizationPathDisplay")
        if kind not in KINDS:
            raise ValueError(f"kind={kind!r} must be one of {KINDS}")
        between = np.geomspace(path.C[0], path.C[-1], POINTS)[1:-1]
        C = np.unique(np.concatenate([path.C, between]))
        coefficients = np.stack([path.at(float(value)).coefficients for value in C])
        if coefficients.ndim == 3:
            coefficients = coefficients[..., column]
        weights = np.abs(coefficients)
        known = list(path.ids)
        if ids is None:
            moves = np.abs(np.diff(weights / C[:, None], axis=0)).sum(axis=0)
            ids = [known[i] for i in np.argsort(-moves, kind="stable")[:NAMED] if moves[i] > 0.0]
        chosen = list(ids) if isinstance(ids, (list, tuple, np.ndarray)) else [ids]
        missing = [sample for sample in chosen if sample not in set(known)]
        if missing:
            raise IdError(f"ids: {missing[:5]!r} not on this path; its ids are in `path.ids`")
        display = cls(
            C=C, weights=weights, sample_ids=path.ids, ids=chosen, breakpoints=path.C[1:-1],
            kind=kind,
        )  # fmt: skip
        return display.plot(ax=ax, legend=legend)

    def plot(self, ax: Any = None, *, legend: bool = True) -> RegularizationPathDisplay:
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
        ax = axes("RegularizationPathDisplay", ax)
        values = self.weights / self.C[:, None] if self.kind == "share" else self.weights
        rows = [list(self.sample_ids).index(sample) for sample in self.ids]
        others = np.setdiff1d(np.arange(values.shape[1]), rows)
        ax.plot(self.C, values[:, others], zorder=1, **OTHERS)
        self.lines_: list[Any] = []
        for i, (sample, row) in enumerate(zip(self.ids, rows, strict=True)):
            self.lines_ += ax.plot(
                self.C, values[:, row], linewidth=1.6, label=f"id {sample}", zorder=2,
                **line_style(i),
            )  # fmt: skip
        ax.set_xscale("log")
        ax.set_xlim(self.C[0], self.C[-1])
        ax.plot(
            self.breakpoints, np.ones(len(self.breakpoints)), marker="|", markersize=7,
            linestyle="", color=INK, transform=ax.get_xaxis_transform(), clip_on=False,
        )  # fmt: skip
        ax.set_xlabel("C")
        ax.set_ylabel("weight as a part of C" if self.kind == "share" else "weight α")
        if legend:
            keys = [legend_key("breakpoints", color=INK, marker="|", linestyle="")]
            if len(others):
                keys.insert(0, legend_key("other samples", **OTHERS))
            legend_beside(ax, [*self.lines_, *keys])
        self.ax_ = ax
        self.figure_ = ax.figure
        return self
