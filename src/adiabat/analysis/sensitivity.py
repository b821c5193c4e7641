# SPDX-License-Identifier: BSD-3-Clause
"""How strongly a model holds to each of its samples: gamma, the span, and linear response.

Let the weight of sample c change by one unit while the margin answers. Then f(x_c) changes by

    gamma_c = min over beta of || phi(x_c) + sum over MARGIN of beta_j phi(x_j) ||^2,  1'beta = -1

(CP01 (15)-(21)): the squared distance in feature space between c and the span of the margin
vectors other than itself. With R the inverse of the margin's bordered system and v_c = (1, k_c) the
column of c, it is  k(x_c, x_c) - v_c' R v_c  for samples off the margin and  1 / R_cc  on it.

Unlearning c takes its weight u_c away, and where the sum d follows the samples (one-class) also
moves d. If no other sample changed sets on the way, f(x_c) would end at

    f(x_c) - gamma_c u_c + rho_c delta_c,     rho_c = v_c' R e_0   or   -R_0c / R_cc

which is the leave-one-out approximation by linear response: the first segment of the exact curve
(CP01 3.2). `check_sensitivity` says how often it is right on the data at hand.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import cholesky, solve_triangular

from adiabat.analysis.frames import as_frame
from adiabat.analysis.sets import find_machine, held_model
from adiabat.engine.machine import Machine
from adiabat.formulations.epsilon_svr import EpsilonSVR
from adiabat.typing import FloatArray, IntArray

# A leave-one-out margin this near to the threshold is on it: neither way is wrong.
ON_THE_LINE = 1e-9


@dataclass(frozen=True)
class Sensitivity:
    """What leaving out each sample would do to its own decision value, to first order.

    Attributes
    ----------
    ids : ndarray of shape (n,)
        The samples; for a pair of classes those of the pair.
    weight : ndarray of shape (n,)
        Signed weights u.
    gamma : ndarray of shape (n,)
        Sensitivities (CP01 (21)), at least 0; infinite where no other margin vector answers.
    g : ndarray of shape (n,)
        Margins: y f - 1 for classes, epsilon - abs(f - y) for regression, else f - t.
    loo_g : ndarray of shape (n,)
        Margins without the sample, as linear response has them; minus infinity where gamma is.
    threshold : float
        A sample counts as wrong where its margin is below: -1 for classes, else 0.
    machine : tuple
        The labels of the two classes, or () where there is but one machine.
    """

    ids: npt.NDArray[Any]
    weight: FloatArray
    gamma: FloatArray
    g: FloatArray
    loo_g: FloatArray
    threshold: float
    machine: tuple[Any, ...] = ()

    @property
    def span(self) -> FloatArray:
        """Distances in feature space to the span of the margin vectors: the roots of gamma."""
        root: FloatArray = np.sqrt(self.gamma)
        return root

    @property
    def loo_error(self) -> npt.NDArray[np.bool_]:
        """Which samples the model would be wrong about without them, as linear response has it."""
        wrong: npt.NDArray[np.bool_] = self.loo_g < self.threshold - ON_THE_LINE
        return wrong

    def to_frame(self) -> Any:
        """A row a sample: a data frame if pandas is there, else a dictionary of arrays."""
        return as_frame(
            {
                "id": self.ids,
                "weight": self.weight,
                "gamma": self.gamma,
                "span": self.span,
                "g": self.g,
                "loo_g": self.loo_g,
                "loo_error": self.loo_error,
            }
        )


@dataclass(frozen=True)
class Agreement:
    """Linear response beside the exact leave-one-out margins.

    Attributes
    ----------
    sensitivity : Sensitivity
        The approximation.
    exact_g : ndarray of shape (n,)
        Margins of the samples by models that never saw them.
    """

    sensitivity: Sensitivity
    exact_g: FloatArray

    @property
    def exact_error(self) -> npt.NDArray[np.bool_]:
        """Which samples the model is wrong about without them."""
        wrong: npt.NDArray[np.bool_] = self.exact_g < self.sensitivity.threshold - ON_THE_LINE
        return wrong

    @property
    def disagree(self) -> npt.NDArray[Any]:
        """Ids of the samples on which the two differ: right by one, wrong by the other."""
        near = np.abs(self.exact_g - self.sensitivity.threshold) <= ON_THE_LINE
        differ = (self.sensitivity.loo_error != self.exact_error) & ~near
        return np.asarray(self.sensitivity.ids[differ])

    @property
    def largest_difference(self) -> float:
        """The largest difference of a margin, of those that are finite."""
        apart = np.abs(self.sensitivity.loo_g - self.exact_g)
        return float(np.max(apart[np.isfinite(apart)], initial=0.0))

    def __str__(self) -> str:
        n = len(self.exact_g)
        return (
            f"leave-one-out errors of {n} samples: {int(self.exact_error.sum())} exact, "
            f"{int(self.sensitivity.loo_error.sum())} by linear response; they differ on "
            f"{len(self.disagree)}, margins by up to {self.largest_difference:.2g}"
        )


def sensitivity(model: Any, *, machine: Any = None) -> Sensitivity:
    """Sensitivities, spans and approximate leave-one-out margins of all samples.

    Costs one product of the kernel between all samples and the margin, and nothing is unlearned.

    Parameters
    ----------
    model : fitted estimator
        An estimator of this package that keeps its samples.
    machine : pair of labels, optional
        Which pair of classes, where there are more than two.

    Returns
    -------
    Sensitivity

    Examples
    --------
    >>> from adiabat import SVC
    >>> from adiabat.analysis import sensitivity
    >>> X, y = [[-3.0], [-1.0], [1.0], [4.0]], [0, 0, 1, 1]
    >>> found = sensitivity(SVC(kernel="linear", C=10.0).fit(X, y))
    >>> found.span.round(6).tolist()  # the others are on the line through the two margin vectors
    [0.0, 2.0, 2.0, 0.0]
    """
    held = held_model(model)
    place = find_machine(model, machine)
    key, one = held.machines[place]
    at = np.full(held.solver.samples.n, -1, dtype=np.int64)
    at[held.position] = np.arange(len(held))
    places = np.unique(at[one.at])
    position = held.position[places]
    weight = held.weights(places)[:, place]
    gamma, rho = _responses(one, position)
    delta = _change_of_sum(held, key, places)
    f, t = _decision(one, position)
    with np.errstate(invalid="ignore"):
        moved = np.where(weight == 0.0, 0.0, gamma * weight)
        lost = np.where(delta == 0.0, 0.0, rho * delta)
        loo_f = f - moved + lost
    margins = _Margins(held, key, places, t)
    loo_g = margins.of(loo_f)
    loo_g[~np.isfinite(loo_f)] = -np.inf
    return Sensitivity(
        ids=held.ledger.ids[places],
        weight=weight,
        gamma=gamma,
        g=margins.of(f),
        loo_g=loo_g,
        threshold=-1.0 if margins.of_classes else 0.0,
        machine=held.formulation.name_machine(key),
    )


def check_sensitivity(model: Any, *, machine: Any = None) -> Agreement:
    """How far linear response is from the truth on the data at hand.

    The exact margins are those of `leave_one_out` for two classes; else each sample that carries
    weight is unlearned on a copy of the model.

    Parameters
    ----------
    model, machine
        As in `sensitivity`.

    Returns
    -------
    Agreement

    Examples
    --------
    >>> from adiabat import SVC
    >>> from adiabat.analysis import check_sensitivity
    >>> X, y = [[-3.0], [-1.0], [1.0], [4.0]], [0, 0, 1, 1]
    >>> model = SVC(kernel="linear", C=10.0).fit(X, y)
    >>> found = check_sensitivity(model)
    >>> type(found).__name__
    'Agreement'
    """
    found = sensitivity(model, machine=machine)
    held = held_model(model)
    place = find_machine(model, machine)
    key, one = held.machines[place]
    places = held.ledger.locate(found.ids.tolist())
    _, t = _decision(one, held.position[places])
    margins = _Margins(held, key, places, t)
    if margins.of_classes and len(held.machines) == 1:
        members = np.bincount(held.target)
        decision = np.where(
            members[held.target] > 1, model.leave_one_out().decision, np.nan
        )  # without the last of a class nothing is decided
        return Agreement(found, margins.of(decision[places]))
    exact = found.g.copy()
    shrinks = held.formulation.total(key, held.target, held.weight) != 0.0
    for i in np.flatnonzero((found.weight != 0.0) | shrinks).tolist():
        exact[i] = margins.one(i, _leave_one_out_value(model, key, int(places[i])))
    return Agreement(found, exact)


def _leave_one_out_value(model: Any, key: Any, place: int) -> float:
    """F of one machine at one of its samples, once that sample is unlearned."""
    other = copy.deepcopy(model)
    held = model._model
    given = held.kernel.name == "precomputed"
    row = held.given_kernel()[[place]] if given else held.features(np.array([place]))
    other.forget([held.ledger.ids[place]])
    keys = [name for name, _ in other._model.machines]
    if key not in keys:
        return float("nan")  # the class is gone with its last sample
    if given:
        row = np.delete(row, place, axis=1)
    return float(other._model.decide(row)[0, keys.index(key)])


class _Margins:
    """Margins g of samples, from decision values f."""

    def __init__(self, held: Any, key: Any, places: IntArray, t: FloatArray) -> None:
        formulation = held.formulation
        self.of_classes = bool(formulation.name_machine(key))
        self._tube = formulation.epsilon if isinstance(formulation, EpsilonSVR) else None
        self._target = held.target[places]
        self._t = t

    def of(self, f: FloatArray) -> FloatArray:
        if self.of_classes:
            return np.asarray(self._t * f - 1.0)
        if self._tube is not None:
            return np.asarray(self._tube - np.abs(f - self._target))
        return np.asarray(f - self._t)

    def one(self, i: int, f: float) -> float:
        values = np.zeros(len(self._t))
        values[i] = f
        return float(self.of(values)[i])


def _decision(machine: Machine, position: IntArray) -> tuple[FloatArray, FloatArray]:
    """(f, t) of samples, by their first rows."""
    order = np.argsort(machine.at, kind="stable")
    rows = order[np.searchsorted(machine.at[order], position)]
    return machine.r[rows] + machine.t[rows], machine.t[rows]


def _change_of_sum(held: Any, key: Any, places: IntArray) -> FloatArray:
    """By how much the sum d changes when a sample goes."""
    formulation, target, weight = held.formulation, held.target, held.weight
    total = formulation.total(key, target, weight)
    if total == 0.0:
        return np.zeros(len(places))
    return np.array(
        [
            formulation.total(key, np.delete(target, place), np.delete(weight, place)) - total
            for place in places
        ]
    )


def _responses(machine: Machine, position: IntArray) -> tuple[FloatArray, FloatArray]:
    """(gamma, rho) of samples: what one unit of their weight, or of the sum, does to their f.

    A constant added to the kernel changes neither, since the weights that answer sum to what is
    given; with it the margin's matrix is positive definite, and Cholesky serves.
    """
    samples = machine.samples
    margin = np.unique(machine.at[machine.margin])
    own = samples.diagonal[position]
    if len(margin) == 0:
        return np.full(len(position), np.inf), np.full(len(position), np.nan)
    shift = float(samples.diagonal.mean()) or 1.0
    root = cholesky(samples.block(margin, margin) + shift, lower=True)
    ones = solve_triangular(root, np.ones(len(margin)), lower=True)
    mass = float(ones @ ones)
    seen = solve_triangular(root, samples.block(margin, position) + shift, lower=True)
    gap = 1.0 - ones @ seen
    gamma = own + shift - np.einsum("ij,ij->j", seen, seen) + gap**2 / mass
    rho = -gap / mass
    inside = np.isin(position, margin)
    inverse = solve_triangular(root, np.eye(len(margin)), lower=True)
    answer = ones @ inverse / mass  # of each margin vector to one unit of the sum
    pivot = np.einsum("ij,ij->j", inverse, inverse) - mass * answer**2
    if len(margin) == 1:
        pivot[:] = 0.0  # but for rounding: nothing else can answer
    with np.errstate(divide="ignore", invalid="ignore"):
        place = np.searchsorted(margin, position[inside])
        gamma[inside] = 1.0 / pivot[place]
        rho[inside] = -answer[place] / pivot[place]
    return np.maximum(gamma, 0.0), rho
