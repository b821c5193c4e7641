# SPDX-License-Identifier: BSD-3-Clause
"""The laws of every exact model on families in which one value is large."""

from __future__ import annotations

import pytest

from laws import laws
from laws.soak import Tally, soak_families
from laws.test_laws import EXACTNESS, chance, name_of
from oracles.kinds import KINDS, hostile

SOLVERS = ["auto", "path", "exchange"]
FAMILIES = [(kind, name) for kind in KINDS for name in hostile(kind)]
OTHERS = [law for law in laws.LAWS if law not in EXACTNESS]


def labels(part: tuple[str, str]) -> str:
    return " ".join(part)


def hold(law: laws.Law, kind: str, family: str) -> None:
    """By one of the solvers, which chance chooses."""
    rng = chance(name_of(law), kind, family, "hostile")
    law(hostile(kind)[family](rng), str(rng.choice(SOLVERS)), rng)


@pytest.mark.rotates(7)
@pytest.mark.parametrize("where", FAMILIES, ids=labels)
@pytest.mark.parametrize("law", EXACTNESS, ids=name_of)
def test_law_of_exactness_on_hostile_family(law: laws.Law, where: tuple[str, str]) -> None:
    hold(law, *where)


@pytest.mark.rotates(11)
@pytest.mark.parametrize("where", FAMILIES, ids=labels)
@pytest.mark.parametrize("law", OTHERS, ids=name_of)
def test_law_on_hostile_family(law: laws.Law, where: tuple[str, str]) -> None:
    hold(law, *where)


@pytest.mark.parametrize("kind", KINDS)
def test_a_short_soak(kind: str) -> None:
    whole = Tally()
    for _, tally in soak_families(100, "auto", 10, 3000, kind, only_hostile=True):
        whole.merge(tally)
    assert not whole.faults, f"{len(whole.faults)} faults, the first: {whole.faults[0]}"
    assert whole.operations == 100 and whole.checked > 7
