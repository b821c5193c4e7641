# SPDX-License-Identifier: BSD-3-Clause
"""The laws of every exact model on families in which one value is large."""

from __future__ import annotations

from typing import Any

import pytest

from laws import laws
from laws.soak import Tally, soak_families
from laws.test_laws import EXACTNESS, chance, name_of
from oracles.kinds import KINDS, hostile

SOLVERS = ["auto", "path", "exchange"]
FAMILIES = [(kind, name) for kind in KINDS for name in hostile(kind)]
# Each law on every third family, the laws of exactness on all of them.
CASES = [
    (law, where)
    for number, law in enumerate(laws.LAWS)
    for place, where in enumerate(FAMILIES)
    if law in EXACTNESS or (number + place) % 3 == 0
]


def labels(part: Any) -> str:
    return " ".join(part) if isinstance(part, tuple) else name_of(part)


@pytest.mark.parametrize(("law", "where"), CASES, ids=labels)
def test_law_on_hostile_family(law: laws.Law, where: tuple[str, str]) -> None:
    """By one of the solvers, which chance chooses."""
    kind, family = where
    rng = chance(name_of(law), kind, family, "hostile")
    law(hostile(kind)[family](rng), str(rng.choice(SOLVERS)), rng)


@pytest.mark.parametrize("kind", KINDS)
def test_a_short_soak(kind: str) -> None:
    whole = Tally()
    for _, tally in soak_families(200, "auto", 10, 3000, kind, only_hostile=True):
        whole.merge(tally)
    assert not whole.faults, f"{len(whole.faults)} faults, the first: {whole.faults[0]}"
    assert whole.operations == 200 and whole.checked > 15
