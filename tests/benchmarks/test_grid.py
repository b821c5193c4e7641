# SPDX-License-Identifier: BSD-3-Clause
"""The grid of speeds: ratios, aims and the worst of them, without timing anything."""

import pytest

pytest.importorskip("sklearnex")
grid = pytest.importorskip("benchmarks.speed.grid")


def row(case, n, what, seconds, refit=1.0):
    return grid.Row(case, n, what, "any", seconds, refit, 0)


def test_a_fit_is_part_of_a_refit_and_an_update_fits_into_it():
    assert row("a", 2000, "fit", 0.5).ratio == 0.5 and row("a", 2000, "fit", 0.5).met
    assert row("a", 2000, "1", 0.05).ratio == 20.0 and row("a", 2000, "1", 0.05).met
    assert not row("a", 2000, "1", 0.051).met and row("a", 500, "1", 0.2).met


def test_the_worst_is_named():
    rows = [row("good", 2000, "1", 0.01), row("bad", 3000, "1", 0.5), row("bad", 3000, "fit", 2.0)]
    every, worst = grid.tables(rows)
    cells = [cell for line in worst.rows for cell in line]
    assert "bad" in cells and "2 ✗" in cells and "good" not in cells
    assert "1 of 3 as asked" in every.note


def test_every_case_has_a_name_of_its_own():
    names = [case.name for case in grid.CASES]
    assert len(set(names)) == len(names)
    with pytest.raises(SystemExit):
        grid.arguments(["--only", "nothing"])
