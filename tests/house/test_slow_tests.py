# SPDX-License-Identifier: BSD-3-Clause
"""Every test that `make quick` leaves out is there under its name."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "tests" / "conftest.py").read_text("utf-8")
NAMES = re.findall(r'"((?:tests|docs)/[^"]*?)"(?:\s*\n\s*"([^"]*)")?,', TEXT)


@pytest.mark.parametrize("name", ["".join(parts) for parts in NAMES])
def test_a_slow_test_is_there(name):
    file, *where = name.split("::")
    found = (ROOT / file).read_text("utf-8")
    if file.endswith(".py"):
        last = where[-1] if where[-1] != "runTest" else where[0]
        assert re.search(rf"\b{last}\b", found), f"{name} is gone; take it off the list"


def test_the_list_is_read():
    assert len(NAMES) > 30
