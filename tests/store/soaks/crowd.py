# SPDX-License-Identifier: BSD-3-Clause
"""Processes with many threads each on one store: every answer is that of some acknowledged state.

Threads learn, forget and revise rows of their own, and ask meanwhile. In the end the store holds
what they left, and verifies. `python tests/store/soaks/crowd.py --operations 10000`.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import threading
import traceback

import numpy as np

import adiabat

FEATURES = 3
QUESTIONS = {f"x{k}": np.linspace(-1, 1, 7) for k in range(FEATURES)}


def row(name, label):
    rng = np.random.default_rng(int.from_bytes(name.encode()[-6:], "big"))
    return rng.normal(size=FEATURES) + (0.8 if label else -0.8)


class Thread(threading.Thread):
    """Random operations on rows whose ids begin with the thread's own name."""

    def __init__(self, store, name, count, seed):
        super().__init__()
        self.store, self.own, self.count = store, name, count
        self.rng = random.Random(seed)
        self.labels, self.made, self.writes, self.fault = {}, 0, 0, None

    def run(self):
        try:
            for _ in range(self.count):
                self.step()
        except BaseException:
            self.fault = traceback.format_exc()

    def step(self):
        choice = self.rng.random()
        if choice < 0.12 or (choice < 0.3 and len(self.labels) < 3):
            self.writes += 1
            names = [f"{self.own}{self.made + k:05d}" for k in range(self.rng.randrange(1, 3))]
            self.made += len(names)
            new = {name: self.rng.randrange(2) for name in names}
            X = np.array([row(name, label) for name, label in new.items()])
            self.store.learn(X, list(new.values()), ids=names)
            self.labels.update(new)
        elif choice < 0.24 and self.labels:
            self.writes += 1
            gone = self.rng.choice(sorted(self.labels))
            self.store.forget(gone)
            del self.labels[gone]
        elif choice < 0.3 and self.labels:
            self.writes += 1
            chosen = self.rng.choice(sorted(self.labels))
            self.store.revise({"id": [chosen], "y": [1 - self.labels[chosen]]})
            self.labels[chosen] = 1 - self.labels[chosen]
        elif choice < 0.34 and self.labels:
            done = self.store.forget(sorted(self.labels)[:1], dry_run=True)
            assert done.removed == 1 and done.entry is None
        elif choice < 0.85:
            assert np.isfinite(self.store.predict(QUESTIONS)["decision"]).all()
        elif choice < 0.97:
            found = self.store.info()
            assert found["certificate"]["ok"]
            assert found["certificate"]["n_samples"] == found["rows"], "torn"
        else:
            mine = {name for name in self.store.ids if name.startswith(self.own)}
            assert mine == set(self.labels), "rows of one's own are not there, or too many"


def crowd(folder, process, threads, count, seed):
    """One process: its threads on one `Store`."""
    store = adiabat.open_store(folder, wait=600.0)
    each = [
        Thread(store, f"p{process}t{k}-", count // threads, 1000 * seed + 100 * process + k)
        for k in range(threads)
    ]
    for thread in each:
        thread.start()
    for thread in each:
        thread.join()
    faults = [thread.fault for thread in each if thread.fault]
    if faults:
        sys.exit(faults[0])
    left = {name: label for thread in each for name, label in thread.labels.items()}
    found = dict(zip(store.ids, store.rows().labels.tolist(), strict=True))
    for name, label in left.items():
        assert found[name] == label, f"{name} has another label"
    print(sum(thread.writes for thread in each), len(left))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--operations", type=int, default=10_000)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--child", nargs=2, metavar=("FOLDER", "PROCESS"))
    arguments = parser.parse_args()
    share = arguments.operations // arguments.processes
    if arguments.child:
        folder, process = arguments.child
        crowd(folder, int(process), arguments.threads, share, arguments.seed)
        return
    with tempfile.TemporaryDirectory() as place:
        folder = os.path.join(place, "model")
        store = adiabat.create_store(folder, label="y", C=2.0, gamma=0.2)
        X = np.random.default_rng(0).normal(size=(20, FEATURES))
        store.learn(X, np.arange(20) % 2, ids=[f"base{k}" for k in range(20)])
        common = [sys.executable, __file__, *sys.argv[1:]]
        running = [
            subprocess.Popen(
                [*common, "--child", folder, str(k)], stdout=subprocess.PIPE, text=True
            )
            for k in range(arguments.processes)
        ]
        told = [process.communicate()[0] for process in running]
        assert all(process.returncode == 0 for process in running), "a process failed"
        writes, left = (sum(int(said.split()[k]) for said in told) for k in (0, 1))
        found = store.verify(retrain=True)
        assert found.ok, found.problems
        assert found.rows == left + 20 and found.entries == writes + 2, "a change was lost"
        print(
            f"{arguments.processes} processes with {arguments.threads} threads each, "
            f"{arguments.operations} operations, {writes} of them changes: all there, {found.rows} "
            "rows, verified"
        )


if __name__ == "__main__":
    main()
