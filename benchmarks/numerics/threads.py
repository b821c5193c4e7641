# SPDX-License-Identifier: BSD-3-Clause
"""The thread pool of the core against OpenMP, on a quiet and on a busy machine.

`threads.c` does the work of some updates: jobs of a few microseconds a part, and triangular solves
in a wavefront. Beside it, as many processes as there are cores run an empty loop.

    python -m benchmarks.numerics.threads [--seconds N]

Tables go to the terminal and, as Markdown, to out/threads.md.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import tempfile
from collections.abc import Sequence

from adiabat._core import simd
from adiabat.engine.threads import n_cpus
from benchmarks import machine
from benchmarks.numerics.kernels import CORE, FLAGS, HERE
from benchmarks.speed.busy import busy
from benchmarks.tables import Table, console, write_markdown

SOURCES = (HERE / "threads.c", CORE / "simd_level.c", CORE / "thread_pool.c")
WAYS = {
    "one thread": ("alone", {}),
    "our pool": ("pool", {}),
    "OpenMP": ("openmp", {}),
    "OpenMP, OMP_WAIT_POLICY=passive": ("openmp", {"OMP_WAIT_POLICY": "passive"}),
}


def compiled(folder: str) -> str:
    """The program, for the level in use."""
    program, level = f"{folder}/threads", simd.level()
    flags = ["-O3", "-std=c11", "-fopenmp", "-ffp-contract=off", f"-DSIMD_LEVEL={level}"]
    command = [*shlex.split(os.environ.get("CC", "cc")), *flags, *FLAGS.get(level, [])]
    command += [f"-I{CORE}", *map(str, SOURCES), "-o", program, "-lm", "-lpthread"]
    subprocess.run(command, check=True)
    return program


def main(given: Sequence[str] | None = None) -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.numerics.threads", description=(__doc__ or "").split("\n\n")[0]
    )
    parser.add_argument("--seconds", type=float, default=5.0, help="for each figure")
    options = parser.parse_args(given)
    table = Table(
        f"A round of work on {n_cpus()} threads, milliseconds",
        ("", "quiet: mean", "longest", "busy: mean", "longest"),
    )
    with tempfile.TemporaryDirectory() as folder:
        program = compiled(folder)

        def run(way: str, variables: dict[str, str]) -> list[str]:
            command = [program, way, str(n_cpus()), str(options.seconds)]
            printed = subprocess.run(
                command,
                check=True,
                capture_output=True,
                text=True,
                env={**os.environ, **variables},
            ).stdout
            return [f"{1e-3 * float(time):.2f}" for time in printed.split()]

        for name, (way, variables) in WAYS.items():
            quiet = run(way, variables)
            with busy(os.cpu_count() or 1):
                table.add(name, *quiet, *run(way, variables))
    screen = console()
    screen.print(machine.description(), style="dim")
    table.show(screen)
    path = write_markdown("threads", "Threads", machine.description(), [table])
    screen.print(f"written to {path.parent.name}/", style="dim")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
