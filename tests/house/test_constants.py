# SPDX-License-Identifier: BSD-3-Clause
"""The table of tuning constants in docs/numerics.md has every one of them, and its value."""

import re

from benchmarks.numerics.constants import BEGIN, END, PAGE, constants

TABLE = PAGE.read_text("utf-8").partition(BEGIN)[2].partition(END)[0]
ROW = re.compile(r"^\| `(\S+)` `(\w+)` \| (.*?) \|", re.MULTILINE)


def test_the_table_is_that_of_the_code():
    found = {(file, name): value for file, name, value in ROW.findall(TABLE)}
    expected = {(one.file, one.name): one.value for one in constants()}
    assert found == expected, "python -m benchmarks.numerics.constants --write"


def test_every_constant_says_what_it_is():
    assert not [f"{one.file} {one.name}" for one in constants() if not one.says]


def test_the_sources_are_read():
    found = {(one.file, one.name) for one in constants()}
    assert ("engine/machine.py", "DEPENDENT") in found and ("_core/factor.pyx", "WEAK") in found
    assert ("engine/exchange.py", "MOST") in found and ("_core/gram.pxd", "WIDTH") in found
    assert len(found) > 100
