# SPDX-License-Identifier: BSD-3-Clause
"""``adiabat predict``: labels or values for new rows."""

from __future__ import annotations

from adiabat.cli.options import Delimiter, File, Force, Json, Model, Out, opened, require_free
from adiabat.cli.output import show, working
from adiabat.store.words import counted


def predict(
    model: Model,
    file: File,
    out: Out,
    delimiter: Delimiter = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Predict the rows of FILE into OUT."""
    with working(f"Predicting {file}", as_json):
        from adiabat.store.tables import write_table

        store = opened(model)
        store.require_outside(out)
        require_free(out, force)
        columns = store.predict(file, delimiter=delimiter)
        write_table(out, columns)
    count = len(columns["prediction"])
    show({"rows": count, "out": out}, as_json, [f"Wrote {counted(count, 'prediction')} to {out}."])
