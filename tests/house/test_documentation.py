# SPDX-License-Identifier: BSD-3-Clause
"""Every public name is in the API reference, with an example."""

import importlib
import inspect
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ["", "plots", "streams", "active", "retention", "analysis", "feature_maps"]
# A name that others' examples show, and that a user never makes.
SHOWN_ELSEWHERE = {
    "InputFileError", "NotOptimalError", "StoreDamagedError", "StoreLockedError",
    "analysis.Agreement", "analysis.Sensitivity", "analysis.Trajectory", "retention.Held",
    "retention.register",
}  # fmt: skip


def public_names():
    for package in PACKAGES:
        module = importlib.import_module(f"adiabat.{package}".rstrip("."))
        for name in module.__all__:
            if not name.startswith("__") and not inspect.ismodule(getattr(module, name)):
                yield f"{package}.{name}".lstrip("."), getattr(module, name)


NAMES = dict(public_names())


def test_the_reference_lists_every_public_name_and_no_other():
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^   ([A-Za-z_][\w.]*)$", page, flags=re.MULTILINE))
    twice = {"analysis.cross_validate", "analysis.validation_curve"}  # also at the top
    elsewhere = {"store.store.Store", "formulations.Formulation"}
    elsewhere |= {"martingales.PowerMartingale", "martingales.SimpleJumper"}
    elsewhere |= {f"dask.{name}" for name in ("LSSVC", "LSSVR", "SVC", "SVR", "StandardScaler")}
    elsewhere |= {f"partitions.{name}" for name in ("Part", "RowSums", "Working")}
    assert listed - elsewhere == set(NAMES) - twice


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_public_name_has_an_example(name):
    doc = NAMES[name].__doc__
    assert doc, f"{name} has no docstring"
    assert ("Examples\n" in doc) != (name in SHOWN_ELSEWHERE), name


def test_every_page_is_reached_from_the_landing_page():
    docs = ROOT / "docs"
    reached, todo = set(), ["index"]
    while todo:
        page = todo.pop()
        if page in reached or not (docs / f"{page}.md").exists():
            continue
        reached.add(page)
        text = (docs / f"{page}.md").read_text(encoding="utf-8")
        for block in re.findall(r"```\{toctree\}(.*?)```", text, flags=re.DOTALL):
            todo += [line.strip() for line in block.splitlines() if line.strip()]
    pages = {path.stem for path in docs.glob("*.md")} - {"gallery"}
    assert pages == reached


def test_every_variable_of_the_environment_is_on_the_page_of_settings():
    sources = [*(ROOT / "src").rglob("*.py"), ROOT / "src/adiabat/_core/simd.pyx"]
    read = {
        name
        for path in sources
        for name in re.findall(r"[\"'`](ADIABAT_[A-Z_]+)", path.read_text(encoding="utf-8"))
    }
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"`(ADIABAT_[A-Z_]+)", page))
    assert len(read) >= 5 and read <= listed
    assert listed - read <= {"ADIABAT_DATA"}  # of benchmarks
