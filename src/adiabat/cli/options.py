# SPDX-License-Identifier: BSD-3-Clause
"""Arguments and options that several commands share, so that each reads the same everywhere."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from adiabat.cli.output import announce
from adiabat.errors import InputFileError
from adiabat.store import open_store

if TYPE_CHECKING:
    from adiabat.store.store import Store

#: The environment's variable that says under which key every model must be signed.
PUBLIC_KEY: Final = "ADIABAT_PUBLIC_KEY"

Model = Annotated[str, typer.Argument(metavar="MODEL", help="The folder of the model.")]
File = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="Rows: .csv or .tsv (also .gz, .zst), .xlsx, .parquet, .feather, .svmlight; - is "
        "standard input.",
    ),
]
FileOrQuery = Annotated[
    str | None,
    typer.Argument(metavar="FILE", help="Rows, as a file or - (CSV from standard input)."),
]
Sql = Annotated[
    tuple[str, str] | None,
    typer.Option(
        "--sql", metavar="URL QUERY", help="Rows of a database instead: a query, or a table's name."
    ),
]
Decimal = Annotated[
    str | None, typer.Option("--decimal", help="Before the fraction of numbers in a CSV: . or ,")
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
AllowUnsigned = Annotated[
    bool,
    typer.Option("--allow-unsigned", help="Pass over a signing key where the model is not signed."),
]
PublicKey = Annotated[
    str | None,
    typer.Option(
        "--public-key",
        envvar=PUBLIC_KEY,
        help="Ed25519 public key (PEM); the log must be signed under it.",
    ),
]
SuppressionKey = Annotated[
    str | None,
    typer.Option(
        "--suppression-key",
        envvar="ADIABAT_SUPPRESSION_KEY",
        help="File with the key of the marks of erased ids, if that is kept outside.",
    ),
]
HoldScaling = Annotated[
    bool,
    typer.Option(
        "--hold-scaling", help="Leave rows out of the model, not of its scaling: much faster."
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite OUT if it is there.")]
Out = Annotated[str, typer.Option("--out", "-o", metavar="OUT", help="The file to write.")]


def require_free(path: str, force: bool) -> None:
    """Refuse to overwrite a file, which may be the input or another result, unless asked to."""
    if not force and os.path.lexists(path) and not os.path.isdir(path):
        raise InputFileError(
            f"{path!r} is there already; choose another name, or overwrite it with --force"
        )


def source(file: str | None, sql: tuple[str, str] | None) -> Any:
    """Where rows come from: a file, or a database."""
    if (file is None) == (sql is None):
        raise typer.BadParameter("give FILE, or --sql URL QUERY, and not both")
    if sql is None:
        return file
    from adiabat.store.queries import read_query

    return read_query(*sql)


def opened(
    model: str,
    wait: float = 10.0,
    signing_key: str | None = None,
    allow_unsigned: bool = False,
    suppression_key: str | None = None,
    public_key: str | None = None,
) -> Store:
    """The store of a command's MODEL; a public key in the environment holds for every command."""
    return open_store(
        model,
        wait=wait,
        signing_key=signing_key,
        public_key=public_key or os.environ.get(PUBLIC_KEY),
        suppression_key=suppression_key,
        allow_unsigned=allow_unsigned,
        announce=announce,
    )
