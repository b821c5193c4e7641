# SPDX-License-Identifier: BSD-3-Clause
"""``adiabat serve``: models behind HTTP, for programs and for people."""

from __future__ import annotations

import gc
import os
from typing import Annotated

import typer

from adiabat.cli.options import PUBLIC_KEY, AllowUnsigned, SigningKey, SuppressionKey
from adiabat.cli.output import working


def serve(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="A model, or a folder of them.")],
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port.", min=0, max=65535)] = 8000,
    log_json: Annotated[bool, typer.Option("--log-json", help="Log JSON lines.")] = False,
    signing_key: SigningKey = None,
    allow_unsigned: AllowUnsigned = False,
    suppression_key: SuppressionKey = None,
) -> None:
    """Serve models over HTTP: an interface for programs, and pages for people."""
    with working("Starting"):
        gc.disable()  # until it listens: a tenth of the time to start, and what is made stays
        try:
            from adiabat.service.server import serve as run
        except ImportError as error:
            raise ImportError(
                f"serving needs {error.name}, which is not installed; pip install "
                "'adiabat[service]'"
            ) from error
        run(
            folder,
            host,
            port,
            log_json=log_json,
            signing_key=signing_key,
            public_key=os.environ.get(PUBLIC_KEY),
            suppression_key=suppression_key,
            allow_unsigned=allow_unsigned,
        )
