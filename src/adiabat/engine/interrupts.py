# SPDX-License-Identifier: BSD-3-Clause
"""Short sections that an interrupt must not cut in two."""

from __future__ import annotations

import signal
import threading
from typing import Any

# The functions that `signal` wraps: without its enumerations, which take longer than all the rest
# of a short section.
try:
    from _signal import SIGINT, getsignal  # type: ignore[import-not-found]
    from _signal import signal as set_handler
except ImportError:  # pragma: no cover
    from signal import SIGINT, getsignal
    from signal import signal as set_handler


class deferred_interrupts:
    """Hold Ctrl-C back until the block is through, then deliver it.

    Only the main thread receives signals, so elsewhere there is nothing to hold back.
    """

    def __enter__(self) -> Any:
        self._caught = False
        self._previous: Any = None
        if threading.get_ident() == threading.main_thread().ident:
            # None: installed by foreign code, not ours to replace
            self._previous = getsignal(SIGINT)
        if self._previous is not None:
            set_handler(SIGINT, self._catch)

    def _catch(self, number: int, frame: Any) -> None:
        self._caught = True

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if self._previous is not None:
            set_handler(SIGINT, self._previous)
            if self._caught:
                signal.raise_signal(signal.SIGINT)
