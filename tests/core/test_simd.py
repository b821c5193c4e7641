# SPDX-License-Identifier: BSD-3-Clause
"""A SIMD level is chosen once, and the environment may take a lower one."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import numpy as np
import pytest

from adiabat._core import simd

HIGHER = {"x86_64": ("v3", "v4"), "amd64": ("v3", "v4"), "aarch64": ("neon",), "arm64": ("neon",)}


def with_level(level: str | None, code: str) -> subprocess.CompletedProcess[str]:
    """Run code in a Python of its own, where the environment names this level, or none."""
    environment = {key: value for key, value in os.environ.items() if key != simd.VARIABLE}
    if level is not None:
        environment[simd.VARIABLE] = level
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True
    )


def level_in_use(level: str | None) -> str:
    code = "from adiabat._core import simd; print(simd.level())"
    return with_level(level, code).stdout.strip()


def test_every_cpu_has_the_baseline_and_the_levels_of_its_family() -> None:
    levels = simd.levels()
    assert levels[0] == "baseline"
    assert set(levels) <= {"baseline", *HIGHER.get(platform.machine().lower(), ())}
    assert simd.level() in levels


def test_the_cpu_has_what_its_level_needs() -> None:
    """NumPy looks at the same CPU."""
    features = np._core._multiarray_umath.__cpu_features__
    assert ("v3" in simd.levels()) == bool(features["AVX2"] and features["FMA3"])
    assert ("v4" in simd.levels()) == bool(features["AVX512_SKX"])


def test_the_highest_level_is_taken_unless_the_environment_names_one() -> None:
    assert level_in_use(None) == simd.levels()[-1]
    assert level_in_use("") == simd.levels()[-1]
    for level in simd.levels():
        assert level_in_use(level) == level


@pytest.mark.parametrize("level", ["v5", "V3"])
def test_an_unknown_level_is_refused_with_those_there_are(level: str) -> None:
    error = with_level(level, "import adiabat; adiabat.SVC").stderr
    assert f"ADIABAT_SIMD={level!r}" in error
    assert ", ".join(simd.levels()) in error


def test_a_level_of_other_cpus_is_refused() -> None:
    for level in {"v3", "v4", "neon"} - set(simd.levels()):
        assert f"ADIABAT_SIMD={level!r}" in with_level(level, "import adiabat._core.simd").stderr


ALL = """
import numpy as np
from adiabat._core import twofold
rng = np.random.default_rng(0)
hi, lo = np.zeros((37, 37)), np.zeros((37, 37))
for size in 10.0 ** rng.integers(-8, 9, 50):
    twofold.add_outer(hi, lo, size * rng.standard_normal(37), 1.0 / 3.0)
print(hi.tobytes().hex(), lo.tobytes().hex())
"""


def test_error_free_products_have_the_same_bits_at_every_level() -> None:
    """By halves or by a fused product: both errors are exact."""
    bits = {with_level(level, ALL).stdout for level in simd.levels()}
    assert len(bits) == 1 and len(bits.pop()) > 37 * 37 * 16
