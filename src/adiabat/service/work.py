# SPDX-License-Identifier: BSD-3-Clause
"""What both the interface for programs and the pages do with a model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from fastapi.concurrency import run_in_threadpool

from adiabat.service.desk import Desk
from adiabat.service.jobs import Job, Progress
from adiabat.service.metrics import Metrics
from adiabat.service.problems import Problem, problem_of
from adiabat.service.served import Asked, Done, ServedModel
from adiabat.store.outcome import Outcome
from adiabat.store.predictions import predictions
from adiabat.store.predictor import Predictor
from adiabat.store.store import Store
from adiabat.store.tasks import plain

# Products of a prediction that are done at once, rather than in another thread.
_AT_ONCE: Final = 2_000_000
#: Seconds that a request waits for a job before it is told where to ask.
PATIENCE: Final = 1.0


class Work:
    """Changes, predictions and jobs on the models of a desk."""

    def __init__(self, desk: Desk, metrics: Metrics) -> None:
        self.desk = desk
        self.metrics = metrics

    async def change(
        self,
        model: ServedModel,
        operation: str,
        by: str,
        act: Callable[[Store], Outcome],
        request: str | None = None,
        ids: Sequence[Any] = (),
        content: bytes = b"",
    ) -> Done:
        """Have a change carried out by the model's writer, and wait for it."""
        asked = Asked(operation, by, request, act, ids, content)
        future = model.submit(asked)
        seconds = self.desk.settings.limits.seconds
        try:
            done = await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(future)), seconds)
        except TimeoutError:
            if future.cancel():
                raise Problem(
                    503,
                    f"It did not come to be done within {seconds:g} seconds; nothing was changed.",
                    {"Retry-After": "5"},
                ) from None
            raise Problem(
                504,
                f"It is still being done after {seconds:g} seconds; ask again with the same "
                "Idempotency-Key to learn how it ended.",
                {"Retry-After": "5"},
            ) from None
        except (ValueError, TypeError) as error:
            raise problem_of(error) or Problem(422, str(error)) from error
        if done.entry is not None and not done.replayed:
            self.metrics.changed(model.name, operation)
        return done

    async def predict(
        self, model: ServedModel, read: Callable[[Predictor], tuple[list[str] | None, Any]]
    ) -> tuple[Predictor, dict[str, Any]]:
        """Predictions by the predictor that is published now; all rows by the same."""
        predictor = model.predictor
        decider = predictor.require_fitted(model.name)
        ids, X = read(predictor)
        support = max(1, len(predictor.support))
        if X.shape[0] * support * max(1, X.shape[1]) <= _AT_ONCE:
            return predictor, predictions(decider, ids, X)
        return predictor, await run_in_threadpool(predictions, decider, ids, X)

    def left_out(self, model: ServedModel, by: str) -> Job | None:
        """The job that computes leave-one-out of the model as it is; None if that is there."""
        entry = model.predictor.entry
        if model.left_out is not None and model.left_out.entry >= entry:
            return None
        running = model.left_out_job
        if running is not None and not running.finished.is_set():
            return running

        def work(progress: Progress) -> dict[str, Any]:
            model.left_out = model.store.leave_one_out(
                hold_scaling=model.predictor.settings.scale is not None, progress=progress
            )
            return {"entry": model.left_out.entry}

        model.left_out_job = self.desk.jobs.begin("suspects", model.name, by, work)
        return model.left_out_job

    def verification(self, model: ServedModel, by: str, retrain: bool) -> Job:
        """A job that verifies the store."""

        def work(_: Progress) -> dict[str, Any]:
            found = model.store.verify(retrain=retrain).to_dict()
            model.verified = found
            return plain(found)  # type: ignore[no-any-return]

        return self.desk.jobs.begin("verification", model.name, by, work)


def answers(columns: dict[str, Any], in_full: bool) -> list[dict[str, Any]]:
    """Columns of predictions as a list of rows.

    In full, with decision values; else confidence is in whole percents. More digits of either tell
    whether a row is among those learned: support vectors are exactly on the margin.
    """
    ids = columns.get("id")
    found: list[dict[str, Any]] = []
    decisions = {
        name.removeprefix("decision").removeprefix("_"): np.asarray(values).tolist()
        for name, values in columns.items()
        if name.startswith("decision")
    }
    sure = columns.get("confidence")
    if sure is not None:
        sure = (sure if in_full else np.round(sure, 2)).tolist()
    for at, label in enumerate(plain(np.asarray(columns["prediction"]))):
        row: dict[str, Any] = {} if ids is None else {"id": ids[at]}
        row["label"] = label
        if sure is not None:
            row["confidence"] = sure[at]
        if in_full and decisions:
            values = {name: column[at] for name, column in decisions.items()}
            row["decision"] = values[""] if set(values) == {""} else values
        found.append(row)
    return found
