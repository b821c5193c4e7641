# SPDX-License-Identifier: BSD-3-Clause
"""Threads read one store while another changes it: does every read match a committed state?

By hand, for the figure:  PYTHONPATH=tests python -m service.torn_reads --reads 100000
With --published reads ask the predictor that is published, as the service does, and no disk.
"""

import argparse
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import adiabat
from adiabat.store.encoding import encode_questions
from adiabat.store.tables import as_table
from store_tools import people

QUESTIONS = slice(1000, 1020)


@dataclass
class Found:
    reads: int
    torn: int
    raised: int
    states: int
    changes: int
    seconds: float


def torn_reads(store, reads, threads, most_seconds=600.0, published=False, least_states=1):
    """Read so often, over so many states, through `threads` threads while labels are turned."""
    questions = people(QUESTIONS.start, QUESTIONS.stop)
    states = {store.predictor.hash: store.predict(questions)["decision"]}
    seen, raised = [], []
    held = [store.predictor]
    _, X = encode_questions(as_table(questions), held[0].settings)
    stop = threading.Event()
    started = time.monotonic()

    def ask():
        mine = []
        while not stop.is_set():
            try:
                if published:
                    mine.append(held[0].decider.decision_function(X))
                else:
                    mine.append(store.predict(questions)["decision"])
            except Exception as error:
                raised.append(repr(error))
            enough = len(mine) >= reads // threads and len(states) >= least_states
            if enough or time.monotonic() - started > most_seconds:
                break
        seen.append(np.unique(np.array(mine), axis=0))
        counts.append(len(mine))

    counts = []
    askers = [threading.Thread(target=ask) for _ in range(threads)]
    for asker in askers:
        asker.start()
    frame, changes = people(0, 60), 0
    while any(asker.is_alive() for asker in askers):
        at = changes % 60
        row = frame[at : at + 1][["name", "good"]].copy()
        turned = changes // 60 % 2 == 0
        row["good"] = {"yes": "no", "no": "yes"}[row["good"].iloc[0]] if turned else row["good"]
        store.revise(row)
        changes += 1
        held[0] = store.predictor
        # Nobody else writes: this is the state that the change has left.
        states[store.predictor.hash] = store.predict(questions)["decision"]
    committed = np.array(list(states.values()))
    torn = 0
    for part in seen:
        for values in part:
            torn += not (committed == values).all(axis=1).any()
    return Found(sum(counts), torn, len(raised), len(states), changes, time.monotonic() - started)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--reads", type=int, default=100_000)
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--published", action="store_true")
    parser.add_argument("--seconds", type=float, default=1800.0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        store = adiabat.create_store(
            Path(folder) / "m", id="name", label="good", categories={"colour": None}, C=5.0,
            gamma=0.5,
        )  # fmt: skip
        store.learn(people(0, 60))
        found = torn_reads(store, given.reads, given.threads, given.seconds, given.published)
        print(found)


if __name__ == "__main__":
    main()
