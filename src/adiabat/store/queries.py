# SPDX-License-Identifier: BSD-3-Clause
"""Rows of a database: what a query gives, as a table."""

from __future__ import annotations

import decimal
from typing import Any

import pyarrow as pa
import sqlalchemy as sa

from adiabat.errors import InputFileError


def read_query(url: str, query: str) -> pa.Table:
    """The rows of a query, or of a table by its name. Errors do not repeat the URL's password."""
    try:
        engine = sa.create_engine(url)
        with engine.connect() as connection:
            statement = sa.text(query)
            if len(query.split()) == 1:
                statement = sa.text(f"SELECT * FROM {sa.sql.quoted_name(query, True)}")
            found = connection.execute(statement)
            names, rows = list(found.keys()), found.fetchall()
        engine.dispose()
    except (sa.exc.SQLAlchemyError, ImportError, ValueError) as error:
        said = str(getattr(error, "orig", None) or error).splitlines()[0]
        raise InputFileError(
            f"the query cannot be carried out ({said}); check URL and query"
        ) from error
    if not rows:
        raise InputFileError("the query gives no rows; check it against the database")
    columns = [pa.array([_plain(row[j]) for row in rows]) for j in range(len(names))]
    return pa.Table.from_arrays(columns, names)


def _plain(value: Any) -> Any:
    return float(value) if isinstance(value, decimal.Decimal) else value
