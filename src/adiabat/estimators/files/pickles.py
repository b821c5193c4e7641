# SPDX-License-Identifier: BSD-3-Clause
"""Pickles of estimators say their format, so that an older release refuses them in a sentence."""

from __future__ import annotations

from typing import Any, Final

#: Of what is pickled. A release reads this format and those before it.
PICKLE_FORMAT: Final = 1
_KEY: Final = "_pickle_format"


class Pickled:
    """What an estimator is pickled as: its attributes and the format they are in.

    A subclass that packs some of its attributes says how by `_packed` and `_unpack`.
    """

    def __getstate__(self) -> dict[str, Any]:
        return {**self._packed(), _KEY: PICKLE_FORMAT}

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        found = state.pop(_KEY, 0)  # before it was written
        if found > PICKLE_FORMAT:
            raise ValueError(
                f"the pickle of {type(self).__name__} has the format {found}, and this version of "
                f"adiabat reads up to {PICKLE_FORMAT}; upgrade adiabat, or write the model with "
                "this version"
            )
        self._unpack(state)

    def _packed(self) -> dict[str, Any]:
        return dict(self.__dict__)

    def _unpack(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
