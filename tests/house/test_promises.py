# SPDX-License-Identifier: BSD-3-Clause
"""Every promise of docs/store.md names tests that are there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TABLE = (ROOT / "docs" / "store.md").read_text("utf-8").partition("## Promises")[2]
TABLE = TABLE.partition("| promise")[2].partition("\n\n")[0]
ROWS = [line for line in TABLE.splitlines() if line.startswith("| ")][1:]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip()[:40])
def test_a_promise_names_tests_that_are_there(row):
    named = re.findall(r"`([a-z_/]+\.py)(?:::(\w+))?`", row.split("|")[2])
    assert named, "no test is named"
    for file, test in named:
        found = (ROOT / "tests" / file).read_text("utf-8")
        assert not test or f"def {test}(" in found, f"{file} has no {test}"


def test_the_table_is_read():
    assert len(ROWS) > 25
