# SPDX-License-Identifier: BSD-3-Clause
"""``adiabat predict``: labels or values for new rows."""

from __future__ import annotations

from typing import Annotated

import typer

from adiabat.cli.options import (
    Decimal,
    Delimiter,
    FileOrQuery,
    Force,
    Json,
    Model,
    Sql,
    opened,
    require_free,
    source,
)
from adiabat.cli.output import show, working
from adiabat.store.words import counted


def predict(
    model: Model,
    file: FileOrQuery = None,
    out: Annotated[
        str | None,
        typer.Option(
            "--out", "-o", metavar="OUT", help="The file to write; by default they are printed."
        ),
    ] = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    sql: Sql = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Predict the rows of FILE, into OUT or on standard output (CSV)."""
    with working(f"Predicting {file or 'the query'}", as_json):
        from adiabat.store.tables import STREAM, format_of, write_table

        store = opened(model)
        to_file = out is not None and out != STREAM
        if out is not None and to_file:
            store.require_outside(out)
            require_free(out, force)
        columns = store.predict(source(file, sql), delimiter=delimiter, decimal=decimal)
        if out is None or format_of(out, "written") != "svmlight":
            own = store.settings.id_column
            columns = {own if name == "id" else name: item for name, item in columns.items()}
        count = len(columns["prediction"])
        if to_file:
            write_table(str(out), columns)
        elif not as_json:
            write_table(STREAM, columns)
    if to_file:
        said = {"rows": count, "out": out}
        show(said, as_json, [f"Wrote {counted(count, 'prediction')} to {out}."])
    elif as_json:
        show({"rows": count, "columns": _listed(columns)}, as_json, [])


def _listed(columns: dict[str, object]) -> dict[str, object]:
    """Columns as lists."""
    return {
        name: values.tolist() if hasattr(values, "tolist") else list(values)  # type: ignore[call-overload]
        for name, values in columns.items()
    }
