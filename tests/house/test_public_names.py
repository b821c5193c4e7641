# SPDX-License-Identifier: BSD-3-Clause
"""The public surface is `adiabat.__all__`: nothing missing, nothing extra, all of it explained."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import adiabat


def public_names() -> set[str]:
    """Names a reader of `dir(adiabat)` would take for public."""
    return {
        name
        for name in dir(adiabat)
        if not name.startswith("_")
        and not inspect.ismodule(getattr(adiabat, name))
        and name != "TYPE_CHECKING"
    }


def test_what_is_imported_when_asked_for_is_what_type_checkers_read():
    tree = ast.parse(Path(adiabat.__file__).read_text("utf-8"))
    [block] = [
        node for node in tree.body
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name)
    ]  # fmt: skip
    read = {alias.name: node.module for node in block.body for alias in node.names}
    assert read == {name: f"adiabat.{home}" for name, home in adiabat._HOMES.items()}


def test_packages_are_there_without_being_imported():
    said = "import adiabat; adiabat.retention.Window, adiabat.analysis.sets; adiabat.nothing"
    found = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True)
    assert "module 'adiabat' has no attribute 'nothing'" in found.stderr


def test_all_lists_the_public_names():
    assert {name for name in adiabat.__all__ if not name.startswith("__")} == public_names()


def test_all_lists_each_name_once():
    assert len(adiabat.__all__) == len(set(adiabat.__all__))


@pytest.mark.parametrize("name", sorted(public_names()))
def test_a_public_name_has_a_docstring(name):
    value = getattr(adiabat, name)
    if callable(value):
        assert (value.__doc__ or "").strip(), f"adiabat.{name} has no docstring"
