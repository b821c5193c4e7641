# SPDX-License-Identifier: BSD-3-Clause
"""Trajectories: weights and margins of samples from breakpoint to breakpoint (CP01 figures 3, 5).

alpha = s u and g = s r, where s is +1 for rows whose weight is at least 0 and -1 for the others;
for two classes s is the label y of CP01. On the path alpha and g are linear between breakpoints,
so that these are all there is to know.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from adiabat._core.ratio import HIGH, LOW, PINNED, RESTING
from adiabat._core.ratio import MARGIN as IN_MARGIN
from adiabat.analysis.frames import as_frame
from adiabat.analysis.sets import held_model
from adiabat.engine.path import Breakpoint
from adiabat.engine.report import UpdateReport
from adiabat.engine.trace import RowNames, Trace
from adiabat.errors import IdError
from adiabat.estimators.kernel.partition import ABSENT, ERROR, MARGIN, classify
from adiabat.typing import FloatArray


@dataclass(frozen=True)
class Trajectory:
    """Weights and margins of the rows of one machine, from breakpoint to breakpoint.

    Attributes
    ----------
    ids : ndarray of shape (n_rows,)
        The samples' ids; a sample of a regression has two rows.
    alpha : ndarray of shape (n_steps, n_rows)
        Weights, at least 0. NaN where a row was not there.
    g : ndarray of shape (n_steps, n_rows)
        Margins y f - 1 of classes (CP01 (2)), else the residual f - t with the sign of the weight.
    sets : ndarray of shape (n_steps, n_rows)
        ``"MARGIN"``, ``"ERROR"``, ``"RESERVE"``, or ``"ABSENT"``.
    bias : ndarray of shape (n_steps,)
        The constant of the decision function.
    events : list of str
        What happened at each step: ``"start"``, ``"to margin"``, ``"to bound"``, ``"arrival"``...
    met : list
        The id of the row that changed sets there, or None.
    entering, leaving : ndarray of bool, shape (n_rows,)
        Rows that came, and that went.
    machine : tuple
        The labels of the two classes, or () where there is but one machine.
    """

    ids: npt.NDArray[Any]
    alpha: FloatArray
    g: FloatArray
    sets: npt.NDArray[Any]
    bias: FloatArray
    events: list[str]
    met: list[Any]
    entering: npt.NDArray[np.bool_]
    leaving: npt.NDArray[np.bool_]
    machine: tuple[Any, ...] = ()

    def __len__(self) -> int:
        return len(self.events)

    @property
    def n_margin(self) -> npt.NDArray[np.int64]:
        """MARGIN rows at each step."""
        return np.asarray(np.sum(self.sets == MARGIN, axis=1))

    def row_of(self, sample: Any) -> int:
        """The row of a sample: of several the one that carries most weight on the way."""
        rows = np.flatnonzero(self.ids == sample)
        if len(rows) == 0:
            raise IdError(
                f"id={sample!r} is not in this trajectory; its ids are in `ids`, "
                f"{self.ids[:3].tolist()} and so on"
            )
        reached = np.nanmax(np.abs(self.alpha[:, rows]), axis=0, initial=0.0)
        return int(rows[np.argmax(reached)])

    def of(self, sample: Any) -> tuple[FloatArray, FloatArray]:
        """(alpha, g) of one sample at every step, by its id."""
        row = self.row_of(sample)
        return self.alpha[:, row], self.g[:, row]

    def to_frame(self) -> Any:
        """All of it in long form: a data frame if pandas is there, else a dictionary of arrays.

        Columns ``step``, ``event``, ``id``, ``row``, ``alpha``, ``g``, ``set``; rows that are not
        there at a step are left out.
        """
        step, row = np.nonzero(self.sets != ABSENT)
        return as_frame(
            {
                "step": step,
                "event": np.array(self.events, dtype=object)[step],
                "id": self.ids[row],
                "row": row,
                "alpha": self.alpha[step, row],
                "g": self.g[step, row],
                "set": self.sets[step, row],
            }
        )


def trajectories(report: UpdateReport) -> list[Trajectory]:
    """The trajectories of an update, one for each machine that moved.

    Parameters
    ----------
    report : UpdateReport
        Of ``model.update(..., trace=True)``, of `retune` with it, or ``model.last_update_`` after
        `revise` with it.

    Returns
    -------
    list of Trajectory

    Examples
    --------
    >>> from adiabat import SVC
    >>> from adiabat.analysis import trajectories
    >>> model = SVC(kernel="linear", C=10.0).fit([[-3.0], [-1.0], [1.0], [4.0]], [0, 0, 1, 1])
    >>> [path] = trajectories(model.update(remove=[1], trace=True))
    >>> path.events
    ['start', 'to margin', 'arrival']
    >>> alpha, g = path.of(1)
    >>> alpha.round(3).tolist()
    [0.5, 0.25, 0.0]
    """
    if report.trace is None:
        raise ValueError("the report has no trace; call update, revise or retune with trace=True")
    return [_lay_out(trace) for trace in report.trace if len(trace)]


def learning_trajectory(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    ids: Any = None,
    sample_weight: Any = None,
    one_at_a_time: bool = False,
    machine: Any = None,
) -> Trajectory:
    """How a model would come to know samples; the model itself is not changed.

    Parameters
    ----------
    model : estimator
        Fitted, or not: then the samples are its first.
    X, y, ids, sample_weight
        As in `update`.
    one_at_a_time : bool, default=False
        One path after another, a sample each (CP01 figure 3), rather than one path for all (KT09).
    machine : pair of labels, optional
        Which pair of classes, where there are more than two.

    Returns
    -------
    Trajectory

    Examples
    --------
    >>> from adiabat import SVC
    >>> from adiabat.analysis import learning_trajectory
    >>> X, y = [[-3.0], [-1.0], [1.0], [4.0]], [0, 0, 1, 1]
    >>> model = SVC(kernel="linear", C=10.0).fit(X, y)
    >>> path = learning_trajectory(model, [[0.5]], [1])
    >>> path.events[0], path.events[-1], len(model.ids_)
    ('start', 'entered', 4)
    """
    learner = copy.deepcopy(model)
    if not one_at_a_time:
        report = learner.update(X, y, ids=ids, sample_weight=sample_weight, trace=True)
        return _one_of(trajectories(report), machine)
    parts = []
    for i in range(X.shape[0] if hasattr(X, "shape") else len(X)):
        report = learner.update(
            _row(X, i),
            None if y is None else _row(y, i),
            ids=None if ids is None else _row(ids, i),
            sample_weight=None if sample_weight is None else _row(sample_weight, i),
            trace=True,
        )
        found = trajectories(report)
        if machine is not None:
            found = [path for path in found if set(path.machine) == set(machine)]
        if found:  # of a first class alone there is no path
            parts.append(_one_of(found, machine))
    return join_trajectories(parts)


def unlearning_trajectory(model: Any, ids: Any, *, machine: Any = None) -> Trajectory:
    """How a model would unlearn samples; the model itself is not changed.

    For one sample, `of(id)` is the curve of CP01 figure 5: g against alpha, down to the
    leave-one-out margin at alpha = 0.

    Parameters
    ----------
    model : fitted estimator
        An estimator of this package that keeps its samples.
    ids : id or sequence of ids
        The samples to unlearn, in one path.
    machine : pair of labels, optional
        Which pair of classes, where there are more than two.

    Returns
    -------
    Trajectory

    Examples
    --------
    >>> from adiabat import SVC
    >>> from adiabat.analysis import unlearning_trajectory
    >>> X, y = [[-3.0], [-1.0], [1.0], [4.0]], [0, 0, 1, 1]
    >>> model = SVC(kernel="linear", C=10.0).fit(X, y)
    >>> path = unlearning_trajectory(model, [1])
    >>> path.of(1)[0].round(3).tolist()
    [0.5, 0.25, 0.0]
    """
    held_model(model)
    report = copy.deepcopy(model).update(remove=ids, trace=True)
    return _one_of(trajectories(report), machine)


def join_trajectories(parts: Iterable[Trajectory]) -> Trajectory:
    """One trajectory after another; rows are NaN and ABSENT where they are not there.

    Examples
    --------
    >>> from adiabat import SVC
    >>> from adiabat.analysis import join_trajectories, unlearning_trajectory
    >>> X, y = [[-3.0], [-1.0], [1.0], [4.0]], [0, 0, 1, 1]
    >>> model = SVC(kernel="linear", C=10.0).fit(X, y)
    >>> parts = [unlearning_trajectory(model, [k]) for k in (1, 2)]
    >>> len(join_trajectories(parts)) > len(parts[0])
    True
    """
    parts = list(parts)
    if not parts:
        raise ValueError("no path was followed: there is nothing to join")
    columns: dict[tuple[Any, int], int] = {}
    places = []
    for part in parts:
        repeats: dict[Any, int] = {}
        mine = []
        for sample in part.ids.tolist():
            repeats[sample] = repeats.get(sample, -1) + 1
            mine.append(columns.setdefault((sample, repeats[sample]), len(columns)))
        places.append(mine)
    steps = sum(len(part) for part in parts)
    alpha, g = np.full((2, steps, len(columns)), np.nan)
    sets = np.full(alpha.shape, ABSENT, dtype="<U7")
    entering, leaving = np.zeros((2, len(columns)), dtype=bool)
    first = 0
    for part, mine in zip(parts, places, strict=True):
        block = np.ix_(np.arange(first, first + len(part)), np.array(mine, dtype=np.int64))
        alpha[block], g[block], sets[block] = part.alpha, part.g, part.sets
        entering[mine] |= part.entering
        leaving[mine] |= part.leaving
        first += len(part)
    ids = np.empty(len(columns), dtype=object)
    ids[:] = [sample for sample, _ in columns]
    return Trajectory(
        ids=ids,
        alpha=alpha,
        g=g,
        sets=sets,
        bias=np.concatenate([part.bias for part in parts]),
        events=[event for part in parts for event in part.events],
        met=[sample for part in parts for sample in part.met],
        entering=entering,
        leaving=leaving,
        machine=parts[-1].machine,
    )


def _lay_out(trace: Trace) -> Trajectory:
    rows = trace.rows
    sign = np.where(rows.lo < 0.0, -1.0, 1.0)
    if trace.machine:  # of two classes: right for samples without force, too
        sign = np.where(rows.t < 0.0, -1.0, 1.0)
    u = np.array([point.u for point in trace])
    return Trajectory(
        ids=rows.ids,
        alpha=sign * u + 0.0,
        g=sign * np.array([point.r for point in trace]),
        sets=np.array([_sets_at(point, rows) for point in trace]),
        bias=np.array([point.b for point in trace]),
        events=[point.event for point in trace],
        met=[rows.ids[point.row] if point.row >= 0 else None for point in trace],
        entering=rows.entering,
        leaving=rows.leaving,
        machine=trace.machine,
    )


def _sets_at(point: Breakpoint, rows: RowNames) -> npt.NDArray[Any]:
    """The set of each row at a breakpoint: by its role, and for rows that are driven by weight."""
    found = classify(point.u, rows.lo, rows.hi)
    carries = point.u != 0.0
    found[carries & np.isin(point.role, (LOW, HIGH, PINNED))] = ERROR
    found[carries & np.isin(point.role, (IN_MARGIN, RESTING))] = MARGIN
    return found


def _one_of(found: list[Trajectory], machine: Any) -> Trajectory:
    """The trajectory of one machine."""
    if not found:
        raise ValueError(
            "no path was followed: with the samples that are then there, nothing is decided "
            "between classes"
        )
    if machine is None:
        if len(found) == 1:
            return found[0]
        raise ValueError(
            f"{len(found)} machines move, one for each pair of classes; say which: "
            f"machine={found[0].machine}"
        )
    for path in found:
        if set(path.machine) == set(machine):
            return path
    raise ValueError(f"machine={machine!r} does not move; of {[p.machine for p in found]} choose")


def _row(values: Any, i: int) -> Any:
    """One row, as a batch of one."""
    return values.iloc[i : i + 1] if hasattr(values, "iloc") else values[i : i + 1]
