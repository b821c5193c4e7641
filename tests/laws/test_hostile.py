# SPDX-License-Identifier: BSD-3-Clause
"""The laws where one value is large, for all nine estimators."""

from __future__ import annotations

import numpy as np
import pytest

from laws import hostile
from laws.subjects import NINE, kind_of
from laws.test_laws import chance, name_of
from oracles import kinds
from oracles.operations import Rng
from oracles.problems import HOSTILE_KERNELS, Problem, outlier

FAMILIES = [(name, family) for name in NINE for family in kinds.hostile(kind_of(name))]
KERNELS = [(name, kernel) for name in NINE for kernel in HOSTILE_KERNELS]
FAR = (1e6, 1e8, 1e10, 1e12)


def labels(part: tuple[str, str]) -> str:
    return " ".join(part)


def hostile_problem(name: str, family: str, rng: Rng) -> Problem:
    problem = kinds.hostile(kind_of(name))[family](rng)
    if kind_of(name) == "svdd" and problem.sample_weight.sum() * problem.params["C"] < 1.0:
        problem.params["C"] = 0.25
    return problem


@pytest.mark.rotates(7)
@pytest.mark.parametrize("where", FAMILIES, ids=labels)
@pytest.mark.parametrize("law", hostile.HOSTILE_LAWS, ids=name_of)
def test_law_where_one_value_is_large(law: hostile.HostileLaw, where: tuple[str, str]) -> None:
    rng = chance(name_of(law), *where)
    law(where[0], hostile_problem(*where, rng), rng)


@pytest.mark.rotates(7)
@pytest.mark.parametrize("where", KERNELS, ids=labels)
@pytest.mark.parametrize("law", hostile.HOSTILE_LAWS, ids=name_of)
def test_law_where_one_cell_is_beyond_all_others(
    law: hostile.HostileLaw, where: tuple[str, str]
) -> None:
    """One cell of 1e6 to 1e12, which chance chooses: refused, or right."""
    name, kernel = where
    rng = chance(name_of(law), name, kernel, "far")
    cell = float(rng.choice(FAR))
    problem = kinds.as_kind(outlier(kernel, (cell,))(rng), kind_of(name), rng)
    try:
        law(name, problem, rng)
    except AssertionError as fault:
        raise AssertionError(f"cell of {cell:g}: {fault}") from fault


@pytest.mark.rotates(7)
@pytest.mark.parametrize("where", KERNELS, ids=labels)
@pytest.mark.parametrize("C", [1e-3, 1e6])
def test_f_error_at_the_ends_of_C(where: tuple[str, str], C: float) -> None:
    name, kernel = where
    rng = chance(name, kernel, f"{C:g}")
    problem = outlier(kernel, C=C)(rng)
    changes = {"C": max(C, 0.25)} if kind_of(name) == "svdd" else {}
    problem = kinds.as_kind(problem, kind_of(name), rng, **changes)
    hostile.f_is_off_by_no_more_than_f_error(name, problem, rng)


def test_a_law_that_is_broken_is_seen() -> None:
    """Of a model whose f was moved by 1e-3 no law of exactness holds."""
    rng = np.random.default_rng(0)
    problem = outlier("rbf", (100.0,))(rng)
    right, wrong = (hostile.fitted("SVC", problem) for _ in range(2))
    assert right is not None and wrong is not None
    plain = wrong.model.decision_function
    wrong.model.decision_function = lambda X: plain(X) + 1e-3 * (X[:, 0] > 0.5)
    with pytest.raises(AssertionError, match="apart"):
        hostile.assert_same_decisions(right, wrong, problem.X, "moved")
    assert hostile.judge(right).ok
    assert "off by more" in hostile.judge(wrong).fault
