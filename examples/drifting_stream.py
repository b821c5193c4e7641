# SPDX-License-Identifier: BSD-3-Clause
"""A window that is as long as the concept lasts: ADWIN says how long, each step is one update.

python examples/drifting_stream.py        (needs the extra `river`)

Where the world changes, a long memory is wrong and a short one is poor. River's ADWIN watches the
mistakes and cuts its own window where their rate has changed; the model's window follows it. What
is cut off is unlearned exactly, in the same step in which the new sample is learned.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from river import drift

from adiabat import SVC
from adiabat.retention import Window

STEPS, CONCEPT, LEAST, MOST = 1200, 400, 30, 1000


def stream(steps: int, concept: int) -> Iterator[tuple[Any, int]]:
    """Two moons' worth of trouble: after each concept the two classes change places."""
    rng = np.random.default_rng(7)
    for step in range(steps):
        x = rng.uniform(-2.0, 2.0, 2)
        inside = float(x @ x) < 2.0
        flipped = (step // concept) % 2 == 1
        yield x, int(inside != flipped)


def follow(steps: int, concept: int, length: int | None) -> tuple[float, list[int], SVC]:
    """Rate of mistakes, lengths of the window and the model; `length` None leaves it to ADWIN."""
    model = SVC(C=10.0, gamma=1.0, retain=Window(length or MOST))
    watcher = drift.ADWIN(delta=0.02)
    mistakes, lengths = 0, []
    for x, y in stream(steps, concept):
        row = x[None]
        wrong = bool(lengths) and int(model.predict(row)[0]) != y
        mistakes += wrong
        watcher.update(float(wrong))
        if length is None and watcher.drift_detected:
            # from here on as long as ADWIN's window is, and growing with it
            model.set_params(retain=Window(int(np.clip(watcher.width, LEAST, MOST))))
        elif length is None and len(lengths):
            model.set_params(retain=Window(min(MOST, model.retain.size + 1)))
        report = model.update(row, [y])
        assert report.certificate.ok
        lengths.append(report.certificate.n_samples)
    return mistakes / steps, lengths, model


def main(steps: int = STEPS, concept: int = CONCEPT) -> dict[str, float]:
    """Print, and return, the rates of mistakes."""
    rates = {}
    for name, length in (("last 50", 50), ("last 1000", 1000), ("ADWIN", None)):
        rates[name], lengths, model = follow(steps, concept, length)
        print(
            f"{name:>10}: {rates[name]:6.1%} mistakes, window of {min(lengths[concept:])} to "
            f"{max(lengths)}; {model.certificate()}"
        )
    return rates


if __name__ == "__main__":
    main()
