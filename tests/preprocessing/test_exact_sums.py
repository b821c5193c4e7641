# SPDX-License-Identifier: BSD-3-Clause
"""Exact sums and moments as arrays of a file: what is sound comes back, all else is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from adiabat.preprocessing.exact_sums import ExactSums
from adiabat.preprocessing.moments import Moments

LONGEST = 1024  # bytes of one sum


def written(totals: list[int], unit: int = -50) -> dict[str, Any]:
    sums = ExactSums(0)
    sums.unit, sums.totals = unit, totals
    return sums.to_arrays("squares")


def of_bytes(*lengths: int) -> dict[str, Any]:
    """Sums of so many bytes each, all of them negative and odd."""
    return {
        "squares_unit": np.array(-50, np.int64),
        "squares_sums": np.full(sum(lengths), 0xFD, np.uint8),
        "squares_ends": np.cumsum(lengths, dtype=np.int64),
    }


def test_what_was_written_is_read() -> None:
    totals = [3, -7, 0, 2**200 + 1, -(2**63)]
    sums = ExactSums.from_arrays("squares", written(totals))
    assert (sums.unit, sums.totals) == (-50, totals)


def test_the_longest_sum_is_read_and_no_longer_one() -> None:
    """A sum of finite numbers is shorter; one of a file that is longer costs time and memory."""
    sums = ExactSums.from_arrays("squares", of_bytes(1, LONGEST, 2))
    assert [total.bit_length() > 8 * (LONGEST - 1) for total in sums.totals] == [False, True, False]
    for lengths in [(LONGEST + 1,), (1, LONGEST + 1, 2), (10**6,)]:
        with pytest.raises(ValueError, match="the squares of the scaler do not fit together"):
            ExactSums.from_arrays("squares", of_bytes(*lengths))


@pytest.mark.parametrize(
    ("part", "value", "message"),
    [
        ("unit", np.array(3401), "out of range"),
        ("unit", np.array(-3401), "out of range"),
        ("unit", np.array([1]), "wrong type"),
        ("unit", np.array(1.0), "wrong type"),
        ("sums", np.zeros(6, np.int64), "wrong type"),
        ("sums", np.zeros((6, 1), np.uint8), "wrong shape"),
        ("ends", np.array([2.0, 4.0, 6.0]), "wrong shape"),
        ("ends", np.array([[2], [4], [6]]), "wrong shape"),
        ("ends", np.array([2, 4, 5]), "do not fit together"),
        ("ends", np.array([2, 2, 6]), "do not fit together"),
        ("ends", np.array([4, 2, 6]), "do not fit together"),
    ],
)
def test_what_is_not_sound_is_refused(part: str, value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"the squares of the scaler .*{message}"):
        ExactSums.from_arrays("squares", {**of_bytes(2, 2, 2), f"squares_{part}": value})


@pytest.mark.parametrize(
    ("weight", "value", "square"),
    [(-1, 0, 0), (2, 0, -1), (2, 4, 7), (0, 1, 0), (0, 0, 1)],
    ids=["negative weight", "negative square", "negative variance", "a value", "a square"],
)
def test_sums_that_no_rows_have_are_refused(weight: int, value: int, square: int) -> None:
    """Those of two rows, 1 and 3, are 2, 4 and 10; in the other column one sum is impossible."""
    moments = Moments(2)
    moments.change(np.array([[1.0, 1.0], [3.0, 3.0]]), None, 1)
    assert Moments.from_arrays(moments.to_arrays(), 2).variance().tolist() == [1.0, 1.0]
    for sums, total in zip(
        (moments.weights, moments.values, moments.squares), (weight, value, square), strict=True
    ):
        sums.totals[1] = total << -sums.unit
    with pytest.raises(ValueError, match="the sums of the scaler are not those of any rows"):
        Moments.from_arrays(moments.to_arrays(), 2)
