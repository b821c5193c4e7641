# SPDX-License-Identifier: BSD-3-Clause
"""A call on an estimator changes all that it should, or nothing."""

from __future__ import annotations

from typing import Any, Self

from adiabat.engine.interrupts import deferred_interrupts


class all_or_nothing:
    """Roll estimators back if the block fails before its change is committed."""

    def __init__(self, *estimators: Any) -> None:
        self._estimators = estimators
        self._committed = False

    def __enter__(self) -> Self:
        self._before = [dict(estimator.__dict__) for estimator in self._estimators]
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is not None and not self._committed:
            with deferred_interrupts():
                self._rollback()

    def _rollback(self) -> None:
        for estimator, attributes in zip(self._estimators, self._before, strict=True):
            estimator.__dict__.clear()
            estimator.__dict__.update(attributes)
