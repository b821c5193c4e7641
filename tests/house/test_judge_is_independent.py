# SPDX-License-Identifier: BSD-3-Clause
"""The judge shares no code with the judged: it knows NumPy and nothing of the engine.

That of an update is compiled, for speed; it knows NumPy, BLAS and how work is shared out. The other
way round the engine takes nothing from a judge but the verdict, and no machine of least squares
knows its judge at all.
"""

import ast
import re
import sys
from pathlib import Path

import pytest

JUDGE = Path(__file__).parents[2] / "src" / "adiabat" / "certificate.py"
COMPILED = [JUDGE.parent / "_core" / name for name in ("judge.pyx", "looks.pyx")]
PERMITTED = sys.stdlib_module_names | {"numpy"}
PERMITTED_COMPILED = {
    "libc.math", "numpy", "adiabat._core.blas", "adiabat._core.thread_pool", "adiabat._core.judge",
}  # fmt: skip


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


@pytest.mark.parametrize("file", COMPILED)
def test_the_compiled_judge_knows_nothing_of_the_engine(file):
    text = file.read_text(encoding="utf-8")
    modules = re.findall(r"^\s*(?:from\s+(\S+)\s+c?import|c?import\s+(\S+))", text, re.MULTILINE)
    named = {one or other for one, other in modules}
    assert "numpy" in named
    assert named <= PERMITTED_COMPILED


# -- what is judged takes nothing from the judge ---------------------------------------------------

PACKAGE = JUDGE.parent
#: The parts of the judges of least squares that measure.
MEASURING = ("exact_residual", "measures", "dual_measures")
JUDGES = (
    "certificate", "error_bound", "_core.judge", "_core.looks",
    *(f"lssvm.{name}" for name in MEASURING),
)  # fmt: skip
#: What the judged may ask a judge for: the verdict, and the names of what it says.
VERDICTS = {
    "Certificate", "Looks", "Verdict", "adds_nothing", "verdict", "weigh", "weigh_rows",
}  # fmt: skip
#: Who asks the judge for what is then shown to users.
ASKING = {"lssvm/evidence.py", "lssvm/dual_evidence.py"}
#: What the judge of least squares takes from other modules, none of which solves or measures.
OF_OTHERS = {"NotLearnedError", "LeastSquares", "Moments", "FloatArray"}
#: What it asks a machine for: what is judged, and of its matrix a correction.
DATA = {
    "moments", "rho", "intercept", "tol", "combine", "solution", "expansion", "matrix",
    "error", "gap", "f_error",
}  # fmt: skip
OF_MATRIX = {"solve", "bias_variance"}
#: The same for machines in the dual: the machine itself has the correction.
OF_OTHERS_DUAL = {"DualMachine", "Values", "FloatArray"}
DATA_DUAL = {
    "d", "aims", "intercept", "tol", "alpha", "rest", "bias", "w", "error", "gap", "f_error",
    "solve",
}  # fmt: skip
OF_VALUES = {"K", "rounding", "features"}
JUDGED = sorted(
    path.relative_to(PACKAGE).as_posix()
    for folder in ("engine", "formulations", "lssvm", "_core")
    for path in (PACKAGE / folder).iterdir()
    if path.suffix in (".py", ".pyx", ".pxd") and path not in COMPILED
)
IMPORT = re.compile(r"^\s*from\s+adiabat\.(\S+)\s+c?import\s+(\([^)]*\)|[^\n]*)", re.MULTILINE)


def taken(text: str) -> dict[str, set[str]]:
    """Names taken from each module of the package."""
    found: dict[str, set[str]] = {}
    for module, names in IMPORT.findall(text):
        found.setdefault(module, set()).update(re.findall(r"\w+", names.replace("# noqa", "")))
    return found


def secrets(text: str) -> set[str]:
    """What is taken from a judge besides its verdict."""
    names = set()
    for module, found in taken(text).items():
        if module in JUDGES:
            names |= found - VERDICTS
        names |= {name for name in found if f"{module}.{name}" in JUDGES}  # all of it
    return names


@pytest.mark.parametrize("file", [name for name in JUDGED if name not in ASKING])
def test_the_judged_takes_nothing_from_its_judge_but_the_verdict(file):
    assert secrets((PACKAGE / file).read_text("utf-8")) == set()


def attributes(text: str, of: str) -> set[str]:
    """Attributes that are read of a name, or of an attribute of this name."""
    return {
        node.attr
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute) and ast.unparse(node.value).split(".")[-1] == of
    }


def of_others(text: str) -> set[str]:
    """Names taken from modules that are no judges."""
    return {name for module, names in taken(text).items() if module not in JUDGES for name in names}


def wholes(text: str, name: str) -> set[str]:
    """Functions that a name is passed to as it is: what they read of it cannot be seen here."""
    return {
        ast.unparse(node.func)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
        for argument in [*node.args, *(keyword.value for keyword in node.keywords)]
        if ast.unparse(argument) == name
    }


def test_what_least_squares_is_judged_by_is_not_what_it_solved():
    text = (PACKAGE / "lssvm" / "evidence.py").read_text("utf-8")
    assert of_others(text) == OF_OTHERS
    assert attributes(text, "model") <= DATA
    assert attributes(text, "matrix") == OF_MATRIX
    assert wholes(text, "model") == {"_measured"}


def test_what_its_dual_is_judged_by_is_not_what_it_solved():
    text = (PACKAGE / "lssvm" / "dual_evidence.py").read_text("utf-8")
    assert of_others(text) == OF_OTHERS_DUAL
    assert attributes(text, "machine") == DATA_DUAL
    assert attributes(text, "values") == OF_VALUES
    assert attributes(text, "DualMachine") == attributes(text, "Values") == set()
    assert wholes(text, "machine") == {"len"}  # no copy of it that measures


@pytest.mark.parametrize("part", MEASURING)
def test_what_measures_least_squares_knows_numpy_alone(part):
    assert foreign_imports((PACKAGE / "lssvm" / f"{part}.py").read_text("utf-8")) == []


def test_a_measure_of_the_machine_is_noticed():
    text = "def judged(model):\n    return model.distance(model.solution), model.matrix.inverse"
    assert attributes(text, "model") == {"distance", "solution", "matrix"}
    assert attributes(text, "matrix") == {"inverse"}


def test_a_copy_of_the_machine_is_noticed():
    text = "def judged(machine):\n    return replace(machine, values=values).distance()"
    assert wholes(text, "machine") == {"replace"}


def test_all_that_is_judged_is_read():
    assert {"engine/machine.py", "_core/rows.pyx", "lssvm/machine.py"} <= set(JUDGED)
    assert ASKING < set(JUDGED)


@pytest.mark.parametrize(
    "line",
    [
        "from adiabat.certificate import violations",
        "from adiabat.certificate import (\n    Verdict,\n    judge,\n)",
        "from adiabat._core.judge cimport rounding_of",
        "from adiabat._core import judge",
        "def late():\n    from adiabat.error_bound import error_bound",
        "from adiabat.lssvm.exact_residual import right_hand_side",
        "from adiabat.lssvm.dual_measures import DualJudged",
        "from adiabat.lssvm import measures",
    ],
)
def test_a_line_that_is_shared_is_noticed(line):
    assert secrets(line)


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
