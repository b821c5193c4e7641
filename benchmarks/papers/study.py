# SPDX-License-Identifier: BSD-3-Clause
"""One experiment of a paper: run with a progress bar, written as tables, a figure and words."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from rich.progress import Progress

from benchmarks import machine
from benchmarks.tables import OUT, Table, console, write_csv, write_markdown

Tick = Callable[[], None]


@dataclass
class Findings:
    """What an experiment found."""

    tables: list[Table]
    words: str  # the settings, and where ours and the paper's differ
    draw: Callable[[], Any] | None = None  # a matplotlib figure


@dataclass(frozen=True)
class Study:
    """An experiment: its name is that of its module and of what it writes."""

    name: str
    title: str
    run: Callable[[bool, Callable[[int, str], Any]], Findings]

    def main(self, given: Sequence[str] | None = None) -> int:
        """Run it and write out/name.md, name*.csv and name.png."""
        parser = argparse.ArgumentParser(description=self.title)
        parser.add_argument("--quick", action="store_true", help="a small part of it, in a minute")
        quick = parser.parse_args(given).quick
        screen = console()
        with Progress(console=screen, transient=True) as progress:

            @contextmanager
            def steps(total: int, what: str) -> Iterator[Tick]:
                task = progress.add_task(what, total=total)
                yield lambda: progress.advance(task)
                progress.remove_task(task)

            found = self.run(quick, steps)
        for number, table in enumerate(found.tables):
            table.show(screen)
            records = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
            write_csv(self.name if len(found.tables) == 1 else f"{self.name}_{number + 1}", records)
        if found.draw is not None:
            figure = found.draw()
            figure.savefig(OUT / f"{self.name}.png", dpi=110, bbox_inches="tight")
        size = "A quick run, on a part of the data. " if quick else ""
        preface = f"{found.words}\n\n*{size}{machine.description()}*"
        write_markdown(self.name, self.title, preface, found.tables)
        screen.print(found.words)
        return 0
