# SPDX-License-Identifier: BSD-3-Clause
"""Targets at which enough residuals are as large as the newcomer's, all of them piecewise linear.

On each segment of targets z the residuals of the samples and of the newcomer are linear in z. A
sample counts where |residual| + tie >= |own residual|: for either sign of its residual, where two
linear functions are not negative. The region has all z at which at least k samples count.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adiabat.typing import FloatArray

# Parts of a region nearer to each other than this part of their place are one.
GAP = 1e-12


@dataclass(frozen=True)
class Segments:
    """Residuals over neighbouring segments of targets.

    Attributes
    ----------
    low, high : ndarray of shape (m,)
        Ends of the segments, perhaps infinite; one's high end is the next one's low end.
    at : ndarray of shape (m,)
        A finite target in each, for which residuals are given.
    residual, slope : ndarray of shape (m, n)
        Residuals of the samples there, and their slopes.
    own, own_slope : ndarray of shape (m,)
        Those of the newcomer.
    """

    low: FloatArray
    high: FloatArray
    at: FloatArray
    residual: FloatArray
    slope: FloatArray
    own: FloatArray
    own_slope: FloatArray

    @classmethod
    def between(cls, z: FloatArray, residual: FloatArray, own: FloatArray) -> Segments:
        """Linear between some targets; before and after them the samples' residuals stand still."""
        steps = np.diff(z)
        widths = np.where(steps > 0.0, steps, 1.0)  # of those that are points, any will do
        still = np.zeros((1, residual.shape[1]))
        return cls(
            low=np.append(-np.inf, z),
            high=np.append(z, np.inf),
            at=np.append(z[0], z),
            residual=np.vstack([residual[:1], residual]),
            slope=np.vstack([still, np.diff(residual, axis=0) / widths[:, None], still]),
            own=np.append(own[0], own),
            own_slope=np.concatenate([[1.0], np.diff(own) / widths, [1.0]]),
        )

    def region(self, k: int, tie: FloatArray) -> FloatArray:
        """The closed intervals where at least k samples count, in order, (parts, 2)."""
        starts, ends = [], []
        for sign in (1.0, -1.0):
            low = np.tile(self.low[:, None], (1, self.residual.shape[1]))
            high = np.tile(self.high[:, None], (1, self.residual.shape[1]))
            for way in (1.0, -1.0):
                value = sign * self.residual + tie + way * self.own[:, None]
                slope = sign * self.slope + way * self.own_slope[:, None]
                with np.errstate(divide="ignore", invalid="ignore"):
                    root = self.at[:, None] - value / slope
                np.maximum(low, root, out=low, where=slope > 0.0)
                np.minimum(high, root, out=high, where=slope < 0.0)
                high[(slope == 0.0) & (value < 0.0)] = -np.inf
                low[(slope == 0.0) & (value < 0.0)] = np.inf
            there = low <= high
            joined = (
                there[:-1] & there[1:]
                & (high[:-1] == self.high[:-1, None]) & (low[1:] == self.low[1:, None])
            )  # fmt: skip
            begins, stops = there.copy(), there.copy()
            begins[1:] &= ~joined
            stops[:-1] &= ~joined
            starts.append(low[begins])
            ends.append(high[stops])
        return _at_least(k, np.concatenate(starts), np.concatenate(ends))


def _at_least(k: int, starts: FloatArray, ends: FloatArray) -> FloatArray:
    """Where at least k of some closed intervals overlap."""
    where = np.concatenate([starts, ends])
    step = np.repeat([1, -1], [len(starts), len(ends)])
    order = np.lexsort((-step, where))  # at one place starts come first: intervals are closed
    where, step = where[order], step[order]
    depth = np.cumsum(step)
    low, high = where[(step == 1) & (depth == k)], where[(step == -1) & (depth == k - 1)]
    parts: list[list[float]] = []
    for first, last in zip(low.tolist(), high.tolist(), strict=True):
        if parts and first <= parts[-1][1] + GAP * (1.0 + abs(first)):
            parts[-1][1] = last
        else:
            parts.append([first, last])
    return np.array(parts).reshape(-1, 2)
