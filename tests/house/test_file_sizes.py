# SPDX-License-Identifier: BSD-3-Clause
"""A source file holds one idea, and one idea fits in 450 lines."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "src"
LIMIT = 450
SOURCES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in ROOT.rglob("*")
    if path.suffix in {".py", ".pyi", ".pyx", ".pxd"}
)

# A ratchet. "adiabat/engine/solver.py": (510, "why it is still one idea")
# The number is the file's own limit: it may be lowered, and goes once the file fits.
LONGER_FOR_A_REASON: dict[str, tuple[int, str]] = {
    "adiabat/estimators/svc.py": (484, "the estimator's docstring has all of scikit-learn's words"),
    "adiabat/estimators/kernel_machine.py": (651, "all methods of a kernel machine, in one place"),
    "adiabat/estimators/incremental_pipeline.py": (537, "all methods of the pipeline"),
    "adiabat/engine/machine.py": (473, "all state of one problem (P), and what is known of it"),
    "adiabat/store/store.py": (491, "all verbs of a store, in one place"),
    "adiabat/estimators/least_squares_machine.py": (637, "all methods of its estimators"),
}


def lines(name: str) -> int:
    return len((ROOT / name).read_text(encoding="utf-8").splitlines())


@pytest.mark.parametrize("name", SOURCES)
def test_a_source_file_holds_one_idea(name):
    limit, _ = LONGER_FOR_A_REASON.get(name, (LIMIT, ""))
    assert lines(name) <= limit, f"src/{name} is longer than {limit} lines: which idea moves out?"


def test_the_ratchet_lists_no_file_that_fits():
    fitting = [name for name in LONGER_FOR_A_REASON if lines(name) <= LIMIT]
    assert fitting == []
