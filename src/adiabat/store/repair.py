# SPDX-License-Identifier: BSD-3-Clause
"""A model that does not hold, fitted again from the rows that do."""

from __future__ import annotations

from typing import Any

import numpy as np

from adiabat.errors import StoreDamagedError
from adiabat.store import records
from adiabat.store.outcome import Outcome, Watch
from adiabat.store.session import Change, Session
from adiabat.store.tasks import TASKS
from adiabat.store.verification import verify


def repair(session: Session, reference: str | None) -> Outcome:
    """Fit the model again if it alone does not hold; what was found, and what was done."""
    watch = Watch("repair", False)
    verified = verify(session, retrain=False, public_key=None)
    if not verified.ok and not verified.repairable:
        raise StoreDamagedError(
            f"{session.folder!r} cannot be repaired: not only its model is damaged "
            f"({verified.problems[0]}); restore it from a copy"
        )
    with session.changing("repair", reference, afresh=not verified.ok) as change:
        watch.begin(change)
        change.idle = verified.ok
        if not verified.ok:
            count = fit_again(change)
            # Which checks failed, not in which words: a log holds no path and no value.
            failed = sorted({problem.partition(":")[0] for problem in verified.problems})
            change.body["details"] = {"refitted": count, "failed": failed}
        watch.end(change, found=verified.problems)
    return watch.outcome(change)


def fit_again(change: Change) -> int:
    """Teach the change's estimator, which has learned nothing, all rows; how many."""
    held = list(records.read_all(change.connection))
    if held:
        rows = records.as_rows(held, change.settings.n_features)
        numbers = np.array([record.number for record in held], dtype=np.int64)
        task: Any = TASKS[change.settings.task]
        task.learn(change.model, numbers, rows.X, rows.labels, rows.weights)
    return len(held)
