# SPDX-License-Identifier: BSD-3-Clause
"""``adiabat init``: a new model."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer

from adiabat.cli.options import Json, Model, SigningKey, SuppressionKey
from adiabat.cli.output import show, working
from adiabat.cli.parameters import as_parameter
from adiabat.store import create_store

# Those of `adiabat.store.tasks`, where they are imported with all that they need.
_TASKS: Final = (
    "svc", "svr", "one-class", "svdd", "lssvc", "lssvr", "kernel-lssvc", "kernel-lssvr"
)  # fmt: skip


def init(
    model: Model,
    task: Annotated[str, typer.Option(help=f"What to learn: {', '.join(_TASKS)}.")] = "svc",
    kernel: Annotated[str | None, typer.Option(help="linear, rbf, poly, laplacian, chi2.")] = None,
    c: Annotated[float | None, typer.Option("--C", help="Bound on a row's weight.")] = None,
    gamma: Annotated[str | None, typer.Option(help="Of the kernel: a number or scale.")] = None,
    degree: Annotated[int | None, typer.Option(help="Of the polynomial kernel.")] = None,
    coef0: Annotated[float | None, typer.Option(help="Of the polynomial kernel.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="Half the width of the tube (svr).")] = None,
    nu: Annotated[float | None, typer.Option(help="Share of outliers (one-class).")] = None,
    rho: Annotated[float | None, typer.Option(help="Price of the norm (lssvc, lssvr).")] = None,
    components: Annotated[
        int | None, typer.Option(help="Random features of an rbf kernel (lssvc, lssvr).")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Of the random features.")] = None,
    class_weight: Annotated[str | None, typer.Option(help="'balanced'.")] = None,
    tol: Annotated[float | None, typer.Option(help="What the residual may not exceed.")] = None,
    id_column: Annotated[str, typer.Option("--id", help="Column with the ids.")] = "id",
    label: Annotated[str | None, typer.Option(help="Column with the labels.")] = None,
    weight: Annotated[str | None, typer.Option(help="Column with sample weights.")] = None,
    ignore: Annotated[list[str] | None, typer.Option(help="Column to leave out.")] = None,
    categorical: Annotated[
        list[str] | None,
        typer.Option(help="Column of text, COLUMN=a,b,c; or COLUMN: the first file fixes it."),
    ] = None,
    classes: Annotated[
        str | None, typer.Option(help="Labels that are allowed, a,b,c; by default any.")
    ] = None,
    scale: Annotated[
        bool, typer.Option("--scale", help="Standardise the features, following the rows.")
    ] = False,
    scaling: Annotated[
        str | None, typer.Option(help="exact, as --scale; or held, as the first file settles it.")
    ] = None,
    signing_key: SigningKey = None,
    suppression_key: SuppressionKey = None,
    as_json: Json = False,
) -> None:
    """Make a new model in the folder MODEL."""
    given: dict[str, Any] = {
        "kernel": kernel, "C": c, "gamma": as_parameter(gamma), "degree": degree, "coef0": coef0,
        "epsilon": epsilon, "nu": nu, "rho": rho, "n_components": components, "seed": seed,
        "class_weight": class_weight, "tol": tol,
    }  # fmt: skip
    parameters = {name: value for name, value in given.items() if value is not None}
    with working("Making the model", as_json):
        store = create_store(
            model,
            task,
            id=id_column,
            label=label,
            weight=weight,
            ignore=ignore or (),
            categories=_categories(categorical or []),
            classes=None if classes is None else classes.split(","),
            scale=scaling or scale,
            signing_key=signing_key,
            suppression_key=suppression_key,
            **parameters,
        )
        head = store.log()[-1]
    show(
        {"model": model, "task": task, "parameters": parameters, "entry": 1, "hash": head.hash},
        as_json,
        [f"Made {model}: {task}. Teach it with: adiabat learn {model} FILE"],
    )


def _categories(given: list[str]) -> dict[str, list[str] | None]:
    found: dict[str, list[str] | None] = {}
    for item in given:
        name, equals, values = item.partition("=")
        found[name] = values.split(",") if equals else None
    return found
