# SPDX-License-Identifier: BSD-3-Clause
"""From pairs of classes to classes: votes, and scikit-learn's layout of coefficients."""

from __future__ import annotations

import numpy as np

from adiabat.typing import FloatArray, IntArray


def pairs_of(n_classes: int) -> list[tuple[int, int]]:
    """(first, second) of every pair, in order."""
    return [(i, j) for i in range(n_classes) for j in range(i + 1, n_classes)]


def scores(pairs: FloatArray, n_classes: int) -> FloatArray:
    """Votes of the pairs for each class, ties broken by their summed decision values.

    pairs[:, k] > 0 speaks for the second class of pair k, and 0 by half for each. The sums are
    squeezed into (-1/3, 1/3), so that they can never outweigh a vote.
    """
    n = pairs.shape[0]
    votes = np.zeros((n, n_classes))
    confidence = np.zeros((n, n_classes))
    for column, (first, second) in enumerate(pairs_of(n_classes)):
        value = pairs[:, column]
        for_second = 0.5 + 0.5 * np.sign(value)
        votes[:, second] += for_second
        votes[:, first] += 1.0 - for_second
        confidence[:, second] += value
        confidence[:, first] -= value
    return votes + confidence / (3.0 * (np.abs(confidence) + 1.0))


def winners(pairs: FloatArray, n_classes: int) -> IntArray:
    """The class of the largest decision value, by its place, from those of the pairs."""
    if n_classes == 2:
        return (pairs[:, 0] > 0.0).astype(np.int64)
    chosen: IntArray = np.argmax(scores(pairs, n_classes), axis=1)
    return chosen


def shaped(pairs: FloatArray, n_classes: int, one_against_one: bool) -> FloatArray:
    """Decision values as scikit-learn shapes them, from those of the pairs."""
    if n_classes == 2:
        return pairs[:, 0]
    if one_against_one and n_classes > 2:
        return -pairs
    return scores(pairs, n_classes)


def stacked(weights: FloatArray, rank: IntArray, n_classes: int) -> FloatArray:
    """Coefficients as scikit-learn stacks them, (n_classes - 1, n_support).

    weights[s, k] is the weight of support vector s in pair k, rank[s] its class. Row j of column s
    belongs to the j-th of the other classes. With two classes above 0 speaks for the second; with
    more, as LIBSVM has it, for the first of a pair.
    """
    if n_classes == 2:
        return weights[:, :1].T.copy()
    out = np.zeros((max(0, n_classes - 1), len(rank)))
    for column, (first, second) in enumerate(pairs_of(n_classes)):
        in_first, in_second = rank == first, rank == second
        out[second - 1, in_first] = -weights[in_first, column]
        out[first, in_second] = -weights[in_second, column]
    return out
