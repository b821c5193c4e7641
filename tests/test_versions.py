# SPDX-License-Identifier: BSD-3-Clause
"""`show_versions` says what runs here."""

from __future__ import annotations

from importlib.metadata import version

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import adiabat
from adiabat._core import simd


def shown(capsys: pytest.CaptureFixture[str]) -> dict[str, list[str]]:
    """Printed lines by their first column."""
    adiabat.show_versions()
    lines: dict[str, list[str]] = {}
    for line in capsys.readouterr().out.splitlines():
        lines.setdefault(line[:17].strip(), []).append(line[17:])
    return lines


def test_versions_are_those_installed(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(capsys)
    for package in ("adiabat", "numpy", "scipy", "scikit-learn"):
        assert lines[package] == [version(package)]
    assert lines["built: Cython"][0].startswith("3.")
    assert lines["built: compiler"][0]
    assert "Python" in lines


def test_the_level_in_use_and_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    there = ", ".join(simd.levels())
    assert shown(capsys)["SIMD level"] == [f"{simd.level()} (available: {there})"]


def test_threads_are_those_of_an_update(capsys: pytest.CaptureFixture[str]) -> None:
    with adiabat.limit_threads(3):
        assert shown(capsys)["threads"][0].startswith("3 ")
    with adiabat.limit_threads(None), threadpool_limits(1):
        assert shown(capsys)["threads"][0].startswith("1 ")


def test_every_blas_of_the_process_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    found = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    lines = shown(capsys).get("BLAS", [])
    assert len(lines) == len(found) > 0
    for line, pool in zip(lines, found, strict=True):
        assert pool["filepath"] in line and f"{pool['num_threads']} threads" in line
