# SPDX-License-Identifier: BSD-3-Clause
"""Excel files: the first sheet of a workbook, its first row the names of the columns."""

from __future__ import annotations

import zipfile
from typing import Any

import pyarrow as pa

from adiabat.errors import InputFileError


def read_excel(path: str) -> pa.Table:
    """The first sheet as a table; formulas have the values that they had when it was saved."""
    openpyxl = _openpyxl()
    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        rows = [list(row) for row in book.worksheets[0].iter_rows(values_only=True)]
        book.close()
    except (zipfile.BadZipFile, KeyError, ValueError, OSError, IndexError) as error:
        raise InputFileError(
            f"{path!r} cannot be read as Excel ({type(error).__name__}); save it as .xlsx again"
        ) from error
    rows = [row for row in rows if any(value is not None for value in row)]
    if not rows:
        raise InputFileError(f"{path!r} is empty: its first sheet has no header")
    names = ["" if name is None else str(name) for name in rows[0]]
    if not all(names):
        raise InputFileError(
            f"{path!r} has no name for column {names.index('') + 1} of its first sheet; name the "
            "column, or delete it"
        )
    columns = []
    for place in range(len(names)):
        values = [row[place] for row in rows[1:]]
        try:
            columns.append(pa.array(values, from_pandas=True))
        except (pa.ArrowInvalid, pa.ArrowTypeError):  # text beside numbers
            columns.append(pa.array([None if v is None else _text(v) for v in values], pa.string()))
    return pa.Table.from_arrays(columns, names)


def write_excel(path: str, table: pa.Table) -> None:
    """Write a table to the first sheet of a new workbook."""
    book = _openpyxl().Workbook(write_only=True)
    sheet = book.create_sheet()
    sheet.append(table.column_names)
    for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
        # a cell of text that begins with '=' is a formula to a spreadsheet
        sheet.append([f"'{v}" if isinstance(v, str) and v[:1] in "=+-@" else v for v in row])
    book.save(path)


def _text(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value == int(value) else str(value)


def _openpyxl() -> Any:
    try:
        import openpyxl
    except ImportError as error:
        raise ImportError(
            "Excel files need openpyxl, which is not installed; pip install 'adiabat[excel]'"
        ) from error
    return openpyxl
