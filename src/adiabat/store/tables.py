# SPDX-License-Identifier: BSD-3-Clause
"""Files of rows in and out: CSV, Excel, Parquet, Feather and svmlight, by the ending of the name.

Reading is strict. What cannot be taken as it is raises `InputFileError`, which names the file, the
line or row, the column and the remedy, and never quotes more than the one value at fault.
"""

from __future__ import annotations

import codecs
import csv
import io
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import scipy.sparse as sp

from adiabat.errors import InputFileError
from adiabat.inputs import memory_limit, require_memory
from adiabat.store.excel import read_excel, write_excel
from adiabat.store.words import did_you_mean, printable

FORMATS: Final[dict[str, str]] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".xlsx": "excel",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".feather": "feather",
    ".arrow": "feather",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
}
# What a spreadsheet takes for the beginning of a formula.
_FORMULAS: Final = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
_FORMULA_SPACES: Final = ("\t", "\r", "\n")
_PART_BYTES: Final = 1 << 20
#: Standard input or output in the place of a path.
STREAM: Final = "-"
_PACKED: Final = (".gz", ".zst", ".bz2")
_COMMA: Final = re.compile(r"[-+]?\d*,\d+(e[-+]?\d+)?", re.IGNORECASE)
_POINT: Final = re.compile(r"[-+]?\d*\.\d+(e[-+]?\d+)?", re.IGNORECASE)
_DATES: Final = [pa.csv.ISO8601, "%d.%m.%Y"]


@dataclass
class Table:
    """Rows of a file, or of a data frame.

    `columns` are Arrow arrays by name. A svmlight file has none; it has `sparse`, the features, and
    `targets`, and its ids (in the column ``id``, if it has any) are the comments of its lines.
    """

    name: str
    format: str
    n: int
    columns: dict[str, Any] = field(default_factory=dict)
    sparse: Any = None
    targets: npt.NDArray[np.float64] | None = None
    delimiter: str = ","

    def place(self, row: int) -> str:
        """Where a row stands: the line of a text file, counted from 1, or the row of another."""
        if self.format == "csv":
            return f"line {_csv_line(self.name, self.delimiter, row)}"
        if self.format == "svmlight":
            return f"line {_svmlight_lines(self.name)[row][0]}"
        return f"row {row + 1}"

    def column(self, name: str, what: str) -> Any:
        """A column; `what` says in the error what it is for."""
        if name not in self.columns:
            known = ", ".join(map(repr, list(self.columns)[:10]))
            raise InputFileError(
                f"{self.name!r} has no column {name!r} ({what}); its columns are {known}"
                + did_you_mean(name, self.columns)
            )
        return self.columns[name]


def format_of(path: str, purpose: str = "read") -> str:
    """The format of a file by the ending of its name; of a CSV, .gz or .zst is passed over.

    The standard streams (``-``) have CSV.
    """
    if path == STREAM:
        return "csv"
    base, packed = os.path.splitext(path)
    if packed.lower() not in _PACKED:
        base = path
    ending = os.path.splitext(base)[1].lower()
    if ending not in FORMATS or (base != path and FORMATS[ending] != "csv"):
        raise InputFileError(
            f"{path!r} cannot be {purpose}: its ending is none of {', '.join(FORMATS)}; rename it"
        )
    return FORMATS[ending]


def read_table(
    path: str,
    text: Sequence[str] = (),
    delimiter: str | None = None,
    decimal: str | None = None,
) -> Table:
    """Read a file.

    Parameters
    ----------
    path : str
        The file; ``-`` is standard input.
    text : sequence of str
        Columns to take as text, as they are written: ids, labels, categories.
    delimiter : str, optional
        Of a CSV file; by default what its header has: a comma, a semicolon, a tab or a bar.
    decimal : {".", ","}, optional
        Before the fraction of a number in a CSV file; by default a comma where values are separated
        by semicolons and a number has one, and a point elsewhere.
    """
    kind = format_of(path)
    if path != STREAM and not os.path.isfile(path):
        raise InputFileError(f"{path!r} is not a file; check the path")
    if not len(_stdin()) if path == STREAM else os.path.getsize(path) == 0:
        raise InputFileError(f"{path!r} is empty: not even a header; check how it was written")
    if kind == "svmlight":
        return _read_svmlight(path)
    if kind == "csv":
        _require_utf8(path)
        delimiter = delimiter or ("\t" if ".tsv" in path.lower() else _header_delimiter(path))
        decimal = decimal or ("," if delimiter == ";" and _has_commas(path) else ".")
        arrow = _read_csv(path, text, delimiter, decimal)
    elif kind == "excel":
        delimiter, arrow = ",", read_excel(path)
    else:
        delimiter = ","
        try:
            if kind == "parquet":
                declared = pa.parquet.read_metadata(path)
                size = 8 * declared.num_rows * declared.num_columns
                require_memory(size, f"{declared.num_rows} rows")
            arrow = (pa.parquet if kind == "parquet" else pa.feather).read_table(path)
        except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
            raise InputFileError(
                f"{path!r} cannot be read as {kind} ({_first_line(error)}); it may be truncated: "
                "copy it again"
            ) from error
    if arrow.num_rows == 0:
        raise InputFileError(f"{path!r} has columns, but no rows; check how it was written")
    return _table(path, kind, arrow, delimiter)


