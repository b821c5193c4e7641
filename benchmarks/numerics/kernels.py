# SPDX-License-Identifier: BSD-3-Clause
"""Each kernel of the core against the same work done by BLAS, at a chosen SIMD level.

A kernel must be at least 1.2 times faster than BLAS over margins of 100 to 2,000 rows, else BLAS
does its work. `kernels.c` holds the measurements; it is compiled with the core's own sources, and
calls the BLAS that SciPy brings, which is held at one thread. On several threads ours are shared
as in an update, and BLAS's where the work can be divided among calls of it.

    python -m benchmarks.numerics.kernels [--level v3] [--quick]

What each is compared with:

    forward solve     DTRSV, or DTRSM for several right-hand sides
    backward solve    DTRSV
    downdate          DROT, a rotation for each column and removed row
    rows of panels    DDOT, for each row and panel
    sparse products   DGEMV or DGEMM, of rows a fifth of whose entries are not 0

Tables go to the terminal and, as Markdown, to out/kernels.md.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import shlex
import subprocess
import tempfile
from collections.abc import Sequence
from math import exp, log
from pathlib import Path

import scipy.linalg.cython_blas  # noqa: F401  (loads SciPy's BLAS)
from threadpoolctl import threadpool_info

from adiabat._core import simd
from adiabat.engine.threads import n_cpus
from benchmarks import machine
from benchmarks.tables import Table, console, write_markdown

HERE = Path(__file__).resolve().parent
CORE = HERE.parents[1] / "src" / "adiabat" / "_core"
SOURCES = (HERE / "kernels.c", CORE / "simd_level.c", CORE / "thread_pool.c")
FLAGS = {"v3": ["-march=x86-64-v3"], "v4": ["-march=x86-64-v4"]}
SIZES = (100, 200, 400, 900, 1500, 2000)
WANTED = 1.2  # times faster than BLAS

Row = tuple[str, int, int, float, float, float, float]


def compiled(level: str, folder: str) -> str:
    """The program for a level."""
    program = f"{folder}/kernels"
    flags = ["-O3", "-std=c11", "-ffp-contract=off", f"-DSIMD_LEVEL={level}", f"-I{CORE}"]
    command = [*shlex.split(os.environ.get("CC", "cc")), *flags, *FLAGS.get(level, [])]
    command += [*map(str, SOURCES), "-o", program, "-lm", "-lpthread", "-ldl"]
    subprocess.run(command, check=True)
    return program


def blas() -> tuple[str, str, str]:
    """SciPy's BLAS, with integers of 32 bits: its path, and what its names begin and end with."""
    for pool in threadpool_info():
        library = ctypes.CDLL(pool["filepath"])
        for prefix, suffix in (("scipy_", "_"), ("", "_")):
            if pool["user_api"] == "blas" and hasattr(library, f"{prefix}dtrsv{suffix}"):
                return pool["filepath"], prefix, suffix
    raise SystemExit("no BLAS with integers of 32 bits is in use here")


def measure(level: str, sizes: Sequence[int], seconds: float, threads: int) -> list[Row]:
    """Kernel, how many at once, rows, and microseconds: ours and BLAS's on one thread, on all."""
    with tempfile.TemporaryDirectory() as folder:
        command = [compiled(level, folder), *blas(), str(threads), str(seconds)]
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        printed = subprocess.run(
            [*command, *map(str, sizes)],
            check=True,
            capture_output=True,
            text=True,
            env=environment,
        ).stdout
    rows: list[Row] = []
    for line in printed.splitlines():
        kernel, k, n, *times = line.split(",")
        ours, other, ours_shared, other_shared = map(float, times)
        rows.append((kernel, int(k), int(n), ours, other, ours_shared, other_shared))
    return rows


def mean(ratios: Sequence[float]) -> float:
    """The geometric mean."""
    return exp(sum(map(log, ratios)) / len(ratios))


def table_of(rows: Sequence[Row], level: str, sizes: Sequence[int], shared: bool) -> Table:
    """Microseconds of ours, and in brackets how many times longer BLAS takes."""
    where = "all threads" if shared else "one thread"
    table = Table(
        f"Kernels at {level} on {where}: microseconds (times faster than BLAS)",
        ("kernel, how many at once", *(f"{size:,} rows" for size in sizes), "mean"),
        note=f"a mean below {WANTED} is marked: BLAS should do this work",
    )
    for kernel, k in dict.fromkeys((row[0], row[1]) for row in rows):
        found = {row[2]: row[5:] if shared else row[3:5] for row in rows if row[:2] == (kernel, k)}
        ratios = [other / ours for ours, other in found.values()]
        cells = [
            f"{found[size][0]:,.1f} ({found[size][1] / found[size][0]:.2f})"
            if size in found
            else ""
            for size in sizes
        ]
        if kernel == "sparse products":
            cells[0] = f"{found[1000][0]:,.0f} ({ratios[0]:.2f})"
        typical = mean(ratios)
        table.add(f"{kernel}, {k}", *cells, f"{typical:.2f}{'' if typical >= WANTED else ' ✗'}")
    return table


def main(given: Sequence[str] | None = None) -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.numerics.kernels", description=(__doc__ or "").split("\n\n")[0]
    )
    parser.add_argument("--level", choices=simd.levels(), default=simd.level())
    parser.add_argument("--threads", type=int, default=n_cpus())
    parser.add_argument("--quick", action="store_true", help="two sizes, fewer repeats")
    options = parser.parse_args(given)
    sizes = (200, 900) if options.quick else SIZES
    seconds = 0.02 if options.quick else 0.2
    screen = console()
    screen.print(machine.description(), style="dim")
    rows = measure(options.level, sizes, seconds, options.threads)
    tables = [table_of(rows, options.level, sizes, shared) for shared in (False, True)]
    for table in tables:
        table.show(screen)
    path = write_markdown("kernels", "Kernels and BLAS", machine.description(), tables)
    screen.print(f"written to {path.parent.name}/", style="dim")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
