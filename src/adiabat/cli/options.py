# SPDX-License-Identifier: BSD-3-Clause
"""Arguments and options that several commands share, so that each reads the same everywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from adiabat.cli.output import announce
from adiabat.store import open_store

if TYPE_CHECKING:
    from adiabat.store.store import Store

Model = Annotated[str, typer.Argument(metavar="MODEL", help="The folder of the model.")]
File = Annotated[
    str, typer.Argument(metavar="FILE", help="Rows: .csv, .tsv, .parquet, .feather or .svmlight.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would move.")]
Reference = Annotated[
    str | None, typer.Option("--reference", help="Why: a ticket or request, kept in the log.")
]
Delimiter = Annotated[
    str | None, typer.Option("--delimiter", help="Between the values of a CSV file.")
]
Wait = Annotated[
    float, typer.Option("--wait", help="Seconds to wait for another process.", min=0.0)
]
SigningKey = Annotated[
    str | None,
    typer.Option(
        "--signing-key",
        envvar="ADIABAT_SIGNING_KEY",
        help="Ed25519 key (PEM) of a model that signs its log.",
    ),
]
HoldScaling = Annotated[
    bool,
    typer.Option(
        "--hold-scaling", help="Leave rows out of the model, not of its scaling: much faster."
    ),
]
Out = Annotated[str, typer.Option("--out", "-o", metavar="OUT", help="The file to write.")]


def opened(model: str, wait: float = 10.0, signing_key: str | None = None) -> Store:
    """The store of a command's MODEL."""
    return open_store(model, wait=wait, signing_key=signing_key, announce=announce)
