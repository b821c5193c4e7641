# SPDX-License-Identifier: BSD-3-Clause
"""An operation's outcome in a few lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adiabat.cli.output import certificate_sentence
from adiabat.store.words import counted

if TYPE_CHECKING:
    from adiabat.store.outcome import Outcome


def outcome_lines(done: Outcome) -> list[str]:
    """What was done, what it moved, what was settled, and the certificate."""
    counts = (("learned", done.added), ("erased", done.removed), ("revised", done.revised))
    parts = [f"{verb} {counted(count, 'row')}" for verb, count in counts if count]
    if done.operation in ("retune", "refresh") and (done.dry_run or done.entry is not None):
        parts.append("retuned" if done.operation == "retune" else "refreshed")
    if done.operation == "columns":
        parts.append("added a column")
    if done.operation == "repair" and done.certificate is not None and done.entry is not None:
        parts.append(f"fitted again from {counted(done.certificate['n_samples'], 'row')}")
    said = " and ".join(parts) or "nothing to do"
    if done.dry_run:
        lines = [f"Dry run, nothing was changed. Would have {said}."]
    elif done.entry is None:
        lines = [f"{said[0].upper()}{said[1:]}; nothing was written."]
    else:
        lines = [f"{said[0].upper()}{said[1:]} in {done.seconds:.2f} s (log entry {done.entry})."]
    lines = [f"Found: {problem}" for problem in done.found] + lines
    for column in done.settled if isinstance(done.settled, list) else ():
        if "values" in column:
            lines.append(f"Fixed now: {column['name']} is one of {', '.join(column['values'])}.")
    if done.settled is not None:
        lines.append(f"Fixed now: {_width(done.settled)}")
    moved = done.moved
    if moved is not None:
        largest = moved["largest_change"]
        lines.append(
            f"Of {counted(moved['rows_compared'], 'row')} that would stay, "
            f"{counted(moved['predictions_changed'], 'prediction')} would change"
            + ("" if largest is None else f", decision values by up to {largest:.3g}")
            + "."
        )
        lines.append(
            f"Support: {counted(moved['support_entered'], 'row')} would enter, "
            f"{moved['support_left']:,} leave."
        )
        if moved["sets"]:
            moves = ", ".join(f"{count} from {move}" for move, count in moved["sets"].items())
            lines.append(f"Sets: {moves}.")
    said = certificate_sentence(done.certificate)
    lines.append(said.replace("is", "would be", 1) if done.dry_run else said)
    return lines


def _width(settled: object) -> str:
    if isinstance(settled, dict):
        return f"{counted(settled['sparse'], 'feature')}."
    assert isinstance(settled, list)
    named = ", ".join(column["name"] for column in settled[:6])
    return f"{counted(len(settled), 'column')} of features, {named}" + (
        ", …" if len(settled) > 6 else "."
    )
