# SPDX-License-Identifier: BSD-3-Clause
"""What is tested is the package as users get it, and it is whole."""

import re
from importlib.metadata import version
from pathlib import Path

import adiabat

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "adiabat"
INSTALLED = Path(adiabat.__file__).parent


def files(folder: Path, *suffixes: str) -> set[str]:
    return {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.suffix in suffixes and "__pycache__" not in path.parts
    }


def test_the_tests_import_the_installed_package():
    assert not INSTALLED.is_relative_to(ROOT / "src")


def test_every_python_source_is_installed():
    kinds = (".py", ".pyi", ".typed")
    assert files(INSTALLED, *kinds) == files(SOURCE, *kinds)


def test_every_extension_is_installed():
    compiled = {path.name.split(".")[0] for path in (INSTALLED / "_core").iterdir()} - {"__init__"}
    assert {path.stem for path in (SOURCE / "_core").glob("*.pyx")} <= compiled


def test_no_build_input_is_installed():
    assert files(INSTALLED, ".pyx", ".pxd", ".pxi", ".in", ".build", ".c") == set()


def test_the_version_is_the_same_everywhere():
    citation = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text("utf-8"), re.M)
    changes = re.search(r"^## \[(\d\S*)\]", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.M)
    assert citation and changes
    assert {adiabat.__version__, citation[1], changes[1]} == {version("adiabat")}
