# SPDX-License-Identifier: BSD-3-Clause
"""What the figures were measured on, and how much memory a step took."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from threadpoolctl import threadpool_info

from adiabat._core import simd
from adiabat.engine.threads import n_threads

MIB = 2.0**20


def description() -> str:
    """CPU, SIMD level, thread pools and versions, in one line."""
    pools = {
        f"{pool['internal_api']} {pool.get('version') or ''}".strip() + f" x{pool['num_threads']}"
        for pool in threadpool_info()
    }
    packages = [f"{name} {found}" for name in _PACKAGES if (found := _version(name))]
    python = f"Python {platform.python_version()} on {platform.system()} {platform.machine()}"
    cores = f"{os.cpu_count()} cores, SIMD level {simd.level()}, {n_threads()} threads"
    return ", ".join([_cpu(), cores, *sorted(pools), python, *packages])


def _cpu() -> str:
    """The name of the CPU."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    told = dict(line.split(":", 1) for line in lines if ":" in line)
    fields = {key.strip(): value.strip() for key, value in told.items()}
    name = fields.get("model name", platform.machine())
    return f"{name} (family {fields['cpu family']})" if "cpu family" in fields else name


_PACKAGES = ("adiabat", "numpy", "scipy", "scikit-learn", "scikit-learn-intelex")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def forget_peak() -> bool:
    """Start measuring the peak of resident memory anew; False where the system cannot."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def peak_mib() -> float:
    """Peak resident memory of this process, since `forget_peak` where that works."""
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return float(line.split()[1]) / 1024.0
    except OSError:
        pass
    import resource  # not everywhere

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / MIB if sys.platform == "darwin" else peak / 1024.0
