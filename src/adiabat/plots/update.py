# SPDX-License-Identifier: BSD-3-Clause
"""Which samples an update moved from set to set."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from adiabat.analysis.sets import held_model, sets
from adiabat.analysis.trajectory import Trajectory, trajectories
from adiabat.engine.report import UpdateReport
from adiabat.estimators.kernel.partition import ABSENT, ERROR, MARGIN, RESERVE
from adiabat.plots.canvas import INK, axes, pyplot

ORDER = (ABSENT, RESERVE, MARGIN, ERROR)
WORDS = {ABSENT: "not in\nthe model"}
# As many ids are written into a cell, and no longer than this each.
MOST_IDS = 4
LONGEST_ID = 10


class UpdateDisplay:
    """Which samples an update moved from set to set: a table, before by after.

    On the diagonal are those that stayed where they were; off it, those that moved, by id where
    they are few. Make it with :meth:`from_estimator` or :meth:`from_report`.

    Parameters
    ----------
    ids : ndarray of shape (n,)
        Samples held before the update, after it, or both.
    before, after : ndarray of shape (n,)
        Their sets: ``"MARGIN"``, ``"ERROR"``, ``"RESERVE"`` or ``"ABSENT"``.

    Attributes
    ----------
    counts : ndarray of shape (4, 4)
        Samples by set before (rows) and after (columns), in the order ABSENT, RESERVE, MARGIN,
        ERROR.
    ax_, figure_
        The axes and the figure it was drawn in.
    text_ : ndarray of shape (4, 4)
        The artists of the cells.

    Examples
    --------
    >>> import copy
    >>> from adiabat import SVC
    >>> from adiabat.plots import UpdateDisplay
    >>> model = SVC(kernel="linear", C=10.0).fit([[-3.0], [-1.0], [1.0], [4.0]], [0, 0, 1, 1])
    >>> before = copy.deepcopy(model)
    >>> display = UpdateDisplay.from_estimator(model.forget([1]), before)
    >>> display.moved()
    {('RESERVE', 'MARGIN'): [0], ('MARGIN', 'ABSENT'): [1]}
    """

    def __init__(
        self, *, ids: npt.NDArray[Any], before: npt.NDArray[Any], after: npt.NDArray[Any]
    ) -> None:
        self.ids = ids
        self.before = before
        self.after = after

    @classmethod
    def from_estimator(
        cls, estimator: Any, before: Any, *, machine: Any = None, ax: Any = None
    ) -> UpdateDisplay:
        """Compare a model with an earlier state of it.

        Parameters
        ----------
        estimator : fitted SVC, SVR, OneClassSVM or SVDD
            The model after the update.
        before : the same
            A copy of it made before (`copy.deepcopy`).
        machine : pair of labels, optional
            Which pair of classes; by default a sample's highest set in any pair.
        ax : Axes, optional
            Where to draw; new axes by default.

        Returns
        -------
        UpdateDisplay
        """
        pyplot("UpdateDisplay")
        known: dict[Any, list[str]] = {}
        for place, model in enumerate((before, estimator)):
            ids = held_model(model).ledger.ids.tolist()
            for sample, found in zip(ids, sets(model, machine).tolist(), strict=True):
                known.setdefault(sample, [ABSENT, ABSENT])[place] = found
        return cls._of(known).plot(ax=ax)

    @classmethod
    def from_report(
        cls, report: UpdateReport, *, machine: Any = None, ax: Any = None
    ) -> UpdateDisplay:
        """Draw what an update did, if it was traced.

        Samples that no machine had to look at are not in the table.

        Parameters
        ----------
        report : UpdateReport
            Of ``model.update(..., trace=True)``.
        machine : pair of labels, optional
            Which pair of classes; by default a sample's highest set in any that moved.
        ax : Axes, optional
            Where to draw; new axes by default.

        Returns
        -------
        UpdateDisplay
        """
        pyplot("UpdateDisplay")
        known: dict[Any, list[str]] = {}
        for path in trajectories(report):
            if machine is None or set(path.machine) == set(machine):
                _take(known, path)
        if not known:
            raise ValueError(f"the report has no trajectory of machine={machine!r}")
        return cls._of(known).plot(ax=ax)

    @classmethod
    def _of(cls, known: dict[Any, list[str]]) -> UpdateDisplay:
        ids = np.empty(len(known), dtype=object)
        ids[:] = list(known)
        pairs = np.array(list(known.values())).reshape(-1, 2)
        return cls(ids=ids, before=pairs[:, 0], after=pairs[:, 1])

    @property
    def counts(self) -> npt.NDArray[np.int64]:
        """Samples by set before (rows) and after (columns)."""
        return np.array(
            [[int(np.sum((self.before == a) & (self.after == b))) for b in ORDER] for a in ORDER]
        )

    def moved(self) -> dict[tuple[str, str], list[Any]]:
        """Ids of the samples that changed sets, by (before, after)."""
        found: dict[tuple[str, str], list[Any]] = {}
        for sample, a, b in zip(self.ids, self.before, self.after, strict=True):
            if a != b:
                found.setdefault((str(a), str(b)), []).append(sample)
        return found

    def plot(self, ax: Any = None) -> UpdateDisplay:
        """Draw it.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; new axes by default.

        Returns
        -------
        self
        """
        ax = axes("UpdateDisplay", ax)
        counts, moved = self.counts, self.moved()
        self.text_ = np.empty((4, 4), dtype=object)
        for i, a in enumerate(ORDER):
            for j, b in enumerate(ORDER):
                stays = i == j
                face = "#EDEDED" if stays else ("#CFE0EC" if counts[i, j] else "white")
                ax.add_patch(_cell(i, j, face, dashed=stays))
                words = _words(int(counts[i, j]), moved.get((a, b), []), stays, a)
                self.text_[i, j] = ax.text(
                    j, i, words, ha="center", va="center", color=INK, fontsize="small",
                    fontweight="normal" if stays else "bold",
                )  # fmt: skip
        names = [WORDS.get(name, name) for name in ORDER]
        ax.set_xticks(range(4), names)
        ax.set_yticks(range(4), names)
        ax.set_xlim(-0.5, 3.5)
        ax.set_ylim(3.5, -0.5)
        ax.set_xlabel("after")
        ax.set_ylabel("before")
        ax.tick_params(length=0)
        total = sum(len(ids) for ids in moved.values())
        ax.set_title(f"{total} of {len(self.ids)} samples changed sets", fontsize="medium")
        self.ax_ = ax
        self.figure_ = ax.figure
        return self


def _take(known: dict[Any, list[str]], path: Trajectory) -> None:
    """Sets at both ends of a trajectory; of several rows or machines the highest."""
    first = np.where(path.entering, ABSENT, path.sets[0])
    last = np.where(path.leaving, ABSENT, path.sets[-1])
    for sample, a, b in zip(path.ids.tolist(), first.tolist(), last.tolist(), strict=True):
        old = known.setdefault(sample, [ABSENT, ABSENT])
        old[0] = max(old[0], a, key=ORDER.index)
        old[1] = max(old[1], b, key=ORDER.index)


def _cell(row: int, column: int, face: str, dashed: bool) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle(
        (column - 0.5, row - 0.5), 1.0, 1.0, facecolor=face, edgecolor=INK, linewidth=0.6,
        linestyle=":" if dashed else "-",
    )  # fmt: skip


def _words(count: int, ids: list[Any], stays: bool, name: str) -> str:
    """What a cell says: how many, and who if they are few."""
    if count == 0:
        return "" if not stays or name == ABSENT else "0 stay"
    if stays:
        return f"{count} stay"
    shown = [str(sample) for sample in ids[:MOST_IDS]]
    shown = [text if len(text) <= LONGEST_ID else text[: LONGEST_ID - 1] + "…" for text in shown]
    per_line = 2 if max(map(len, shown)) <= 4 else 1
    lines = [", ".join(shown[i : i + per_line]) for i in range(0, len(shown), per_line)]
    more = count - len(shown)
    return "\n".join([f"{count}", *lines, *([f"+ {more} more"] if more else [])])
