# SPDX-License-Identifier: BSD-3-Clause
"""The answers: what models without some samples, or with others, say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from adiabat.certificate import Certificate
from adiabat.estimators.kernel.partition import count_moves
from adiabat.typing import FloatArray


@dataclass(frozen=True)
class LeaveOneOut:
    """What the models without each sample say of it, in the order of `ids_`.

    Attributes
    ----------
    ids : ndarray
        The samples.
    target : ndarray
        Their labels.
    decision : ndarray or None
        Decision values, shaped as by `decision_function`; None with ``decisions=False``. Without
        the last sample of a class the class is gone: of more than two, its value is -inf.
    prediction : ndarray
        Labels predicted.
    n_removals : int
        How many removals it took; samples without weight need none.
    f_error : ndarray or None
        How far the decision values may be off, shaped alike, where that is known.

    Examples
    --------
    >>> from adiabat import SVC
    >>> X, y = [[-3.0], [-1.0], [1.0], [4.0]], [0, 0, 1, 1]
    >>> model = SVC(kernel="linear", C=10.0).fit(X, y)
    >>> found = model.leave_one_out()
    >>> found.prediction.tolist(), found.error_rate
    ([0, 0, 0, 1], 0.25)
    """

    ids: npt.NDArray[Any]
    target: npt.NDArray[Any]
    decision: FloatArray | None
    prediction: npt.NDArray[Any]
    n_removals: int
    f_error: FloatArray | None = None

    @property
    def correct(self) -> npt.NDArray[np.bool_]:
        """Whether each sample is recognised by the model that never had it."""
        return np.asarray(self.prediction == self.target)

    @property
    def error_rate(self) -> float:
        """The part that is not: the leave-one-out estimate of the error."""
        return 1.0 - float(np.mean(self.correct))

    def __str__(self) -> str:
        wrong = int(np.sum(~self.correct))
        return (
            f"{wrong} of {len(self.ids)} samples are misclassified by the models without them "
            f"({100.0 * self.error_rate:.2f} %); {self.n_removals} removals"
        )


@dataclass(frozen=True)
class LeaveOneOutRegression:
    """What the models without each sample predict for it, in the order of `ids_`.

    Attributes
    ----------
    ids : ndarray
        The samples.
    target : ndarray
        Their targets.
    prediction : ndarray
        Predicted by the model that never had the sample.
    n_removals : int
        How many removals it took; samples without weight need none.
    f_error : ndarray or None
        How far the predictions may be off, where that is known.
    """

    ids: npt.NDArray[Any]
    target: FloatArray
    prediction: FloatArray
    n_removals: int
    f_error: FloatArray | None = None

    @property
    def decision(self) -> FloatArray:
        """The predictions, by the name that classifiers have for them."""
        return self.prediction

    @property
    def residual(self) -> FloatArray:
        """Prediction less target."""
        return self.prediction - self.target

    @property
    def mean_absolute_error(self) -> float:
        """The leave-one-out estimate of the mean absolute error."""
        return float(np.mean(np.abs(self.residual)))

    def __str__(self) -> str:
        return (
            f"mean absolute error {self.mean_absolute_error:.4g} over {len(self.ids)} samples by "
            f"the models without them; {self.n_removals} removals"
        )


@dataclass(frozen=True)
class LeaveOneOutNovelty:
    """What the models without each sample say of it, in the order of `ids_`.

    Attributes
    ----------
    ids : ndarray
        The samples.
    decision : ndarray
        Decision values of the model that never had the sample: above 0 inside.
    n_removals : int
        How many removals it took.
    """

    ids: npt.NDArray[Any]
    decision: FloatArray
    n_removals: int

    @property
    def prediction(self) -> npt.NDArray[np.int64]:
        """+1 for samples that the model without them takes for its own, -1 for others."""
        return np.where(self.decision >= 0.0, 1, -1)

    @property
    def correct(self) -> npt.NDArray[np.bool_]:
        """Whether each sample is taken in by the model that never had it."""
        return np.asarray(self.decision >= 0.0)

    @property
    def error_rate(self) -> float:
        """The part that is not: the leave-one-out estimate of false alarms."""
        return 1.0 - float(np.mean(self.correct))

    def __str__(self) -> str:
        return (
            f"{int(np.sum(~self.correct))} of {len(self.ids)} samples are outside for the models "
            f"without them ({100.0 * self.error_rate:.2f} %); {self.n_removals} removals"
        )


@dataclass(frozen=True)
class LeaveOut:
    """What the models without each group say of its samples, in the order of `ids_`.

    Attributes
    ----------
    ids : ndarray
        The samples that are in a group.
    group : ndarray
        The group of each: its label, or its place in the list of groups.
    target : ndarray or None
        Their labels or numbers; None where the model has none.
    decision : ndarray
        Decision values, shaped as by `decision_function` (for numbers, the predictions). A class
        that goes with a group has the value -inf; where one class is left of two, it is 0.
    prediction : ndarray
        Labels, numbers, or +1 inside and -1 outside.
    n_groups : int
        How many groups were left out.

    Examples
    --------
    >>> from adiabat import SVC
    >>> X, y = [[-3.0], [-1.0], [1.0], [4.0]], [0, 0, 1, 1]
    >>> model = SVC(kernel="linear", C=10.0).fit(X, y)
    >>> found = model.leave_out(["a", "b", "a", "b"])
    >>> found.error
    0.25
    """

    ids: npt.NDArray[Any]
    group: npt.NDArray[Any]
    target: npt.NDArray[Any] | None
    decision: FloatArray
    prediction: npt.NDArray[Any]
    n_groups: int
    _numbers: bool = False

    @property
    def correct(self) -> npt.NDArray[np.bool_]:
        """Whether each sample is recognised by the model that never had its group."""
        if self._numbers:
            raise AttributeError("correct is for labels; numbers have a residual")
        truth = 1 if self.target is None else self.target
        return np.asarray(self.prediction == truth)

    @property
    def residual(self) -> FloatArray:
        """Target less prediction."""
        if not self._numbers or self.target is None:
            raise AttributeError("residual is for numbers; labels are correct or not")
        return np.asarray(self.target - self.prediction)

    @property
    def error(self) -> float:
        """The part of the samples that is not recognised; for numbers, the mean squared error."""
        if self._numbers:
            return float(np.mean(self.residual**2))
        return 1.0 - float(np.mean(self.correct))

    def __str__(self) -> str:
        if self._numbers:
            said = f"mean squared error {self.error:.4g} on {len(self.ids)} samples"
        else:
            wrong = int(np.sum(~self.correct))
            verdict = "outside" if self.target is None else "misclassified"
            said = f"{wrong} of {len(self.ids)} samples are {verdict} ({100 * self.error:.2f} %)"
        return f"{said} by the models without their group; {self.n_groups} groups"


@dataclass(frozen=True)
class Preview:
    """Decision values before and after an update that was not carried out.

    Attributes
    ----------
    before, after : ndarray
        Decision values at the points asked about, by default at the samples that stay, in the
        order of `ids` (for numbers, predictions), both shaped as by
        `decision_function` of a model with the classes of either. A class that is not there has
        the value -inf; where there is one of two, it is 0.
    n_added, n_removed : int
        Samples of the update.
    n_support : tuple of int
        How many samples carry weight before and after.
    n_joining, n_leaving : int
        Of the samples that stay: how many would begin to carry weight, and how many would cease.
    ids : ndarray
        The samples that stay.
    sets : tuple of ndarray
        In which set each of them is before and after: ``"MARGIN"``, ``"ERROR"``, ``"RESERVE"``.
    certificate : Certificate
        The certificate of the model after the update.

    Examples
    --------
    >>> from adiabat import SVC
    >>> X, y = [[-3.0], [-1.0], [1.0], [4.0]], [0, 0, 1, 1]
    >>> model = SVC(kernel="linear", C=10.0).fit(X, y)
    >>> seen = model.preview(remove=[1], at=[[0.0]])
    >>> seen.before.round(3).tolist(), seen.after.round(3).tolist()
    ([0.0], [0.5])
    >>> len(model.ids_)
    4
    """

    before: FloatArray
    after: FloatArray
    n_added: int
    n_removed: int
    n_support: tuple[int, int]
    n_joining: int
    n_leaving: int
    ids: npt.NDArray[Any]
    sets: tuple[npt.NDArray[Any], npt.NDArray[Any]]
    certificate: Certificate

    @property
    def moves(self) -> dict[tuple[str, str], int]:
        """How many samples that stay would go from one set to another, by (from, to)."""
        return count_moves(*self.sets)

    @property
    def change(self) -> FloatArray:
        """After less before; -inf where a class would go, inf where one would come."""
        return np.asarray(np.where(self.after == self.before, 0.0, self.after - self.before))

    def __str__(self) -> str:
        largest = float(np.abs(self.change).max(initial=0.0))
        moves = [f"{n} from {a} to {b}" for (a, b), n in self.moves.items()]
        return (
            f"{self.n_added} added, {self.n_removed} removed: decision values would change by up "
            f"to {largest:.4g}; support {self.n_support[0]} -> {self.n_support[1]}, of the samples "
            f"that stay {self.n_joining} would join and {self.n_leaving} leave it"
            + (f"; {', '.join(moves)}" if moves else "")
        )


@dataclass(frozen=True)
class Influence:
    """The change of a loss when each sample goes, in the order of `ids_`.

    Attributes
    ----------
    ids : ndarray
        The samples.
    change : ndarray
        Loss without the sample less loss with it: above 0 if the sample helps.
    loss : float
        The loss of the model as it is.
    n_removals : int
        How many samples had to be removed; the others have no influence.

    Examples
    --------
    >>> from adiabat import SVC
    >>> X, y = [[-3.0], [-1.0], [1.0], [4.0]], [0, 0, 1, 1]
    >>> model = SVC(kernel="linear", C=10.0).fit(X, y)
    >>> found = model.influence([[0.5], [-0.5]], [1, 0])
    >>> found.change.shape
    (4,)
    """

    ids: npt.NDArray[Any]
    change: FloatArray
    loss: float
    n_removals: int

    def __str__(self) -> str:
        return (
            f"loss {self.loss:.4g}; without one sample between {self.loss + self.change.min():.4g} "
            f"and {self.loss + self.change.max():.4g}; {self.n_removals} removals"
        )
