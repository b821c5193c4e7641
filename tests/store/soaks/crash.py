# SPDX-License-Identifier: BSD-3-Clause
"""kill -9 at random moments: no acknowledged operation is lost, none is half done.

A child works on a store and says through a pipe what it begins and what was acknowledged; the
parent kills it, opens the store, and compares. `python tests/store/soaks/crash.py --kills 1000`.
A kill does not lose what the operating system has taken; a power cut does, and is not simulated.
"""

import argparse
import json
import os
import random
import select
import signal
import tempfile
import time
from pathlib import Path

import numpy as np

import adiabat

FEATURES = 4


def row(name, label):
    """Features that follow from the name, so that parent and child agree on them."""
    rng = np.random.default_rng(abs(hash_of(name)))
    return rng.normal(size=FEATURES) + (0.8 if label else -0.8)


def hash_of(name):
    return int.from_bytes(name.encode()[-6:], "big")


def work(folder, seed, counter, pipe):
    """The child: random operations until the end."""
    rng = random.Random(seed)

    def say(kind, **fields):
        os.write(pipe, (json.dumps({"kind": kind, **fields}) + "\n").encode())

    store = adiabat.open_store(folder)
    labels = dict(zip(store.ids, store.rows().labels.tolist(), strict=True)) if len(store) else {}
    while True:
        choice = rng.random()
        if choice < 0.45 or len(labels) < 12:
            new = {f"n{counter + i:06d}": rng.randrange(2) for i in range(rng.randrange(1, 6))}
            counter += len(new)
            say("begin", operation="learn", new=new)
            X = np.array([row(name, label) for name, label in new.items()])
            done = store.learn(X, list(new.values()), ids=list(new))
            labels.update(new)
        elif choice < 0.8:
            gone = rng.sample(sorted(labels), rng.randrange(1, 4))
            say("begin", operation="forget", gone=gone)
            done = store.forget(gone, reference="soak")
            for name in gone:
                del labels[name]
        else:
            chosen = rng.sample(sorted(labels), 2)
            changed = {name: 1 - labels[name] for name in chosen}
            say("begin", operation="revise", new=changed)
            done = store.revise({"id": chosen, "y": list(changed.values())})
            labels.update(changed)
        say("done", seq=done.entry, hash=done.hash)


def applied(labels, operation):
    """The labels after an operation."""
    after = dict(labels)
    after.update(operation.get("new", {}))
    for name in operation.get("gone", ()):
        del after[name]
    return after


def one_kill(folder, rng, counter):
    """Start a child, kill it, and return what it said."""
    reader, writer = os.pipe()
    seed = rng.randrange(2**32)
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            work(folder, seed, counter, writer)
        finally:
            os._exit(1)
    os.close(writer)
    # Once in a while in the middle of opening, else in the middle of its work.
    said = b"" if rng.random() < 0.1 else os.read(reader, 65536)
    deadline = time.monotonic() + rng.uniform(0.0, rng.choice((0.05, 0.2, 0.8)))
    while (left := deadline - time.monotonic()) > 0:
        if select.select([reader], [], [], left)[0]:
            part = os.read(reader, 65536)
            if not part:
                raise AssertionError("the child ended by itself")
            said += part
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    while part := os.read(reader, 65536):
        said += part
    os.close(reader)
    return [json.loads(line) for line in said.decode().splitlines()]


def check(folder, said, labels):
    """The store after a kill is after the last acknowledged operation, or after the one begun."""
    acknowledged, begun = None, None
    for message in said:
        if message["kind"] == "begin":
            begun = message
        else:
            labels, acknowledged, begun = applied(labels, begun), message, None
    store = adiabat.open_store(folder)
    found = dict(zip(store.ids, store.rows().labels.tolist(), strict=True)) if len(store) else {}
    entries = store.log()
    if acknowledged:
        entry = entries[acknowledged["seq"] - 1]
        assert entry.hash == acknowledged["hash"], "an acknowledged entry is another"
    possible = [labels] if begun is None else [labels, applied(labels, begun)]
    assert found in possible, "the rows are neither those before nor those after"
    finished = begun is not None and found == possible[-1] and found != labels
    result = store.verify()
    assert result.ok, result.problems
    gone = {name for m in said for name in m.get("gone", ()) if name not in found}
    for path in Path(folder).iterdir():
        data = path.read_bytes()
        assert not [name for name in gone if name.encode() in data], f"erased id in {path.name}"
    return found, finished, sum(m["kind"] == "done" for m in said)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory() as place:
        folder = os.path.join(place, "model")
        adiabat.create_store(folder, label="y", C=2.0, gamma=0.2).close()
        labels, counter, done, halfway = {}, 0, 0, 0
        for kill in range(arguments.kills):
            said = one_kill(folder, rng, counter)
            counter += sum(len(m.get("new", ())) for m in said if m.get("operation") == "learn")
            labels, finished, count = check(folder, said, labels)
            done, halfway = done + count, halfway + finished
            if kill % 50 == 49:
                assert adiabat.open_store(folder).verify(retrain=True).ok
            if len(labels) > 150:
                adiabat.open_store(folder).forget(sorted(labels)[:100])
                labels = {name: labels[name] for name in sorted(labels)[100:]}
        print(
            f"{arguments.kills} kills, {done} operations acknowledged, all there; "
            f"{halfway} times the operation under way was found complete, never half"
        )


if __name__ == "__main__":
    main()
