# SPDX-License-Identifier: BSD-3-Clause
"""``adiabat retune``: other parameters for a model that has learned."""

from __future__ import annotations

from typing import Annotated

import typer

from adiabat.cli.options import (
    AllowUnsigned,
    DryRun,
    Json,
    Model,
    Reference,
    SigningKey,
    Wait,
    opened,
)
from adiabat.cli.outcomes import outcome_lines
from adiabat.cli.output import show, working
from adiabat.cli.parameters import as_parameter
from adiabat.errors import InputFileError


def retune(
    model: Model,
    c: Annotated[float | None, typer.Option("--C", help="Bound on a row's weight.")] = None,
    gamma: Annotated[str | None, typer.Option(help="Of the kernel: a number or scale.")] = None,
    kernel: Annotated[str | None, typer.Option(help="linear, rbf, poly, laplacian, chi2.")] = None,
    degree: Annotated[int | None, typer.Option(help="Of the polynomial kernel.")] = None,
    coef0: Annotated[float | None, typer.Option(help="Of the polynomial kernel.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="Half the width of the tube.")] = None,
    nu: Annotated[float | None, typer.Option(help="Share of outliers.")] = None,
    rho: Annotated[float | None, typer.Option(help="Price of the norm (lssvc, lssvr).")] = None,
    class_weight: Annotated[str | None, typer.Option(help="'balanced'.")] = None,
    refresh: Annotated[
        bool,
        typer.Option("--refresh", help="Take gamma, class weights from the rows now there."),
    ] = False,
    reference: Reference = None,
    dry_run: DryRun = False,
    wait: Wait = 10.0,
    signing_key: SigningKey = None,
    allow_unsigned: AllowUnsigned = False,
    as_json: Json = False,
) -> None:
    """Change parameters; the model follows the optimum there."""
    given = {
        "C": c, "gamma": as_parameter(gamma), "kernel": kernel, "degree": degree, "coef0": coef0,
        "epsilon": epsilon, "nu": nu, "rho": rho, "class_weight": class_weight,
    }  # fmt: skip
    parameters = {name: value for name, value in given.items() if value is not None}
    with working("Retuning", as_json):
        if refresh == bool(parameters):
            raise InputFileError("give parameters to change, or --refresh, and not both")
        store = opened(model, wait, signing_key, allow_unsigned)
        if refresh:
            done = store.refresh(reference=reference, dry_run=dry_run)
        else:
            done = store.retune(reference=reference, dry_run=dry_run, **parameters)
    show(done.to_dict(), as_json, outcome_lines(done))
