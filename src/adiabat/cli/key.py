# SPDX-License-Identifier: BSD-3-Clause
"""``adiabat key``: who may use a service, and for what."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Final

import typer

from adiabat.cli.options import Json
from adiabat.cli.output import show, working
from adiabat.service.keys import KeyRing

app = typer.Typer(help="Keys of a service: add, list, remove.", no_args_is_help=True)
_UNITS: Final = {"d": 86400.0, "h": 3600.0}

Folder = Annotated[
    str, typer.Option("--folder", "-f", metavar="FOLDER", help="The folder that is served.")
]


@app.command()
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Whose key it is; the log says it.")],
    scopes: Annotated[
        str, typer.Option(help="Of predict, review, erase, audit and admin, with commas.")
    ],
    folder: Folder = ".",
    model: Annotated[
        list[str] | None, typer.Option("--model", help="Only for this model; may be repeated.")
    ] = None,
    expires: Annotated[
        str | None, typer.Option(help="When it ends: 90d, 12h, or a date such as 2027-01-31.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Make a key. It is shown once, and kept nowhere."""
    with working("Making a key", as_json):
        key, text = KeyRing(folder).add(
            name,
            [scope.strip() for scope in scopes.split(",") if scope.strip()],
            model or (),
            None if expires is None else _time(expires),
        )
    result = {"key": text, "name": key.name, "scopes": list(key.scopes), "expires": key.expires}
    until = f", until {key.expires[:16].replace('T', ' ')} UTC" if key.expires else ""
    show(result, as_json, [
        text,
        f"The key of {key.name}: {', '.join(key.scopes)}{until}. It is shown this once.",
    ])  # fmt: skip


@app.command(name="list")
def list_keys(folder: Folder = ".", as_json: Json = False) -> None:
    """List the keys, without what opens anything."""
    with working("Reading", as_json):
        keys = KeyRing(folder).keys()
    lines = [
        f"{key.name}: {', '.join(key.scopes)}"
        + (f", for {', '.join(key.models)}" if key.models else "")
        + (f", until {key.expires[:16].replace('T', ' ')} UTC" if key.expires else "")
        + (" (over)" if key.is_over() else "")
        for key in keys
    ]
    result = {
        "keys": [
            {"name": key.name, "scopes": list(key.scopes), "models": list(key.models),
             "created": key.created, "expires": key.expires}
            for key in keys
        ]
    }  # fmt: skip
    show(result, as_json, lines or ["There are no keys."])


@app.command()
def remove(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Whose key to take away.")],
    folder: Folder = ".",
    as_json: Json = False,
) -> None:
    """Take a key away; it opens nothing from then on."""
    with working("Removing", as_json):
        key = KeyRing(folder).remove(name)
    show({"removed": key.name}, as_json, [f"The key of {key.name} opens nothing any more."])


def _time(text: str) -> datetime:
    if text[-1:] in _UNITS and text[:-1].isdigit():
        return datetime.now(UTC) + timedelta(seconds=int(text[:-1]) * _UNITS[text[-1]])
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"expires={text!r} must be a number of days or hours (90d, 12h), or a date"
        ) from None
    return found if found.utcoffset() is not None else found.replace(tzinfo=UTC)
