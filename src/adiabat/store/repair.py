# SPDX-License-Identifier: BSD-3-Clause
"""A model that does not hold, fitted again from the rows that do."""

from __future__ import annotations

from adiabat.errors import StoreDamagedError
from adiabat.store.changes import fit_again
from adiabat.store.outcome import Outcome, Watch
from adiabat.store.session import Session
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
            try:
                count = fit_again(change)
            except (ValueError, TypeError, ArithmeticError, MemoryError) as error:
                raise StoreDamagedError(
                    f"{session.folder!r} cannot be repaired: no model can be fitted to its rows "
                    f"({error}); restore it from a copy"
                ) from error
            # Which checks failed, not in which words: a log holds no path and no value.
            failed = sorted({problem.partition(":")[0] for problem in verified.problems})
            change.body["details"] = {"refitted": count, "failed": failed}
        watch.end(change, found=verified.problems)
    return watch.outcome(change)
