# SPDX-License-Identifier: BSD-3-Clause
"""Counts in compiled loops stay C integers.

`n += a and b` gives `a` or `b`; where these are of two C types, Cython makes Python objects of
them, some hundred instructions a row. A conditional expression does not.
"""

import re
from pathlib import Path

import pytest

CORE = Path(__file__).parents[2] / "src" / "adiabat" / "_core"
SOURCES = sorted(path.name for path in CORE.glob("*.p[yx][xd]"))
_COUNT = re.compile(r"^ *[\w.\[\]]+ [-+]= [^#\n\"]*\b(?:and|or)\b", re.MULTILINE)


@pytest.mark.parametrize("name", SOURCES)
def test_a_count_is_no_object(name: str) -> None:
    text = re.sub(r'""".*?"""', "", (CORE / name).read_text("utf-8"), flags=re.DOTALL)
    assert _COUNT.findall(text) == []


def test_such_a_count_is_found() -> None:
    assert _COUNT.findall("    used += owner[i] >= 0 and keep[i]\n")
    assert not _COUNT.findall("    used += keep[i] if owner[i] >= 0 else 0\n")
