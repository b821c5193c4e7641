# SPDX-License-Identifier: BSD-3-Clause
"""ARCHITECTURE.md is true: its tree, its lists of files, and its walks; and no call goes up."""

import ast
import re
import sys
import tomllib
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import adiabat
from adiabat import LSSVC, SVC

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src" / "adiabat"
INSTALLED = Path(adiabat.__file__).parent
TEXT = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
LAYERS: list[list[str]] = [
    layer.split(" | ")
    for layer in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"][
        "contracts"
    ][0]["layers"]
]


def packages(folder: Path) -> set[str]:
    return {path.parent.name for path in folder.glob("*/__init__.py")}


def files(folder: Path) -> set[str]:
    """Names of the modules of a package: sources, less what only accompanies them."""
    found = {path.stem for path in folder.iterdir() if path.suffix in {".py", ".pyx", ".pxd"}}
    return found - {"__init__"}


# ---------------------------------------------------------------------------------------------
# The tree and the lists


def test_the_tree_is_that_of_the_sources_and_of_the_layers():
    tree = TEXT.split("## The tree")[1].split("```")[1].strip("\n").split("\n")
    top = [line.split() for line in tree if not line.startswith(" ")]
    rooms = {one.strip("/"): after for one, after in pairwise(tree) if after.startswith(" ")}
    named = [name.rstrip("/") for line in top for name in line]
    assert len(named) == len(set(named))
    assert set(named) == packages(SOURCES) | files(SOURCES)
    assert {name.rstrip("/") for line in top for name in line if name.endswith("/")} == packages(
        SOURCES
    )
    assert [{name.rstrip("/") for name in line} for line in top] == [set(row) for row in LAYERS]
    deeper = {name: packages(SOURCES / name) for name in packages(SOURCES)}
    said = {name: {room.rstrip("/") for room in line.split()} for name, line in rooms.items()}
    assert {name: found for name, found in deeper.items() if found} == said


SECTIONS = dict(re.findall(r"^### (.+?)\n(.*?)(?=^###? |\Z)", TEXT, re.MULTILINE | re.DOTALL))


def listed(section: str) -> list[str]:
    """Names that the bullets of a section begin with."""
    bullets = re.findall(r"^- ((?:`\w+`[,\s]*)+):", section, re.MULTILINE)
    return [name for bullet in bullets for name in re.findall(r"`(\w+)`", bullet)]


def test_every_package_has_its_section():
    inits = {path.parent.relative_to(SOURCES).as_posix() for path in SOURCES.rglob("__init__.py")}
    headed = {title.strip("`/") for title in SECTIONS if title.startswith("`")}
    assert headed == inits - {"."}


@pytest.mark.parametrize("title", SECTIONS)
def test_a_section_lists_every_file_of_its_package_once(title):
    folder = SOURCES / title.strip("`/") if title.startswith("`") else SOURCES
    names = listed(SECTIONS[title])
    assert sorted(names) == sorted(files(folder))


def test_headers_that_are_named_exist():
    for name in re.findall(r"`(\w+\.h)`", TEXT):
        assert (SOURCES / "_core" / name).exists(), name


# ---------------------------------------------------------------------------------------------
# The walks

_OF_WALKS = TEXT.split("## Five walks")[1].split("## The files")[0]
WALKS = [
    walk.strip("\n").split("\n") for walk in re.findall(r"```\n(.*?)```", _OF_WALKS, re.DOTALL)
]


@cache
def definitions(file: str) -> dict[str, ast.AST]:
    """Functions, classes and methods of a file, by qualified name."""
    found: dict[str, ast.AST] = {}
    for node in ast.parse((SOURCES / file).read_text(encoding="utf-8")).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found[node.name] = node
        if isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef):
                    found[f"{node.name}.{inner.name}"] = inner
    return found


def called(node: ast.AST) -> set[str]:
    """Last names of all that is called in a function."""
    functions = [inner.func for inner in ast.walk(node) if isinstance(inner, ast.Call)]
    return {getattr(one, "attr", getattr(one, "id", "")) for one in functions}


@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: walk[0].split()[0])
def test_each_step_of_a_walk_exists_and_its_parent_calls_it(walk):
    above: list[tuple[str, str]] = []
    for line in walk:
        depth, (name, file) = (len(line) - len(line.lstrip())) // 2, line.split()
        assert name in definitions(file), f"{name} is not in {file}"
        del above[depth:]
        if above:
            parent, home = above[-1]
            assert name.split(".")[-1] in called(definitions(home)[parent]), f"{parent} → {name}"
        above.append((name, file))


def layer_of(file: str) -> int:
    module = Path(file).relative_to(INSTALLED).parts[0].removesuffix(".py")
    return next((k for k, row in enumerate(LAYERS) if module in row), -1)


def upward_calls(work: Callable[[], Any]) -> tuple[int, set[str]]:
    """How many calls there are within the package, and those into a higher layer."""
    prefix, count, found = str(INSTALLED), 0, set()

    def note(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        if event != "call" or not frame.f_code.co_filename.startswith(prefix):
            return
        caller = frame.f_back
        while caller is not None and not caller.f_code.co_filename.startswith(prefix):
            caller = caller.f_back
        if caller is None:
            return
        count += 1
        if layer_of(frame.f_code.co_filename) < layer_of(caller.f_code.co_filename):
            found.add(f"{caller.f_code.co_qualname} → {frame.f_code.co_qualname}")

    previous = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(previous)
    return count, found


def walked(tmp_path: Path) -> dict[str, Callable[[], Any]]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    y = (X[:, 0] + 0.3 * rng.standard_normal(60) > 0).astype(int)
    model, least_squares = SVC(C=5.0).fit(X, y), LSSVC().fit(X, y)
    store = adiabat.create_store(tmp_path / "store", "svc", id="name", label="good", C=5.0)
    table = {"name": [f"p{k}" for k in range(60)], "a": X[:, 0], "b": X[:, 1], "good": y}
    store.learn(pytest.importorskip("pandas").DataFrame(table))
    carrying = int(model.ids_[model.support_[0]])
    return {
        "SVC.forget": lambda: model.forget([carrying]),
        "SVC.fit": lambda: SVC(C=5.0).fit(X, y),
        "SVC.leave_one_out": lambda: model.leave_one_out(),
        "Store.forget": lambda: store.forget("p3"),
        "LSSVC.forget": lambda: least_squares.forget(X[:1], y[:1]),
    }


def test_no_call_goes_to_a_higher_layer(tmp_path):
    for name, work in walked(tmp_path).items():
        count, upward = upward_calls(work)
        assert count > 50 and not upward, f"{name}: {sorted(upward)}"


def test_a_call_upwards_would_be_seen():
    model = SVC(kernel=lambda A, B: (SVC(), A @ B.T)[1])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("adiabat.engine.solver.polish", lambda machine: SVC.__init__(SVC()))
        _, upward = upward_calls(lambda: model.fit([[0.0], [1.0], [2.0]], [0, 1, 1]))
    assert upward
