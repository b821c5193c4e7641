# SPDX-License-Identifier: BSD-3-Clause
"""``adiabat init``: a new model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from adiabat.cli.options import Decimal, Delimiter, Json, Model, SigningKey, SuppressionKey
from adiabat.cli.output import show, working
from adiabat.cli.parameters import as_parameter
from adiabat.errors import InputFileError
from adiabat.store import create_store

if TYPE_CHECKING:
    from adiabat.store.proposal import Proposal

# Those of `adiabat.store.tasks`, where they are imported with all that they need.
_TASKS: Final = (
    "svc", "svr", "one-class", "svdd", "lssvc", "lssvr", "kernel-lssvc", "kernel-lssvr"
)  # fmt: skip


# Tasks whose rows cannot be scaled, or filled, anew.
_AS_GIVEN: Final = ("kernel-lssvc", "kernel-lssvr")


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
    calibration: Annotated[
        str | None,
        typer.Option(help="For confidence (svc): sigmoid, isotonic or venn_abers."),
    ] = None,
    tol: Annotated[float | None, typer.Option(help="What the residual may not exceed.")] = None,
    from_file: Annotated[
        str | None,
        typer.Option("--from", metavar="FILE", help="A file whose columns say what the model has."),
    ] = None,
    id_column: Annotated[
        str | None, typer.Option("--id", help="Column with the ids; by default id.")
    ] = None,
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
    impute: Annotated[
        str | None,
        typer.Option(
            help="Fill gaps in numbers with their mean, median or most_frequent, and take new "
            "categories at any time."
        ),
    ] = None,
    signing_key: SigningKey = None,
    suppression_key: SuppressionKey = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    as_json: Json = False,
) -> None:
    """Make a new model in the folder MODEL."""
    given: dict[str, Any] = {
        "kernel": kernel, "C": c, "gamma": as_parameter(gamma), "degree": degree, "coef0": coef0,
        "epsilon": epsilon, "nu": nu, "rho": rho, "n_components": components, "seed": seed,
        "class_weight": class_weight, "calibration": calibration, "tol": tol,
    }  # fmt: skip
    parameters = {name: value for name, value in given.items() if value is not None}
    categories, ignored, lines = _categories(categorical or []), list(ignore or ()), []
    with working("Making the model", as_json):
        if from_file is not None:
            found = _look(from_file, delimiter, decimal, task, id_column, label, weight, ignored,
                          list(categories))  # fmt: skip
            lines = [f"{kind}: {name}{_noted(found.notes.get(name))}"
                     for name, kind in found.kinds.items()]  # fmt: skip
            id_column = found.id
            ignored = found.names("ignored")
            categories = {name: categories.get(name) for name in found.names("category")}
            mapped = task in ("lssvc", "lssvr") and kernel not in (None, "linear")
            if task not in _AS_GIVEN and not mapped:
                impute, scaling = impute or "median", scaling or "exact"
        store = create_store(
            model,
            task,
            id=id_column or "id",
            label=label,
            weight=weight,
            ignore=ignored,
            categories=categories,
            classes=None if classes is None else classes.split(","),
            scale=scaling or scale,
            impute=impute,
            signing_key=signing_key,
            suppression_key=suppression_key,
            **parameters,
        )
        head = store.log()[-1]
    taught = from_file or "FILE"
    show(
        {"model": model, "task": task, "parameters": parameters, "entry": 1, "hash": head.hash},
        as_json,
        [*lines, f"Made {model}: {task}. Teach it with: adiabat learn {model} {taught}"],
    )


def _look(
    path: str, delimiter: str | None, decimal: str | None, task: str, id_column: str | None,
    label: str | None, weight: str | None, ignored: list[str], categorical: list[str],
) -> Proposal:  # fmt: skip
    """What the columns of a file are; all that is wrong with them is one error."""
    from adiabat.store.proposal import propose
    from adiabat.store.tables import read_table

    text = [name for name in (id_column, label, *categorical) if name]
    table = read_table(path, text, delimiter, decimal)
    labelled = task not in ("one-class", "svdd")
    found = propose(table, id_column, label, weight, ignored, categorical, labelled)
    if found.problems:
        raise InputFileError(
            f"{path!r} cannot be learned as it is, and nothing was made: "
            + "; ".join(f"({n}) {problem}" for n, problem in enumerate(found.problems, 1))
        )
    return found


def _noted(note: str | None) -> str:
    return f" ({note})" if note else ""


def _categories(given: list[str]) -> dict[str, list[str] | None]:
    found: dict[str, list[str] | None] = {}
    for item in given:
        name, equals, values = item.partition("=")
        found[name] = values.split(",") if equals else None
    return found