def as_table(source: Any) -> Table:
    """A data frame (pandas, polars, Arrow) or a mapping of columns as a table."""
    if isinstance(source, Table):
        return source
    if isinstance(source, pa.Table):
        arrow = source
    elif isinstance(source, Mapping):
        arrow = pa.table(dict(source))
    elif hasattr(source, "iloc") and hasattr(source, "columns"):
        # pandas; its index is no column
        arrow = pa.Table.from_pandas(source, preserve_index=False)
    elif hasattr(source, "__arrow_c_stream__"):
        arrow = pa.table(source)
    else:
        raise TypeError(
            f"data is a {type(source).__name__}; pass the path of a file, a data frame, or an "
            "array X together with ids"
        )
    return _table("data", "frame", arrow, ",")


def write_table(path: str, columns: Mapping[str, Any]) -> None:
    """Write columns to a file; in svmlight the prediction is the target, others are features."""
    kind = format_of(path, "written")
    if kind == "svmlight":
        _write_svmlight(path, columns)
        return
    arrow = pa.table(dict(columns))
    if kind == "csv":
        arrow = pa.table({_cell(name): _cells(arrow[name]) for name in arrow.column_names})
        options = pa.csv.WriteOptions(
            delimiter="\t" if ".tsv" in path.lower() else ",", quoting_style="needed"
        )
        if path == STREAM:
            memory = pa.BufferOutputStream()
            pa.csv.write_csv(arrow, memory, options)
            sys.stdout.write(memory.getvalue().to_pybytes().decode())
            return
        with pa.output_stream(path) as stream:
            pa.csv.write_csv(arrow, stream, options)
    elif kind == "excel":
        write_excel(path, arrow)
    elif kind == "parquet":
        pa.parquet.write_table(arrow, path)
    else:
        pa.feather.write_feather(arrow, path)


def _cells(column: Any) -> Any:
    """A column of a CSV; text that a spreadsheet would compute stands behind an apostrophe."""
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return column
    return pa.array([None if text is None else _cell(text) for text in column.to_pylist()])


def _cell(text: str) -> str:
    if not text.lstrip().startswith(_FORMULAS) and text[:1] not in _FORMULA_SPACES:
        return text
    try:
        float(text)  # a number with a sign is no formula
    except ValueError:
        return f"'{text}"
    return text


# -- CSV ---------------------------------------------------------------------------------------


def _read_csv(path: str, text: Sequence[str], delimiter: str, decimal: str) -> pa.Table:
    ragged: list[Any] = []

    def note(row: Any) -> str:
        ragged.append(row)
        return "error"

    try:
        with _opened(path) as stream:
            return pa.csv.read_csv(
                stream,
                read_options=pa.csv.ReadOptions(use_threads=False),
                parse_options=pa.csv.ParseOptions(
                    delimiter=delimiter, invalid_row_handler=note, newlines_in_values=True
                ),
                convert_options=pa.csv.ConvertOptions(
                    column_types={name: pa.string() for name in text},
                    strings_can_be_null=False,
                    decimal_point=decimal,
                    timestamp_parsers=_DATES,
                ),
            )
    except (pa.ArrowException, OSError) as error:
        if ragged:
            row = ragged[0]
            raise InputFileError(
                f"{path!r} has {row.actual_columns} values where its header has "
                f"{row.expected_columns} columns, on line {_ragged_line(path, delimiter)}; "
                "put values that contain the delimiter in quotes"
            ) from error
        raise InputFileError(
            f"{path!r} cannot be read as CSV in UTF-8 ({_first_line(error)}); write it anew"
        ) from error


def _opened(path: str) -> Any:
    """A file to read, unpacked by the ending of its name; ``-`` is standard input."""
    return pa.BufferReader(_stdin()) if path == STREAM else pa.input_stream(path)


def _read_part(stream: Any) -> bytes:
    """The next bytes of a file. Arrow's own `read` keeps its memory for ever where it fails."""
    part = bytearray(_PART_BYTES)
    return bytes(memoryview(part)[: stream.readinto(part)])


def _stdin() -> bytes:
    """All of standard input: it is read more than once where a line is to be named."""
    return _content(sys.stdin.buffer)


@lru_cache(maxsize=1)
def _content(stream: Any) -> bytes:
    content: bytes = stream.read()
    return content


def _header_delimiter(path: str) -> str:
    """What separates the names of the columns."""
    with _opened(path) as stream:
        header = _read_part(stream).split(b"\n", 1)[0].decode(errors="replace")
    if "," in header:
        return ","
    return max((";", "\t", "|"), key=header.count) if set(header) & set(";\t|") else ","


