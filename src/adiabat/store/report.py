# SPDX-License-Identifier: BSD-3-Clause
"""The report: one page that says what a model is, how it stands, and how it came to be."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from adiabat.store import log
from adiabat.store.analysis import LeftOut
from adiabat.store.charts import steps
from adiabat.store.pages import Markup, definition_list, figure, page, paragraph, section, table
from adiabat.store.settings import Settings
from adiabat.store.tasks import TASKS, Task

_SUSPECTS: Final = 20
_NAMED: Final = 12
_CLASSES: Final = 50


def report_page(
    name: str,
    settings: Settings,
    entries: Sequence[log.Entry],
    certificate: dict[str, Any],
    left_out: LeftOut,
) -> str:
    """The page of a fitted model.

    Parameters
    ----------
    name : str
        The store's path; its last part is the title.
    settings : Settings
    entries : sequence of Entry
        The whole log.
    certificate : dict
        Recomputed from the rows just now.
    left_out : LeftOut
        Exact leave-one-out.
    """
    title = os.path.basename(os.path.abspath(name))
    return page(
        title,
        [
            paragraph(_summary(settings, certificate), "lead"),
            paragraph(
                certificate_text(certificate, TASKS[settings.task].keeps_rows),
                "good" if certificate["ok"] else "bad",
            ),
            definition_list(_facts(settings, entries, certificate)),
            *_balance(left_out),
            _history(entries, TASKS[settings.task]),
            _doubts(left_out),
            section("Log", table(_LOG_HEAD, [_log_row(entry) for entry in reversed(entries)])),
            paragraph(f"Written {_time(datetime.now(UTC).isoformat())} UTC.", "soft"),
        ],
    )


def certificate_text(certificate: dict[str, Any], keeps_rows: bool) -> str:
    """A certificate in one sentence for people."""
    if not certificate["ok"]:
        return (
            f"This model is NOT the optimum on its {certificate['n_samples']:,} rows: it misses "
            f"the optimality conditions by {certificate['residual']:.1e}, and "
            f"{certificate['tol']:.1e} is allowed."
        )
    held = ", ".join(f"{k} = {_brief(v)}" for k, v in certificate["held_fixed"].items())
    return (
        f"This model is the one that retraining on its {certificate['n_samples']:,} rows would "
        f"give{f' with {held}' if held else ''}: the optimality conditions, recomputed from the "
        f"{'rows' if keeps_rows else 'sums that it keeps of them'}, hold to "
        f"{certificate['residual']:.1e} ({certificate['tol']:.1e} is allowed)."
    )


def _summary(settings: Settings, certificate: dict[str, Any]) -> str:
    keeps_rows = TASKS[settings.task].keeps_rows
    said = ", ".join(f"{name} = {_brief(value)}" for name, value in settings.parameters.items())
    scaled = {None: "", "exact": ", on standardised features", "held": ", on scaled features"}
    return (
        f"A model of task {settings.task}{f' with {said}' if said else ''}"
        f"{scaled[settings.scale or None]}, "
        f"{certificate['n_samples']:,} rows of {settings.n_features:,} features"
        + (f", of which {certificate['n_support']:,} carry weight" if keeps_rows else "")
        + "."
    )


def _facts(
    settings: Settings, entries: Sequence[log.Entry], certificate: dict[str, Any]
) -> dict[str, Any]:
    facts: dict[str, Any] = {"Ids": f"column {settings.id_column}"}
    if settings.label_column:
        facts["Labels"] = f"column {settings.label_column}"
    columns = settings.features if isinstance(settings.features, list) else []
    categories = [c for c in columns if c["kind"] == "category"]
    if columns:
        names = [c["name"] for c in columns]
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        facts["Features"] = ", ".join(names[:_NAMED]) + more
    for column in categories:
        facts[f"Categories of {column['name']}"] = ", ".join(filter(None, column["values"]))
    held = certificate["held_fixed"]
    facts["Held fixed"] = ", ".join(f"{k} = {_brief(v)}" for k, v in held.items()) or "nothing"
    facts["Made"] = f"{_time(entries[0].body['time'])} UTC"
    facts["Last change"] = f"{_time(entries[-1].body['time'])} UTC, entry {entries[-1].seq}"
    facts["Head of the log"] = entries[-1].hash
    return facts


def _balance(left_out: LeftOut) -> list[Markup]:
    """How many rows each class has, and what the others would take them for."""
    if left_out.kind != "class" or left_out.labels is None:
        return []
    labels = [str(label) for label in left_out.labels]
    said = [str(label) for label in left_out.predictions]
    classes = sorted(set(labels) | set(said))
    pairs = Counter(zip(labels, said, strict=True))
    rows = [
        [
            name,
            f"{(n := labels.count(name)):,} ({n / len(labels):.0%})",
            *(pairs[name, other] for other in classes),
        ]
        for name in classes[:_CLASSES]
    ]
    told = [f"taken for {name}" for name in classes]
    return [
        section(
            "Classes",
            paragraph(
                "Rows by class, and what each would be taken for by the model without it (exact "
                "leave-one-out)."
            ),
            table(["class", "rows", *told], rows, numeric=("rows", *told)),
        )
    ]


def _history(entries: Sequence[log.Entry], task: Task) -> Markup:
    at = [entry.seq for entry in entries]
    times = [datetime.fromisoformat(entry.body["time"]) for entry in entries]
    after = [entry.body["certificate"]["after"] or {} for entry in entries]
    lines = {"rows": [float(item.get("n_samples", 0)) for item in after]}
    caption = "Rows over time (UTC), a step for each entry of the log"
    if task.keeps_rows:
        lines["support"] = [float(item.get("n_support", 0)) for item in after]
        caption = "Rows, and rows that carry weight, over time (UTC); a step for each log entry"
    parts = [figure(caption, steps(caption, at, times, lines))]
    sets = [entry.body["sets"] for entry in entries]
    if any(sets):
        lines = {
            name: [float((item or {}).get(name.lower(), 0)) for item in sets]
            for name in ("MARGIN", "ERROR", "RESERVE")
        }
        parts.append(
            figure(
                "The three sets: MARGIN decides the boundary, ERROR is at the bound, RESERVE has "
                f"no weight{_COUNTED_TWICE.get(task.target or '', '')}",
                steps("Sizes of the three sets over time", at, times, lines),
            )
        )
    return section("Over time", *parts)


def _doubts(left_out: LeftOut) -> Markup:
    """What the rows say of each other."""
    suspects = left_out.suspects(_SUSPECTS)
    parts = [paragraph(left_out.sentence())]
    labelled = left_out.labels is not None
    number = left_out.kind == "number"
    if suspects:
        by_how_much = "off by" if number else "margin"
        labels = ("stored", "predicted without it") if labelled else ()
        parts.append(paragraph(_DOUBTS[left_out.kind]))
        parts.append(
            table(
                ("id", *labels, by_how_much),
                [
                    [item["id"],
                     *((_brief(item["label"]), _brief(item["prediction"])) if labelled else ()),
                     doubt_text(item["margin"], left_out.kind)]
                    for item in suspects
                ],
                numeric=(by_how_much, *(labels if number else ())),
            )
        )  # fmt: skip
    return section("Left out one by one", *parts)


def doubt_text(margin: float | None, kind: str) -> str:
    """By how much a row is contradicted: its margin, or how far off its number is."""
    return "" if margin is None else f"{-margin if kind == 'number' else margin:.3f}"


# Sets are of rows of machines, of which a row of data may have several.
_COUNTED_TWICE: Final = {
    "class": " (summed over the machines of all pairs of classes)",
    "number": " (each row counts twice: as too high, and as too low)",
}
_DOUBTS: Final = {
    "class": "Rows most likely mislabelled: those that the model without them contradicts most.",
    "number": "Rows farthest from what the model without them predicts.",
    "one class": "Rows that the model without them would take for strangers, farthest first.",
}
_LOG_HEAD = ("entry", "time (UTC)", "operation", "rows", "residual", "reference", "hash")


def _log_row(entry: log.Entry) -> list[Any]:
    body = entry.body
    details = body["details"]
    after = body["certificate"]["after"] or {}
    counts = [
        f"{mark}{details[name]}"
        for name, mark in (("added", "+"), ("removed", "−"), ("revised", "~"))
        if details.get(name)
    ]
    if "file" in details:
        counts.append(str(details["file"]))
    return [
        entry.seq,
        _time(body["time"]),
        " ".join([entry.operation, *counts]),
        after.get("n_samples", 0),
        f"{after['residual']:.1e}" if after else "",
        body["reference"],
        entry.hash[:16],
    ]


def _time(text: str) -> str:
    return text[:19].replace("T", " ")


def _brief(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
