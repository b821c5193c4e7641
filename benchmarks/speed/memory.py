# SPDX-License-Identifier: BSD-3-Clause
"""Does a model of 50,000 rows and about 2,000 support vectors fit in 4 GB?

Fits, unlearns and learns back a hundred support vectors, learns rows beyond the room there was, and
certifies, with the peak of resident memory after each. Heavy: a minute or so.

    python -m benchmarks.speed.memory [--rows N]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence

import numpy as np
from sklearn.datasets import make_classification

from adiabat import SVC
from benchmarks import machine
from benchmarks.tables import Table, console, write_markdown

ROWS, MORE = 50_000, 500
LIMIT_GB = 4.0
GB = 1e9


def main(given: Sequence[str] | None = None) -> int:
    """Measure, print, write; the exit status is 1 if the limit was passed."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.speed.memory", description=(__doc__ or "").split("\n\n")[0]
    )
    parser.add_argument("--rows", type=int, default=ROWS, help=f"default {ROWS}")
    n = parser.parse_args(given).rows
    screen = console()
    X, y = make_classification(
        n + MORE, 20, n_informative=8, flip_y=0.006, class_sep=2.0, random_state=0
    )
    model = SVC(C=1.0, gamma=1.0 / 40.0)
    table = Table(
        f"Memory with {n:,} rows",
        ("step", "s", "rows", "support", "columns GB", "peak GB", "rounds", "residual"),
    )
    peaks = [machine.peak_mib() * machine.MIB / GB]
    table.add("data in memory", "", f"{n:,}", "", "", f"{peaks[0]:.2f}", "", "")

    def step(name: str, action: Callable[[], object]) -> None:
        machine.forget_peak()
        started = time.perf_counter()
        action()
        seconds = time.perf_counter() - started
        peaks.append(machine.peak_mib() * machine.MIB / GB)
        found = model.last_update_.certificate
        table.add(
            name,
            f"{seconds:.2f}",
            f"{found.n_samples:,}",
            f"{found.n_support:,}",
            f"{model._model.solver.samples.gram.nbytes / GB:.2f}",
            f"{peaks[-1]:.2f}",
            model.last_update_.rounds,
            f"{found.residual:.0e}",
        )

    step("fit", lambda: model.fit(X[:n], y[:n]))
    support = model.ids_[model.support_]
    chosen = np.random.default_rng(0).choice(support, min(100, len(support)), replace=False)
    step(f"unlearn {len(chosen)}", lambda: model.forget(chosen))
    step("learn them back", lambda: model.partial_fit(X[chosen], y[chosen], ids=chosen))
    step(f"learn {MORE} more", lambda: model.partial_fit(X[n:], y[n:]))
    step("certificate, all afresh", model.certificate)
    met = max(peaks) <= LIMIT_GB
    table.note = f"peak {max(peaks):.2f} GB, limit {LIMIT_GB:g} GB {'✓' if met else '✗'}"
    table.show(screen)
    path = write_markdown("memory", "Memory", machine.description(), [table])
    screen.print(f"written to {path.parent.name}/", style="dim")
    return 0 if met else 1


if __name__ == "__main__":
    raise SystemExit(main())
