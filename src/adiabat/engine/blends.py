# SPDX-License-Identifier: BSD-3-Clause
"""Rows that follow several landmarks at once.

For rows x and c_1, c_2, ... and any numbers s_1, s_2, ...

    |change of f(x) - sum s_k change of f(c_k)| <= |phi(x) - sum s_k phi(c_k)| |change of w|

A blend of a few landmarks is nearer to x than the nearest of them, mostly by far. The rows that an
update may bring to the margin follow blends; for all others one landmark is enough. f of support
vectors is known after every update in any case, so that they stand as landmarks here as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from adiabat._core.nearest import among, take_out
from adiabat.typing import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from adiabat._core.room import Leaving
    from adiabat.engine.samples import Samples

# Landmarks in a blend, and the most that its shares may add up to: their roundings add up as well.
PARTS, MOST_SHARES = 8, 32.0
# Added to k(c, c) of landmarks, as a part of it: some nearly depend on the others.
RIDGE = 1e-8
# Roundings of the terms of a squared distance.
ROUNDINGS = 64.0
EPSILON = float(np.finfo(np.float64).eps)


class Blends:
    """Rows, ascending (-1: no longer); by row the numbers of landmarks and their shares, and the
    distance from the first of them, the row's own landmark.
    """

    def __init__(self) -> None:
        self.rows: IntArray = np.empty(0, dtype=np.int64)
        self.parts: npt.NDArray[np.int16] = np.empty((0, PARTS), dtype=np.int16)
        self.shares: FloatArray = np.empty((0, PARTS))
        self.single: FloatArray = np.empty(0)

    def of(self, numbers: npt.NDArray[np.int16]) -> IntArray:
        """The places of those that one of these landmarks has a part in."""
        return among(self.rows, self.parts, numbers)

    def drop(self, places: IntArray | BoolArray) -> None:
        """Let rows follow no blend from now on."""
        self.rows[places] = -1

    def remove(self, leaving: Leaving) -> None:
        """Take rows out; the others are renumbered."""
        take_out(self.rows, leaving.gone)
        if leaving.filled:
            leaving.renumber(self.rows)
            return
        here = self.rows >= 0
        rows = self.rows[here]
        leaving.renumber(rows)
        self.rows[here] = rows


def blend(
    samples: Samples,
    at: IntArray,
    rows: IntArray,
    number: npt.NDArray[np.int16],
    landmarks: IntArray,
    names: npt.NDArray[np.int16],
) -> tuple[Blends, FloatArray]:
    """Blends for rows that have a landmark, and their distances; infinite where there is none.

    `at` are positions of all rows, `number` is which landmark a row has, and `names` are the
    numbers of the landmarks. The parts are those nearest to the row's own.
    """
    made = Blends()
    rows = rows[number[rows] > 0]
    rows = rows[np.argsort(number[rows], kind="stable")]
    count = min(PARTS, len(landmarks))
    if len(rows) == 0 or count == 0:
        return made, np.empty(0)
    first = np.flatnonzero(np.diff(number[rows], prepend=0))
    last = np.append(first[1:], len(rows))
    place = np.zeros(1 + int(names.max()), dtype=np.int64)
    place[names] = np.arange(len(names))
    own, of = samples.diagonal[at], place[number[rows[first]]]
    away = own[landmarks] - 2.0 * samples.block(at[landmarks[of]], at[landmarks])
    away[np.arange(len(of)), of] = -np.inf  # itself before its equals
    near = np.argpartition(away, count - 1, axis=1)[:, :count]
    made.rows, made.parts = rows, np.ones((len(rows), PARTS), dtype=np.int16)
    made.shares, made.single = np.zeros((len(rows), PARTS)), np.zeros(len(rows))
    apart = np.full(len(rows), np.inf)
    for group, (start, end) in enumerate(zip(first.tolist(), last.tolist(), strict=True)):
        parts = near[group][np.argsort(away[group, near[group]], kind="stable")]
        chosen, some = landmarks[parts], slice(start, end)
        apart[some], made.single[some], shares = _distances(
            samples.block(at[rows[some]], at[chosen]), samples.block(at[chosen], at[chosen]),
            own[rows[some]],
        )  # fmt: skip
        made.shares[some, :count] = shares
        made.parts[some, :count] = names[parts]
    order = np.argsort(rows)  # as they stand in memory
    for name in ("rows", "parts", "shares", "single"):
        setattr(made, name, getattr(made, name)[order])
    return made, apart[order]


def _distances(
    K: FloatArray, G: FloatArray, own: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(distances from blends, from the first landmark, shares); infinite if shares are too large.

    K are kernel values of the rows with the landmarks, G among these, `own` k(x, x) of the rows.
    """
    largest = float(G.diagonal().max())
    try:
        shares = np.asarray(np.linalg.solve(G + RIDGE * largest * np.eye(len(G)), K.T).T)
    except np.linalg.LinAlgError:
        shares = np.zeros_like(K)
    total = np.abs(shares).sum(axis=1)
    square = own - np.sum(shares * (2.0 * K - shares @ G), axis=1)
    rounding = ROUNDINGS * EPSILON * (own + largest * (1.0 + total) ** 2)
    alone = own - 2.0 * K[:, 0] + G[0, 0]
    apart: FloatArray = np.sqrt(np.maximum(square, 0.0) + rounding)
    # not (a <= b): what is no number is too large as well
    apart[~(total <= MOST_SHARES)] = np.inf
    single: FloatArray = np.sqrt(np.maximum(alone, 0.0) + ROUNDINGS * EPSILON * (own + G[0, 0]))
    return apart, single, np.asarray(shares, dtype=np.float64)
