# SPDX-License-Identifier: BSD-3-Clause
"""The application: the list of its commands."""

from __future__ import annotations

import sys
from typing import Annotated

try:
    import typer
except ImportError:
    sys.exit("adiabat: the command line needs more packages; pip install 'adiabat[cli]'")

import adiabat
from adiabat import logs
from adiabat.cli import (
    backup,
    columns,
    cv,
    export,
    forget,
    info,
    init,
    key,
    learn,
    log,
    loo,
    predict,
    receipt,
    repair,
    report,
    restore,
    retune,
    revise,
    serve,
    verify,
)

app = typer.Typer(
    name="adiabat",
    help="Support vector machines that learn and unlearn, exactly.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

for _command in (
    init.init,
    learn.learn,
    forget.forget,
    revise.revise,
    retune.retune,
    predict.predict,
    loo.loo,
    cv.cv,
    verify.verify,
    repair.repair,
    log.log,
    receipt.receipt,
    report.report,
    export.export,
    backup.backup,
    restore.restore,
    info.info,
    serve.serve,
    columns.columns,
):
    app.command()(_command)
app.add_typer(key.app, name="key")


def _show_version(asked: bool) -> None:
    if asked:
        print(f"adiabat {adiabat.__version__}")
        raise typer.Exit


@app.callback()
def common(
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Say on standard error what takes how long.")
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show it.")
    ] = False,
) -> None:
    """Support vector machines that learn and unlearn, exactly."""
    if verbose:
        logs.show()


def run() -> None:
    """The console script."""
    app()
