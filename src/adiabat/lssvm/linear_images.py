# SPDX-License-Identifier: BSD-3-Clause
"""Second moments of linear images of rows, from the exact moments of the rows themselves.

With psi = A z for rows z = (x, 1, t), sum s psi psi' = A M A'. M is known without rounding, and A
has rational entries: what comes out is rounded once, to as many bits as rho asks for. So it depends
on M and A alone, and not on what came and went before.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from adiabat.lssvm.exact_moments import ExactMoments
from adiabat.lssvm.moments import Moments, parts_needed


def image_moments(
    sums: ExactMoments, whole: Any, forms: Sequence[Sequence[tuple[int, Fraction]]], rho: float
) -> Moments:
    """Moments of rows (phi, 1, t), phi having the linear forms of the features of `sums`.

    A form has places among the features, or their number for the constant. `whole` is what
    `sums.whole` gives.
    """
    entries, unit = whole
    fixed = [[(sums.width + k, Fraction(1))] for k in range(1 + sums.n_targets)]
    places, factors, divisors = _integral([*forms, *fixed])
    left = sum(
        factor[:, None] * entries[place, :] for place, factor in zip(places, factors, strict=True)
    )
    image = sum(left[:, place] * factor for place, factor in zip(places, factors, strict=True))
    moments = Moments(len(forms), sums.n_targets)
    moments.n, moments.n_heavy = sums.n, sums.n_heavy
    up, down = max(0, unit), max(0, -unit)
    side = len(moments.hi)
    squares = [_quotient(image[k, k] << up, divisors[k] ** 2 << down) for k in range(side)]
    parts = parts_needed(math.fsum(squares), rho)
    moments.widen(parts)
    matrices = [moments.hi, moments.lo, *([] if moments.rest is None else moments.rest)]
    for i in range(side):
        for j in range(i, side):
            numerator = image[i, j] << up
            if numerator:
                divisor = divisors[i] * divisors[j] << down
                for matrix in matrices:
                    value = _quotient(numerator, divisor)
                    matrix[i, j] = value
                    over, under = value.as_integer_ratio()
                    numerator = numerator * under - over * divisor
                    divisor *= under
                    if not numerator:
                        break
    moments.count_rounding(1, moments.diagonal())
    return moments


def _integral(forms: Sequence[Sequence[tuple[int, Fraction]]]) -> tuple[list[Any], list[Any], Any]:
    """Forms as places and whole factors, term by term, and what each form is to be divided by."""
    divisors = [math.lcm(*(factor.denominator for _, factor in form)) for form in forms]
    most = max(len(form) for form in forms)
    places = [np.zeros(len(forms), np.intp) for _ in range(most)]
    factors = [np.zeros(len(forms), object) for _ in range(most)]
    for k, (form, divisor) in enumerate(zip(forms, divisors, strict=True)):
        for term, (place, factor) in enumerate(form):
            places[term][k] = place
            factors[term][k] = factor.numerator * (divisor // factor.denominator)
    return places, factors, divisors


def _quotient(numerator: int, divisor: int) -> float:
    """Their quotient, rounded once."""
    try:
        return numerator / divisor
    except OverflowError:
        return math.inf
