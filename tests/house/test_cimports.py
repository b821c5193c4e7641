# SPDX-License-Identifier: BSD-3-Clause
"""What the compiled core may lean on, which no import linter can see in a .pyx file.

The core knows NumPy, libc, Cython, Python's buffers and itself. BLAS is named in one file, so that
its integer type is settled in one place; NumPy's headers are named nowhere, so a wheel does not
depend on the NumPy it was built with; and a cimport names what it takes from a module of the core,
since only then does the build notice that the module changed.
"""

import re
from pathlib import Path

import pytest

CORE = Path(__file__).parents[2] / "src" / "adiabat" / "_core"
BLAS_FILE = "blas.pxd"
SOURCES = sorted(path for path in CORE.iterdir() if path.suffix in {".py", ".pyx", ".pxd"})

_STRINGS_AND_COMMENTS = re.compile(r'""".*?"""' + r"|'''.*?'''|#[^\n]*", re.DOTALL)
_STATEMENT = re.compile(
    r"^[ \t]*(?:from[ \t]+(?P<source>[\w.]+)[ \t]+(?P<taken>c?import)\b"
    r"|(?P<whole>c?import)[ \t]+(?P<names>[^\n]+))",
    re.MULTILINE,
)
_OWN_MODULE = re.compile(r"adiabat\._core\.\w+")


def objection(module: str, *, taken: bool, compiled: bool, file_name: str) -> str | None:
    """Why this import is refused, or None; `taken`: from-form, `compiled`: cimport."""
    top = module.split(".")[0]
    if module.startswith("."):
        return "relative; write `from adiabat._core.x cimport y`"
    if top == "numpy":
        return "numpy is imported, never cimported; use typed memoryviews" if compiled else None
    if top in {"libc", "cython"} or module in {"cpython.buffer", "cpython.exc"}:
        return None
    if module in {"scipy.linalg.cython_blas", "scipy.linalg.cython_lapack"}:
        return None if taken and file_name == BLAS_FILE else f"BLAS is named in {BLAS_FILE} alone"
    if _OWN_MODULE.fullmatch(module):
        return None if taken else "write `from adiabat._core.x cimport y`"
    if module == "adiabat._core":
        return "takes a whole module; write `from adiabat._core.x cimport y`"
    return "the core imports numpy, libc, cython, cpython.buffer, cpython.exc and itself only"


def objections(text: str, file_name: str) -> list[str]:
    """All refused imports of a source text, each as `statement: reason`."""
    found = []
    for match in _STATEMENT.finditer(_STRINGS_AND_COMMENTS.sub("", text)):
        if match["source"]:
            modules, verb = [match["source"]], match["taken"]
        else:
            modules, verb = [name.split()[0] for name in match["names"].split(",")], match["whole"]
        for module in modules:
            reason = objection(
                module,
                taken=match["source"] is not None,
                compiled=verb == "cimport",
                file_name=file_name,
            )
            if reason:
                found.append(f"{match[0].strip()}: {reason}")
    return found


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_the_core_leans_only_on_what_it_may(path):
    assert objections(path.read_text(encoding="utf-8"), path.name) == []


@pytest.mark.parametrize(
    "line",
    [
        "cimport numpy as cnp",
        "from numpy cimport ndarray",
        "from scipy.linalg.cython_blas cimport ddot",
        "from scipy.linalg.cython_lapack cimport dpotrf",
        "from adiabat._core cimport blas",
        "cimport adiabat._core.blas",
        "import adiabat._core.gram",
        "from . cimport blas",
        "from .blas cimport dot",
        "from adiabat.engine import solver",
        "import scipy.linalg",
        "import numpy as np, scipy",
        "    from cpython.mem cimport PyMem_Malloc",
    ],
)
def test_a_forbidden_import_is_noticed(line):
    assert objections(line, "path.pyx")


@pytest.mark.parametrize(
    "line",
    [
        "import numpy as np",
        "cimport cython",
        "from libc.math cimport fabs",
        "from cython.parallel cimport prange",
        "from adiabat._core.blas cimport dot, axpy",
        "from adiabat._core.gram cimport (\n    Gram,\n)",
        "from adiabat._core.gram import Gram",
        '"""\nimport scipy\n"""',
        "# from scipy.linalg.cython_blas cimport ddot",
    ],
)
def test_a_permitted_import_is_let_through(line):
    assert objections(line, "path.pyx") == []


def test_blas_is_permitted_where_it_belongs():
    assert objections("from scipy.linalg.cython_blas cimport ddot", BLAS_FILE) == []
