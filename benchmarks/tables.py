# SPDX-License-Identifier: BSD-3-Clause
"""One table, three ways to write it: for the terminal, as Markdown, as CSV."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table as RichTable

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "out"

# Where output is not a terminal (a file, a log) there is no width to keep to.
PLAIN_WIDTH = 160


def console() -> Console:
    """The terminal, or wide plain text where there is none."""
    found = Console()
    return found if found.is_terminal else Console(width=PLAIN_WIDTH)


@dataclass
class Table:
    """Text cells under headings; the first column names the row."""

    title: str
    columns: Sequence[str]
    rows: list[Sequence[str]] = field(default_factory=list)
    note: str = ""

    def add(self, *cells: object) -> None:
        """Add a row."""
        if len(cells) != len(self.columns):
            raise ValueError(f"{len(cells)} cells for {len(self.columns)} columns")
        self.rows.append([str(cell) for cell in cells])

    def show(self, screen: Console) -> None:
        """Print it."""
        table = RichTable(title=self.title, caption=self.note or None, title_justify="left")
        for number, column in enumerate(self.columns):
            table.add_column(column, justify="right" if number else "left")
        for row in self.rows:
            table.add_row(*row)
        screen.print(table)

    def markdown(self) -> str:
        """A heading, the note and a pipe table."""
        lines = [f"## {self.title}", ""]
        if self.note:
            lines += [self.note, ""]
        lines.append("| " + " | ".join(self.columns) + " |")
        lines.append("| " + " | ".join(["---", *["---:"] * (len(self.columns) - 1)]) + " |")
        lines += ["| " + " | ".join(row) + " |" for row in self.rows]
        return "\n".join(lines) + "\n"


def write_markdown(name: str, heading: str, preface: str, tables: Iterable[Table]) -> Path:
    """Write tables below a heading to out/name.md."""
    OUT.mkdir(exist_ok=True)
    path = OUT / f"{name}.md"
    parts = [f"# {heading}\n", preface + "\n", *(table.markdown() for table in tables)]
    path.write_text("\n".join(parts), encoding="utf-8")
    return path


def write_csv(name: str, records: Sequence[dict[str, object]]) -> Path | None:
    """Write records, all of the same fields, to out/name.csv."""
    if not records:
        return None
    OUT.mkdir(exist_ok=True)
    path = OUT / f"{name}.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(records[0]))
        writer.writeheader()
        writer.writerows(records)
    return path
