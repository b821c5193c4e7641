# SPDX-License-Identifier: BSD-3-Clause
"""The page of models: what each is, how it stands, and what was last done to it."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.responses import Response
from markupsafe import Markup

from adiabat.errors import StoreError
from adiabat.service.pages.frame import Frame
from adiabat.service.served import ServedModel
from adiabat.store.charts import steps
from adiabat.store.log import Entry
from adiabat.store.report import certificate_text
from adiabat.store.tasks import TASKS

_LAST: Final = 5
_MOST_DRAWN: Final = 300


def add(app: FastAPI, frame: Frame) -> None:
    """The routes."""

    @app.get("/", include_in_schema=False)
    def get_models(request: Request) -> Response:
        """All models that the visitor may see."""
        visit = frame.enter(request)
        found = [
            described(model)
            for model in frame.gate.desk.models.values()
            if visit.who.sees(model.name)
        ]
        return frame.page(visit, "models.html", models=found)


def described(model: ServedModel) -> dict[str, Any]:
    """A model for its card; one that cannot be read says why."""
    try:
        info, entries = model.store.info(), model.store.log()
    except StoreError as error:
        return {"name": model.name, "damage": str(error)}
    certificate = info["certificate"]
    keeps_rows = TASKS[info["task"]].keeps_rows
    return {
        "name": model.name,
        "damage": None,
        "info": info,
        "good": certificate is None or certificate["ok"],
        "sentence": (
            "This model has learned nothing yet."
            if certificate is None
            else certificate_text(certificate, keeps_rows)
        ),
        "drawing": drawing(model.name, entries[-_MOST_DRAWN:]),
        "last": list(reversed(entries[-_LAST:])),
    }


def drawing(name: str, entries: list[Entry]) -> Markup:
    """The three sets after each entry, or the rows where a model has no sets."""
    at = [entry.seq for entry in entries]
    times = [datetime.fromisoformat(entry.body["time"]) for entry in entries]
    sets = [entry.body["sets"] for entry in entries]
    if any(sets):
        lines = {
            kind: [float((item or {}).get(kind.lower(), 0)) for item in sets]
            for kind in ("MARGIN", "ERROR", "RESERVE")
        }
        return Markup(
            steps(f"Sizes of the three sets of {name} after each entry", at, times, lines)
        )
    after = [entry.body["certificate"]["after"] or {} for entry in entries]
    lines = {"rows": [float(item.get("n_samples", 0)) for item in after]}
    return Markup(steps(f"Rows of {name} after each entry of its log", at, times, lines))
