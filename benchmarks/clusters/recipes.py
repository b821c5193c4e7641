# SPDX-License-Identifier: BSD-3-Clause
"""Runs the recipes of docs/clusters.md as they are written there, and compares their models."""

from __future__ import annotations

import os
import sys
import textwrap
import time
from typing import Any

import numpy as np

import adiabat
from adiabat.partitions import RowSums
from benchmarks.speed.problems import noisy
from benchmarks.tables import ROOT

N, N_PARTS = 2500, 6
RECIPES = ("ray", "spark")


def run(only: list[str] | None) -> None:
    """Each recipe on 2,500 rows in six blocks, against one process."""
    for name in only or RECIPES:
        X, y = noisy(N)
        blocks = list(zip(np.array_split(X, N_PARTS), np.array_split(y, N_PARTS), strict=True))
        code = recipe(name)
        print(textwrap.indent(code, "    "))
        _prepare(name)
        started = time.perf_counter()
        known: dict[str, Any] = {"__name__": "__main__", "blocks": blocks}
        exec(compile(code, f"the recipe for {name}", "exec"), known)
        seconds = time.perf_counter() - started
        svc, least = known["working"], known["model"]
        alone = adiabat.SVC(C=10.0, gamma=0.025).fit(X, y)
        off = np.abs(svc.model.decision_function(X) - alone.decision_function(X)).max()
        there = svc.certificate()
        here = RowSums.of(adiabat.LSSVC(), X, y).model(adiabat.LSSVC())
        same = least.coef_.tobytes() == here.coef_.tobytes()
        print(
            f"{name}: {seconds:.0f} s; SVC: f differs by {off:.1e} at most, {len(svc.rounds)} "
            f"looks, {there}; LSSVC: {'the same bits' if same else 'OTHER BITS'}",
            flush=True,
        )


def _prepare(name: str) -> None:
    """A small system on this computer."""
    if name == "ray":
        import ray

        ray.init(num_cpus=1, include_dashboard=False, object_store_memory=100_000_000)
    else:
        os.environ["PYSPARK_PYTHON"] = sys.executable
        os.environ["PYSPARK_SUBMIT_ARGS"] = (
            "--master local[2] --driver-memory 1g --conf spark.ui.enabled=false pyspark-shell"
        )


def recipe(name: str) -> str:
    """The block of code below the heading that names it."""
    text = (ROOT / "docs" / "clusters.md").read_text(encoding="utf-8")
    after = text.split(f"### {name.capitalize()}\n", 1)[1].split("\n### ")[0].split("\n## ")[0]
    lines = [line for line in after.splitlines() if line.startswith("    ") or not line.strip()]
    return textwrap.dedent("\n".join(lines)).strip() + "\n"