def _has_commas(path: str) -> bool:
    """Whether numbers have a decimal comma, and none a point."""
    with _opened(path) as stream:
        part = _read_part(stream).decode(errors="replace")
    fields = [field for line in part.splitlines()[1:] for field in line.split(";")]
    commas = any(_COMMA.fullmatch(field.strip()) for field in fields)
    return commas and not any(_POINT.fullmatch(field.strip()) for field in fields)


def _require_utf8(path: str) -> None:
    """Name the line that is not UTF-8: Arrow does not, and may print a traceback of its own."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    line, total = 1, 0
    try:
        with _opened(path) as stream:
            while part := _read_part(stream):
                if line == 1 and part[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
                    raise InputFileError(f"{path!r} is in UTF-16; save it in UTF-8")
                decoder.decode(part)
                line += part.count(b"\n")
                total += len(part)
                if total > memory_limit():
                    raise InputFileError(
                        f"{path!r} is longer than the memory allows once it is unpacked; split it"
                    )
            decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        line += error.object[: error.start].count(b"\n")
        raise InputFileError(
            f"{path!r} is not in UTF-8, on line {line}; save it in UTF-8 (if it is text: it may be "
            "in Latin-1 or Windows-1252)"
        ) from error
    except (pa.ArrowException, OSError) as error:
        raise InputFileError(
            f"{path!r} cannot be read ({_first_line(error)}); copy it again"
        ) from error


def _csv_rows(path: str, delimiter: str) -> Any:
    """(last line, values) of every row that is not blank, the header first."""
    with _opened(path) as stream:
        text = io.TextIOWrapper(io.BufferedReader(stream), "utf-8-sig", "replace", newline="")
        reader = csv.reader(text, delimiter=delimiter)
        for values in reader:
            if values:
                yield reader.line_num, values


def _csv_line(path: str, delimiter: str, row: int) -> int:
    for number, (line, _) in enumerate(_csv_rows(path, delimiter)):
        if number == row + 1:
            return int(line)
    return row + 2


def _ragged_line(path: str, delimiter: str) -> int:
    width = None
    for line, values in _csv_rows(path, delimiter):
        if width is None:
            width = len(values)
        elif len(values) != width:
            return int(line)
    return 1


# -- svmlight ----------------------------------------------------------------------------------


def _svmlight_lines(path: str) -> list[tuple[int, str]]:
    """(line, comment) of every line that holds a row."""
    found = []
    with open(path, encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, start=1):
            data, _, comment = line.partition("#")
            if data.strip():
                found.append((number, comment.strip()))
    return found


def _read_svmlight(path: str) -> Table:
    from sklearn.datasets import load_svmlight_file  # seconds, which other formats need not wait

    try:
        features, targets = load_svmlight_file(path)
    except (ValueError, OverflowError, OSError) as error:
        raise InputFileError(
            f"{path!r} cannot be read as svmlight ({_first_line(error)}); each line is "
            "'target index:value index:value # id'"
        ) from error
    lines = _svmlight_lines(path)
    named = any(comment for _, comment in lines)
    for number, comment in lines if named else ():
        if not comment:
            raise InputFileError(f"{path!r} has no id on line {number}; end each line with '# id'")
    columns = {"id": pa.array([comment for _, comment in lines], pa.string())} if named else {}
    table = Table(path, "svmlight", len(lines), columns, sp.csr_array(features), targets)
    table.sparse.sum_duplicates()
    return table


def _write_svmlight(path: str, columns: Mapping[str, Any]) -> None:
    predictions = np.asarray(columns["prediction"])
    try:
        targets = predictions.astype(np.float64)
    except ValueError as error:
        raise InputFileError(
            f"{path!r} cannot hold labels that are text: svmlight has numbers only; choose .csv"
        ) from error
    decisions = [values for name, values in columns.items() if name.startswith("decision")]
    comments = [""] * len(targets)
    if "id" in columns:  # an end of a line within an id would begin another row
        comments = [f" # {printable(name)}" for name in columns["id"]]
    with open(path, "w", encoding="utf-8") as file:
        for target, comment, *values in zip(targets.tolist(), comments, *decisions, strict=True):
            pairs = "".join(f" {k}:{value:.17g}" for k, value in enumerate(values, start=1))
            file.write(f"{target:.17g}{pairs}{comment}\n")


# -- all -----------------------------------------------------------------------------------------


def _table(path: str, kind: str, arrow: pa.Table, delimiter: str) -> Table:
    names = arrow.column_names
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputFileError(f"{path!r} has the column {twice[0]!r} twice; rename one of them")
    columns = {name: arrow.column(i).combine_chunks() for i, name in enumerate(names)}
    return Table(path, kind, arrow.num_rows, columns, delimiter=delimiter)


def _first_line(error: BaseException) -> str:
    # Arrow quotes the offending row after a colon; rows do not belong into messages.
    return str(error).splitlines()[0].split(": ")[0][:200] if str(error) else type(error).__name__
