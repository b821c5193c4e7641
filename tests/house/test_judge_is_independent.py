# SPDX-License-Identifier: BSD-3-Clause
"""The judge shares no code with the judged: it knows NumPy and nothing of the engine.

That of an update is compiled, for speed; it knows NumPy, BLAS and how work is shared out.
"""

import ast
import re
import sys
from pathlib import Path

import pytest

JUDGE = Path(__file__).parents[2] / "src" / "adiabat" / "certificate.py"
COMPILED = JUDGE.parent / "_core" / "judge.pyx"
PERMITTED = sys.stdlib_module_names | {"numpy"}
PERMITTED_COMPILED = {"libc.math", "numpy", "adiabat._core.blas", "adiabat._core.thread_pool"}


def foreign_imports(text: str) -> list[str]:
    """Modules imported anywhere in a source text, outside the standard library and NumPy."""
    modules = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            modules += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            modules.append("." * node.level + (node.module or ""))
    return [module for module in modules if module.split(".")[0] not in PERMITTED]


def test_the_judge_imports_only_the_standard_library_and_numpy():
    assert foreign_imports(JUDGE.read_text(encoding="utf-8")) == []
    bound = JUDGE.parent / "error_bound.py"
    assert foreign_imports(bound.read_text(encoding="utf-8")) == ["adiabat.certificate"]


def test_the_compiled_judge_knows_nothing_of_the_engine():
    text = COMPILED.read_text(encoding="utf-8")
    modules = re.findall(r"^\s*(?:from\s+(\S+)\s+c?import|c?import\s+(\S+))", text, re.MULTILINE)
    named = {one or other for one, other in modules}
    assert "numpy" in named
    assert named <= PERMITTED_COMPILED


@pytest.mark.parametrize(
    "line",
    [
        "import scipy.linalg",
        "from adiabat.kernels import rbf",
        "from . import kernels",
        "from .errors import AdiabatError",
        "def late():\n    import sklearn",
    ],
)
def test_a_foreign_import_is_noticed(line):
    assert foreign_imports(line)
