# SPDX-License-Identifier: BSD-3-Clause
"""What runs here: the SIMD level, threads, BLAS and versions, for reports of bugs and of speed."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version

from threadpoolctl import threadpool_info

from adiabat._core import simd
from adiabat.engine.threads import n_cpus, n_threads

_COLUMN = 17
_PACKAGES = ("numpy", "scipy", "scikit-learn", "joblib", "threadpoolctl")


def show_versions() -> None:
    """Print what runs here: the SIMD level, threads, BLAS and versions.

    The SIMD level is the one that the compiled loops use: the highest that the CPU can run, unless
    the environment variable ``ADIABAT_SIMD`` names a lower one (``baseline``, ``v3``, ``v4`` or
    ``neon``). Threads are those of an update; see `limit_threads`. BLAS is what threadpoolctl
    finds in the process.

    Examples
    --------
    >>> import adiabat
    >>> adiabat.show_versions()
    adiabat          ...
    SIMD level       ...
    """
    for name, text in versions():
        print(f"{name:<{_COLUMN}}{text}")


def versions() -> list[tuple[str, str]]:
    """The lines of `show_versions`: what, and which."""
    lines = [
        ("adiabat", version("adiabat")),
        ("SIMD level", f"{simd.level()} (available: {', '.join(simd.levels())})"),
        ("threads", f"{n_threads()} (CPUs: {os.cpu_count()}, for this process: {n_cpus()})"),
    ]
    for pool in threadpool_info():
        if pool["user_api"] == "blas":
            details = [pool["version"], pool.get("architecture"), f"{pool['num_threads']} threads"]
            told = ", ".join(str(detail) for detail in details if detail)
            lines.append(("BLAS", f"{pool['internal_api']} {told}: {pool['filepath']}"))
    lines.append(("Python", f"{platform.python_version()} on {platform.platform()}"))
    lines += [(package, version(package)) for package in _PACKAGES]
    lines += [(f"built: {name}", told) for name, told in simd.built_with().items()]
    return lines
