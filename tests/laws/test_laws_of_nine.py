# SPDX-License-Identifier: BSD-3-Clause
"""Every law on least squares and on pipelines, so that all nine estimators obey them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from laws import laws
from laws.adapters import LEAST_SQUARES, MACHINES, NINE
from laws.test_laws import chance, name_of
from oracles.kinds import families
from oracles.problems import Problem

ESTIMATORS = [
    *((name, kind) for name, (_, kind) in LEAST_SQUARES.items()),
    *(("IncrementalPipeline", kind) for _, kind in MACHINES.values()),
]
# Every third family of each, beginning with another: the estimators share them.
WHERE = [
    (name, kind, family)
    for number, (name, kind) in enumerate(ESTIMATORS)
    for family in list(families(kind))[number % 3 :: 3]
]


def labels(part: tuple[str, str, str]) -> str:
    return " ".join(part)


def problem_of(name: str, kind: str, family: str, *seed: str) -> Problem:
    return replace(families(kind)[family](chance(*seed)), estimator=name)


@pytest.mark.rotates(13)
@pytest.mark.parametrize("where", WHERE, ids=labels)
@pytest.mark.parametrize("law", laws.LAWS, ids=name_of)
def test_law_on_family(law: laws.Law, where: tuple[str, str, str]) -> None:
    if law in laws.OF_SOLVERS and where[0] in LEAST_SQUARES:
        pytest.skip("there is one solver")
    rng = chance(name_of(law), *where)
    law(problem_of(*where, name_of(law), *where), "auto", rng)


def test_these_and_the_others_are_all_nine() -> None:
    assert {name for name, _ in ESTIMATORS} | set(MACHINES) == set(NINE)
