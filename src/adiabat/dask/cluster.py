# SPDX-License-Identifier: BSD-3-Clause
"""Where tasks run: on a client's cluster, or in threads of this process. Failures in plain words.

Tasks are pure, and what they need is in the graph: those of a lost worker run again elsewhere.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any, Final

import dask
from distributed import Client, KilledWorker, get_client, wait
from distributed.comm import CommClosedError

# How often to look whether there are workers, and how long there may be none.
_LOOK_SECONDS: Final = 2.0
_PATIENCE_SECONDS: Final = 300.0


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
        futures = client.compute(list(tasks))
        _wait(futures, client)
        found: list[Any] = client.gather(futures)
        return found


def _wait(futures: list[Any], client: Any) -> None:
    """Wait until all are done or one has failed, and not for workers that will not come back.

    Dask itself waits for ever if the last worker dies and is not started again.
    """
    waiting, lost_at = list(futures), None
    while waiting:
        try:
            done, left = wait(waiting, timeout=_LOOK_SECONDS, return_when="FIRST_COMPLETED")
        except TimeoutError:
            if client.status != "running" or client.scheduler_info()["workers"]:
                lost_at = None
                continue
            lost_at = lost_at or time.monotonic()
            if time.monotonic() - lost_at < _PATIENCE_SECONDS:
                continue
            client.cancel(futures)
            raise RuntimeError(
                f"client={client!r} has had no worker for {_PATIENCE_SECONDS:g} s; the model is as "
                "it was. Start workers and call again. Workers that run out of memory are killed: "
                "use smaller partitions, or more memory for each worker"
            ) from None
        if any(future.status != "finished" for future in done):
            return
        waiting = list(left)


def compute_sum(tasks: Sequence[Any], add: Callable[[Any, Any], Any], client: Any) -> Any:
    """The sum of the results of some tasks, added up in a tree; None is nothing."""
    both = dask.delayed(_added, pure=True)
    tree = list(tasks)
    while len(tree) > 1:
        pairs = [both(tree[k], tree[k + 1], add) for k in range(0, len(tree) - 1, 2)]
        tree = pairs + tree[2 * len(pairs) :]
    (found,) = compute(tree, client)
    return found


def _added(one: Any, other: Any, add: Callable[[Any, Any], Any]) -> Any:
    if one is None or other is None:
        return other if one is None else one
    return add(one, other)


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
