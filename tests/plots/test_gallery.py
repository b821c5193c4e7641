# SPDX-License-Identifier: BSD-3-Clause
"""The gallery page is the one that the examples make."""

import ast
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GALLERY = runpy.run_path(str(ROOT / "examples" / "gallery" / "__main__.py"))


def test_every_example_is_on_the_page_and_the_page_is_current():
    scripts = {path.stem for path in (ROOT / "examples" / "gallery").glob("*.py")} - {"__main__"}
    assert scripts == set(GALLERY["EXAMPLES"])
    page = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    assert page == GALLERY["page"](), "run make gallery"


@pytest.mark.parametrize("name", GALLERY["EXAMPLES"])
def test_pictures_are_there_and_small(name):
    picture = ROOT / "docs" / "gallery" / f"{name}.png"
    assert 1_000 < picture.stat().st_size < 100_000


@pytest.mark.parametrize("name", GALLERY["EXAMPLES"])
def test_titles_are_underlined(name):
    """The documentation site takes them from there."""
    source = (ROOT / "examples" / "gallery" / f"{name}.py").read_text(encoding="utf-8")
    title, line = (ast.get_docstring(ast.parse(source)) or "").splitlines()[:2]
    assert line == "=" * len(title)


def test_an_example_runs():
    found = runpy.run_path(str(ROOT / "examples" / "gallery" / "unlearning.py"))
    assert found["figure"].axes[0].get_legend() is not None
