# SPDX-License-Identifier: BSD-3-Clause
"""``adiabat info``: what a model is."""

from __future__ import annotations

from adiabat.cli.options import Json, Model, opened
from adiabat.cli.output import certificate_sentence, show, working
from adiabat.store.words import counted


def info(model: Model, as_json: Json = False) -> None:
    """Say what MODEL is and how it stands."""
    with working("Reading", as_json):
        found = opened(model).info()
    said = ", ".join(f"{name}={value}" for name, value in found["parameters"].items())
    lines = [
        f"{model}: {found['task']}" + (f" with {said}" if said else ""),
        f"{counted(found['rows'], 'row')} of {counted(found['features'], 'feature')}, "
        f"{found['entries']:,} log entr{'y' if found['entries'] == 1 else 'ies'}, "
        f"{found['bytes']:,} bytes",
        certificate_sentence(found["certificate"]),
    ]
    if found["classes"]:
        lines.insert(2, f"Classes: {', '.join(map(str, found['classes']))}")
    show(found, as_json, lines)
