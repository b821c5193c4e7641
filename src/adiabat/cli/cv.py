# SPDX-License-Identifier: BSD-3-Clause
"""``adiabat cv``: exact cross-validation on the stored rows."""

from __future__ import annotations

from typing import Annotated

import typer

from adiabat.cli.options import Json, Model, opened
from adiabat.cli.output import show, working


def cv(
    model: Model,
    folds: Annotated[int, typer.Option(help="How many folds.", min=2)] = 5,
    scoring: Annotated[
        str | None, typer.Option(help="A score of scikit-learn; by default accuracy or r2.")
    ] = None,
    shuffle: Annotated[
        bool, typer.Option("--shuffle", help="Deal rows to folds at random, not in order.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Of --shuffle.")] = 0,
    positive_label: Annotated[
        str | None, typer.Option("--positive-label", help="The class that f1, recall, ... mean.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Cross-validate: each fold is unlearned from the model in turn."""
    with working(f"Leaving out {folds} folds", as_json):
        found = opened(model).cross_validate(
            folds=folds, scoring=scoring, shuffle=shuffle, seed=seed, positive_label=positive_label
        )
    show(
        found,
        as_json,
        [
            f"{found['scoring']} {found['mean']:.4f} ± {found['deviation']:.4f} on {folds} folds "
            f"of {found['rows']:,} rows, in {found['seconds']:.2f} s."
        ],
    )
