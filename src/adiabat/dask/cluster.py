# SPDX-License-Identifier: BSD-3-Clause
"""Where tasks run: on a client's cluster, or in threads of this process. Failures in plain words.

Tasks are pure, and what they need is in the graph: those of a lost worker run again elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any

import dask
from distributed import Client, KilledWorker, get_client
from distributed.comm import CommClosedError


def client_for(client: Any) -> Any:
    """The client to use; None if there is no cluster."""
    if client is None:
        try:
            client = get_client()
        except ValueError:
            return None
    if not isinstance(client, Client):
        raise TypeError(f"client={client!r} must be a distributed.Client, or None for the default")
    if client.status != "running":
        raise ConnectionError(
            f"client={client!r} is {client.status}: its scheduler cannot be reached. Connect a new "
            "distributed.Client and pass it as client"
        )
    return client


def compute(tasks: Sequence[Any], client: Any) -> list[Any]:
    """The results of some tasks, in their order."""
    with _in_plain_words():
        if client is None:
            return list(dask.compute(*tasks))
        found: list[Any] = client.gather(client.compute(list(tasks)))
        return found


def persist(tasks: Sequence[Any], client: Any) -> list[Any]:
    """The same tasks, computed once and kept where they ran."""
    with _in_plain_words():
        kept = dask.persist(*tasks) if client is None else client.persist(list(tasks))
        return list(kept)


@contextmanager
def _in_plain_words() -> Iterator[None]:
    try:
        yield
    except KilledWorker as error:
        raise RuntimeError(
            f"A task was lost with its worker again and again ({error.task}); the model is as it "
            "was. Workers that run out of memory are killed: use smaller partitions, or more "
            "memory for each worker"
        ) from error
    except (CommClosedError, TimeoutError, CancelledError) as error:
        raise ConnectionError(
            f"The cluster was lost on the way ({error}); the model is as it was. Connect a new "
            "distributed.Client and call again"
        ) from error
