# SPDX-License-Identifier: BSD-3-Clause
"""The drift-aware window of the examples errs less than a fixed one, long or short."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

pytest.importorskip("river")

EXAMPLE = Path(__file__).parents[2] / "examples" / "drifting_stream.py"


def test_a_window_that_follows_drift(capsys: pytest.CaptureFixture[str]) -> None:
    rates = runpy.run_path(str(EXAMPLE))["main"](steps=600, concept=300)
    assert rates["ADWIN"] < min(rates["last 50"], rates["last 1000"])
    assert capsys.readouterr().out.count("optimal") == 3
