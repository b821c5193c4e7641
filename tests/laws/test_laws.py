# SPDX-License-Identifier: BSD-3-Clause
"""Every law on every degenerate family, by example and by Hypothesis."""

from __future__ import annotations

import zlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laws import laws
from laws.streams import with_third_class
from oracles.problems import C_VARIANTS, FAMILIES, Problem, Sample

SOLVERS = ["auto", "path"]
# The laws that compare with an oracle of its own and with a refit: what they notice, few others do.
EXACTNESS = [laws.the_optimum_is_that_of_an_independent_solver, laws.an_update_equals_a_refit]


def chance(*names: str) -> np.random.Generator:
    """The same chance for the same test on every machine."""
    return np.random.default_rng(zlib.crc32("/".join(names).encode()))


def name_of(law: Any) -> str:
    return str(law.__name__)


@pytest.mark.rotates(7)
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("law", laws.LAWS, ids=name_of)
def test_law_on_family(law: laws.Law, family: str, solver: str) -> None:
    rng = chance(name_of(law), family, solver)
    law(FAMILIES[family](rng), solver, rng)


@pytest.mark.rotates(7)
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("family", C_VARIANTS)
def test_exactness_for_every_C(family: str, solver: str) -> None:
    rng = chance(family, solver)
    problem = C_VARIANTS[family](rng)
    for law in EXACTNESS:
        law(problem, solver, rng)


@pytest.mark.rotates(7)
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("law", laws.LAWS, ids=name_of)
def test_law_with_three_classes(law: laws.Law, family: str) -> None:
    rng = chance(name_of(law), family, "three")
    law(with_third_class(FAMILIES[family](rng)), "auto", rng)


@pytest.mark.rotates(7)
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("family", FAMILIES)
def test_update_equals_refit_on_many_rows(family: str, solver: str) -> None:
    """Above a few hundred rows an update looks only at those that may matter."""
    rng = chance(family, solver, "many")
    small = FAMILIES[family](rng)
    many = small.draw(rng, 600)
    y = np.concatenate([small.y, many.y])  # both classes are there
    problem = replace(
        small,
        X=np.vstack([small.X, many.X]),
        y=y,
        sample_weight=np.concatenate([small.sample_weight, many.sample_weight]),
    )
    laws.an_update_equals_a_refit(problem, solver, rng, largest=60, most=800)


def coordinates(count: int, width: int) -> st.SearchStrategy[list[list[int]]]:
    return st.lists(
        st.lists(st.integers(-3, 3), min_size=width, max_size=width),
        min_size=count,
        max_size=count,
    )


@st.composite
def tiny_problems(draw: Any) -> Problem:
    """A few integer points, where everything ties with everything."""
    width = draw(st.integers(1, 3))
    n = draw(st.integers(9, 16))
    X = np.array(draw(coordinates(n, width)), dtype=np.float64)
    classes = draw(st.integers(2, 3))
    y = np.array(draw(st.lists(st.integers(0, classes - 1), min_size=n, max_size=n)))
    y[:classes] = np.arange(classes)
    weight = np.array(draw(st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0]), min_size=n, max_size=n)))
    weight[:classes] = 1.0
    params = draw(
        st.sampled_from(
            [
                {"kernel": "linear"},
                {"kernel": "rbf", "gamma": 0.25},
                {"kernel": "laplacian", "gamma": 0.5},
                {"kernel": "poly", "degree": 2, "gamma": 1.0, "coef0": 1.0},
                {"kernel": "poly", "degree": 3, "gamma": 0.5, "coef0": 0.0},
            ]
        )
    )
    C = draw(st.sampled_from([1e-3, 0.1, 1.0, 10.0, 1e3]))

    def more(rng: np.random.Generator, count: int) -> Sample:
        rows = rng.integers(-3, 4, (count, width)).astype(np.float64)
        return Sample(rows, rng.integers(0, classes, count), rng.choice([0.5, 1.0, 2.0], count))

    return Problem(X, y, {**params, "C": C}, more, weight)


@pytest.mark.parametrize("law", laws.LAWS, ids=name_of)
@settings(max_examples=10)
@given(problem=tiny_problems(), solver=st.sampled_from(SOLVERS), seed=st.integers(0, 2**32 - 1))
def test_law_on_whatever_hypothesis_finds(
    law: laws.Law, problem: Problem, solver: str, seed: int
) -> None:
    law(problem, solver, np.random.default_rng(seed))
