# SPDX-License-Identifier: BSD-3-Clause
"""The engine knows rows and nothing of what they stand for: no word of a formulation is in it."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "src" / "adiabat"
BELOW = sorted(
    path.relative_to(ROOT).as_posix()
    for folder in ("engine", "_core")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in {".py", ".pyi", ".pyx", ".pxd"}
)
FORMULATIONS = sorted(
    name
    for path in (ROOT / "formulations").glob("*.py")
    for name in re.findall(r"^class (\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
)
ESTIMATORS = ["SVC", "SVR", "OneClassSVM", "SVDD"]


def code_of(text: str) -> str:
    """A source without its comments and docstrings, which may speak of anything."""
    text = re.sub(r'""".*?"""', "", text, flags=re.DOTALL)
    return re.sub(r"#.*", "", text)


def formulations_named(text: str) -> list[str]:
    """Names of formulations or estimators that the code of a source text uses."""
    code = code_of(text)
    imported = re.findall(r"adiabat\.(?:formulations|estimators)[\w.]*", code)
    named = [
        name
        for name in (*FORMULATIONS, *ESTIMATORS)
        if name != "Rows" and re.search(rf"\b{name}\b", code)
    ]
    kinds = re.findall(r"""["'](?:c_svc|epsilon_svr|one_class|svdd)["']""", code)
    return imported + named + kinds


def test_there_are_formulations_and_files_below_them() -> None:
    assert {"CSVC", "EpsilonSVR", "OneClass", "Sphere"} <= set(FORMULATIONS)
    assert "engine/solver.py" in BELOW and "_core/factor.pyx" in BELOW


@pytest.mark.parametrize("name", BELOW)
def test_no_formulation_is_named_below_them(name: str) -> None:
    assert formulations_named((ROOT / name).read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "text",
    [
        "if isinstance(formulation, OneClass):\n    d = 1",
        "from adiabat.formulations import FORMULATIONS",
        "from adiabat.estimators.svr import fit",
        'if machine.kind == "svdd":\n    pass',
    ],
)
def test_a_formulation_that_is_named_is_noticed(text: str) -> None:
    assert formulations_named(text)


def test_comments_may_speak_of_it() -> None:
    assert formulations_named('"""For an SVR sample two rows."""\nx = 1  # OneClass') == []
