# SPDX-License-Identifier: BSD-3-Clause
"""A desk behind a port."""

from __future__ import annotations

import gc
import sys
from typing import Any, Final

import uvicorn

from adiabat.engine.threads import limit_threads, n_cpus, n_threads
from adiabat.errors import StoreError
from adiabat.service.access import is_loopback
from adiabat.service.app import make_app
from adiabat.service.desk import Desk
from adiabat.service.logs import log_to_stderr

# A thread that computes gives way to one that answers after so long, rather than after 5 ms.
_SWITCH_SECONDS: Final = 0.0005
_STOP_SECONDS: Final = 30
# Clients let go of an idle connection after 5 to 60 seconds. If the service did so first, a request
# could be on its way to a connection that is being closed, and would be lost without an answer.
_IDLE_SECONDS: Final = 75


def serve(
    folder: str, host: str = "127.0.0.1", port: int = 8000, *, log_json: bool = False, **keys: Any
) -> None:
    """Serve a folder until the process is told to stop.

    Raises `StoreError` where it would listen beyond this computer and nobody would need a key.
    """
    desk = Desk(folder, **keys)
    if not is_loopback(host) and not (desk.keys.keys() or desk.settings.proxy_secret):
        desk.close()
        raise StoreError(
            f"host={host!r} is reached from other machines, and {folder!r} has no key; make one "
            "with adiabat key add, or listen on 127.0.0.1"
        )
    log_to_stderr(log_json)
    sys.setswitchinterval(_SWITCH_SECONDS)
    config = uvicorn.Config(
        make_app(desk),
        host=host,
        port=port,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=_IDLE_SECONDS,
        timeout_graceful_shutdown=_STOP_SECONDS,
        # httptools, which Uvicorn would take if it were there, has no limit for headers.
        http="h11",
        h11_max_incomplete_event_size=64 * 1024,
        ws="none",
        backlog=1024,
    )
    # One CPU is left to those who ask: with both of two CPUs in updates, p99 of a prediction while
    # changes ran was 3.8 times that in quiet, with one 1.9 times (service.evidence latency).
    # What is there by now stays: the garbage collector need not look at it again and again.
    gc.freeze()
    gc.enable()
    with limit_threads(min(n_threads(), max(1, n_cpus() - 1))):
        uvicorn.Server(config).run()
