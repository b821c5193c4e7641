# SPDX-License-Identifier: BSD-3-Clause
"""A call on an estimator changes all that it should, or nothing."""

from __future__ import annotations

from typing import Any


class all_or_nothing:
    """Give an estimator its attributes back if the block fails before its model has changed.

    An interrupt may also arrive just after the change was carried out; it then stays.
    """

    def __init__(self, estimator: Any) -> None:
        self._estimator = estimator

    def __enter__(self) -> None:
        self._before = dict(self._estimator.__dict__)
        self._state = self._model_state()
        self._tol = getattr(self._state[0], "tol", None)

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        model, version = self._model_state()
        changed = version != (self._state[1] if model is self._state[0] else 0)
        if kind is not None and not changed:
            self._estimator.__dict__.clear()
            self._estimator.__dict__.update(self._before)
            if self._tol is not None and self._state[0].tol != self._tol:
                self._state[0].tol = self._tol

    def _model_state(self) -> tuple[Any, int]:
        model = getattr(self._estimator, "_model", None)
        return model, 0 if model is None else model.version
