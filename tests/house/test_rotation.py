# SPDX-License-Identifier: BSD-3-Clause
"""Of a product that rotates every case has its turn, and each day every pair of parameters."""

from itertools import product
from types import SimpleNamespace

import pytest

from rotation import whose_turn_it_is

LAWS = ["refit", "restore", "copy"]
FAMILIES = ["ties", "duplicates", "far", "tiny", "huge"]
SOLVERS = ["auto", "path"]


def cases(parts):
    marker = None if parts is None else SimpleNamespace(args=(parts,))
    return [
        SimpleNamespace(
            nodeid=f"tests/x.py::test_law[{law}-{family}-{solver}]",
            get_closest_marker=lambda name: marker,
            callspec=SimpleNamespace(params={"law": law, "family": family, "solver": solver}),
        )
        for law, family, solver in product(LAWS, FAMILIES, SOLVERS)
    ]


def params_of(items, kept, *names):
    return {
        tuple(item.callspec.params[name] for name in names) for item in items if id(item) in kept
    }


@pytest.mark.parametrize("parts", [2, 3, 7])
def test_after_so_many_days_every_case_was_run_once(parts):
    items = cases(parts)
    days = [whose_turn_it_is(items, turn) for turn in range(parts)]
    assert set().union(*days) == {id(item) for item in items}
    assert sum(map(len, days)) == len(items)
    assert whose_turn_it_is(items, parts) == days[0] != days[1]


def test_each_day_every_pair_is_run():
    items = cases(2)
    for turn in range(2):
        kept = whose_turn_it_is(items, turn)
        assert params_of(items, kept, "law", "family") == set(product(LAWS, FAMILIES))
        assert params_of(items, kept, "law", "solver") == set(product(LAWS, SOLVERS))
        assert params_of(items, kept, "family", "solver") == set(product(FAMILIES, SOLVERS))


def test_what_does_not_rotate_is_always_run():
    items = cases(None)
    assert len(whose_turn_it_is(items, 5)) == len(items)
