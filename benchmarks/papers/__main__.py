# SPDX-License-Identifier: BSD-3-Clause
"""Every experiment of the papers, gathered into docs/reproduction.md.

    python -m benchmarks.papers [--quick] [--only NAME ...]

Each is a process of its own, so that none warms or fills the memory of another. A quick run is a
check that they run; it leaves the page as it is.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence

from benchmarks.tables import OUT, ROOT, console

EXPERIMENTS = (
    "cp01_figures35",
    "sls99_calibration",
    "sls99_table2",
    "sls99_table3",
    "kt09_figures45",
    "kt09_figures67",
    "lgkm06_figures1to7",
    "lgkm06_figure8",
    "lgkm06_figures910",
    "lkw19",
)
PAGE = ROOT / "docs" / "reproduction.md"
FIGURES = ROOT / "docs" / "reproduction"
PREFACE = """# The papers, redone

Every table and figure below is made by `make papers` from the data in `ADIABAT_DATA`, with the
paper's numbers beside ours. Where they differ, the text says so. Times are those of one run on the
machine named, which had other work to do as well: CPU time is given where a table says so, and only
ratios within a table mean something.
"""


def gather(names: Sequence[str]) -> None:
    """Put what the experiments wrote together on one page."""
    FIGURES.mkdir(exist_ok=True)
    parts = [PREFACE]
    for name in names:
        text = (OUT / f"{name}.md").read_text(encoding="utf-8")
        lines = [f"#{line}" if line.startswith("#") else line for line in text.splitlines()]
        figure = OUT / f"{name}.png"
        if figure.exists():
            shutil.copy(figure, FIGURES / figure.name)
            lines += ["", f"![{name}](reproduction/{figure.name})"]
        parts.append("\n".join(lines) + "\n")
    PAGE.write_text("\n".join(parts), encoding="utf-8")


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Every experiment of the papers.")
    parser.add_argument("--quick", action="store_true", help="a small part of each")
    parser.add_argument("--only", nargs="+", choices=EXPERIMENTS, default=EXPERIMENTS)
    chosen = parser.parse_args(given)
    screen, failed = console(), []
    for name in chosen.only:
        started = time.perf_counter()
        command = [sys.executable, "-m", f"benchmarks.papers.{name}", *["--quick"] * chosen.quick]
        if subprocess.run(command, cwd=ROOT, check=False).returncode:
            failed.append(name)
        screen.print(f"{name}: {time.perf_counter() - started:.0f} s")
    if failed:
        screen.print(f"failed: {', '.join(failed)}")
        return 1
    if not chosen.quick and tuple(chosen.only) == EXPERIMENTS:
        gather(EXPERIMENTS)
        screen.print(f"written to {PAGE.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
