# SPDX-License-Identifier: BSD-3-Clause
"""Every law on regression, one class and the sphere, by example and by Hypothesis."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laws import laws
from laws.test_laws import EXACTNESS, chance, coordinates, name_of
from oracles.kinds import families, variants
from oracles.problems import Problem, Sample

KINDS = ["svr", "one_class", "svdd"]
SOLVERS = ["auto", "path", "exchange"]
FAMILIES = [(kind, name) for kind in KINDS for name in families(kind)]
VARIANTS = [(kind, name) for kind in KINDS for name in variants(kind)]
OTHERS = [law for law in laws.LAWS if law not in EXACTNESS]


def labels(part: tuple[str, str]) -> str:
    return " ".join(part)


def hold(law: laws.Law, kind: str, family: str) -> None:
    """By one of the solvers, which chance chooses."""
    rng = chance(name_of(law), kind, family)
    law(families(kind)[family](rng), str(rng.choice(SOLVERS)), rng)


@pytest.mark.parametrize("where", FAMILIES, ids=labels)
@pytest.mark.parametrize("law", EXACTNESS, ids=name_of)
def test_law_of_exactness_on_family(law: laws.Law, where: tuple[str, str]) -> None:
    hold(law, *where)


@pytest.mark.rotates(11)
@pytest.mark.parametrize("where", FAMILIES, ids=labels)
@pytest.mark.parametrize("law", OTHERS, ids=name_of)
def test_law_on_family(law: laws.Law, where: tuple[str, str]) -> None:
    hold(law, *where)


@pytest.mark.rotates(7)
@pytest.mark.parametrize("where", VARIANTS, ids=labels)
def test_exactness_for_all_parameters(where: tuple[str, str]) -> None:
    kind, family = where
    rng = chance(kind, family)
    law = EXACTNESS[rng.integers(len(EXACTNESS))]
    law(variants(kind)[family](rng), str(rng.choice(SOLVERS)), rng)


KERNELS: list[dict[str, Any]] = [
    {"kernel": "linear"},
    {"kernel": "rbf", "gamma": 0.25},
    {"kernel": "laplacian", "gamma": 0.5},
    {"kernel": "poly", "degree": 2, "gamma": 1.0, "coef0": 1.0},
    {"kernel": "poly", "degree": 3, "gamma": 0.5, "coef0": 0.0},
]
SHAPES: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "svr": st.fixed_dictionaries(
        {
            "C": st.sampled_from([1e-3, 0.1, 1.0, 10.0, 1e3]),
            "epsilon": st.sampled_from([0.0, 0.25, 0.5, 1.0, 10.0]),
        }
    ),
    "one_class": st.fixed_dictionaries({"nu": st.sampled_from([1e-3, 0.1, 0.25, 0.5, 1.0])}),
    "svdd": st.fixed_dictionaries({"C": st.sampled_from([1e-3, 0.1, 0.25, 0.5, 1.0, 10.0])}),
}


@st.composite
def tiny_problems(draw: Any, kind: str) -> Problem:
    """A few integer points with integer targets, where everything ties with everything."""
    width, n = draw(st.integers(1, 3)), draw(st.integers(1, 14))
    X = np.array(draw(coordinates(n, width)), dtype=np.float64)
    supervised = kind == "svr"
    y = np.array(draw(st.lists(st.integers(-2, 2), min_size=n, max_size=n)), np.float64)
    weight = np.array(draw(st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0]), min_size=n, max_size=n)))
    weight[0] = 1.0
    params = {**draw(st.sampled_from(KERNELS)), **draw(SHAPES[kind])}

    def more(rng: np.random.Generator, count: int) -> Sample:
        rows = rng.integers(-3, 4, (count, width)).astype(np.float64)
        targets = rng.integers(-2, 3, count).astype(np.float64)
        return Sample(rows, supervised * targets, rng.choice([0.5, 1.0, 2.0], count))

    return Problem(X, supervised * y, params, more, weight, kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("law", laws.LAWS, ids=name_of)
@settings(max_examples=3)
@given(data=st.data(), solver=st.sampled_from(SOLVERS), seed=st.integers(0, 2**32 - 1))
def test_law_on_whatever_hypothesis_finds(
    law: laws.Law, kind: str, data: Any, solver: str, seed: int
) -> None:
    law(data.draw(tiny_problems(kind)), solver, np.random.default_rng(seed))
