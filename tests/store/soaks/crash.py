# SPDX-License-Identifier: BSD-3-Clause
"""Signals at random moments: no acknowledged operation is lost, none is half done, nothing is left.

A child learns, forgets, revises, retunes and exports, and says through a pipe what it begins and
what was acknowledged. The parent sends it a signal, opens the store, and compares.

    python tests/store/soaks/crash.py --signal kill --times 1000     # or term, int, stop

A child that is stopped is asked about by others meanwhile, goes on, and is killed in the end. A
signal does not lose what the operating system has taken; a power cut does, and is not simulated.
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
from adiabat.store import connection as database

FEATURES = 4
SIGNALS = {
    "kill": signal.SIGKILL,
    "term": signal.SIGTERM,
    "int": signal.SIGINT,
    "stop": signal.SIGSTOP,
}


def row(name, label):
    """Features that follow from the name, so that parent and child agree on them."""
    rng = np.random.default_rng(int.from_bytes(name.encode()[-6:], "big"))
    return rng.normal(size=FEATURES) + (0.8 if label else -0.8)


def work(place, seed, counter, pipe):
    """The child: random operations until the end."""
    rng = random.Random(seed)

    def say(kind, **fields):
        os.write(pipe, (json.dumps({"kind": kind, **fields}) + "\n").encode())

    store = adiabat.open_store(f"{place}/model")
    labels = dict(zip(store.ids, store.rows().labels.tolist(), strict=True)) if len(store) else {}
    try:
        while True:
            done = operate(store, rng, labels, counter, place, say)
            counter += len(done.pop("new", ()))
            say("done", **done)
    except KeyboardInterrupt:
        # The handle is as good as before, whatever was under way.
        say("interrupted", ok=bool(store.verify().ok))


def operate(store, rng, labels, counter, place, say):
    """One operation, said before; what is to be said of it after."""
    choice = rng.random()
    new = {}
    if choice < 0.35 or len(labels) < 12:
        new = {f"n{counter + i:06d}": rng.randrange(2) for i in range(rng.randrange(1, 6))}
        say("begin", operation="learn", new=new)
        X = np.array([row(name, label) for name, label in new.items()])
        done = store.learn(X, list(new.values()), ids=list(new))
        labels.update(new)
    elif choice < 0.6:
        gone = rng.sample(sorted(labels), rng.randrange(1, 4))
        say("begin", operation="forget", gone=gone)
        done = store.forget(gone, reference="soak")
        for name in gone:
            del labels[name]
    elif choice < 0.75:
        chosen = rng.sample(sorted(labels), 2)
        changed = {name: 1 - labels[name] for name in chosen}
        say("begin", operation="revise", new=changed)
        done = store.revise({"id": chosen, "y": list(changed.values())})
        labels.update(changed)
    elif choice < 0.85:
        C = rng.choice([1.0, 2.0, 4.0])
        say("begin", operation="retune", C=C)
        done = store.retune(C=C)
    else:
        form = rng.choice(["adiabat", "sklearn"])
        name = f"{rng.randrange(3)}.{form}"
        say("begin", operation="export", file=name)
        found = store.export(f"{place}/out/{name}", format=form)
        return {"seq": found["entry"], "hash": found["hash"], "new": new}
    return {"seq": done.entry, "hash": done.hash, "new": new}


def applied(state, operation):
    """Labels and C after an operation."""
    labels, C = dict(state[0]), operation.get("C", state[1])
    labels.update(operation.get("new", {}))
    for name in operation.get("gone", ()):
        del labels[name]
    return labels, C


def one_signal(place, rng, counter, which):
    """Start a child, send it a signal, and return what it said."""
    reader, writer = os.pipe()
    seed = rng.randrange(2**32)
    child = os.fork()
    if child == 0:
        os.close(reader)
        # what a shell starts in the background ignores interrupts, and its children with it
        signal.signal(signal.SIGINT, signal.default_int_handler)
        code = 1
        try:
            work(place, seed, counter, writer)
            code = 0
        finally:
            os._exit(code)
    os.close(writer)
    # Once in a while in the middle of opening, else in the middle of its work.
    said = b"" if rng.random() < 0.1 and which != "int" else os.read(reader, 65536)
    said += heard(reader, rng.uniform(0.0, rng.choice((0.05, 0.2, 0.8))))
    os.kill(child, SIGNALS[which])
    if which == "stop":
        ask_meanwhile(place)
        os.kill(child, signal.SIGCONT)
        said += heard(reader, rng.uniform(0.0, 0.3))
        os.kill(child, signal.SIGKILL)
    status = ended(child, again=which == "int")
    while part := os.read(reader, 65536):
        said += part
    os.close(reader)
    messages = [json.loads(line) for line in said.decode().splitlines()]
    if which == "int":
        assert os.waitstatus_to_exitcode(status) == 0, "an interrupt was not heard as one"
        assert messages[-1] == {"kind": "interrupted", "ok": True}
    return messages


def ended(child, again):
    """The status of a child; an interrupt that Python dropped in a callback is sent again."""
    waited = time.monotonic()
    while again:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return status
        if time.monotonic() - waited > 2.0:
            os.kill(child, signal.SIGINT)
            waited = time.monotonic()
        time.sleep(0.005)
    return os.waitpid(child, 0)[1]


def heard(reader, seconds):
    """What the child says within some time."""
    said = b""
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        if select.select([reader], [], [], left)[0]:
            part = os.read(reader, 65536)
            if not part:
                raise AssertionError("the child ended by itself")
            said += part
    return said


def ask_meanwhile(place):
    """Others are told who is at it, or that the store is busy; they break nothing."""
    before, database.BUSY_SECONDS = database.BUSY_SECONDS, 0.2
    try:
        store = adiabat.open_store(f"{place}/model", wait=0.05)
        store.ids  # noqa: B018
        store.forget("nobody", missing="ignore")
    except adiabat.StoreError as error:
        assert "is being changed by" in str(error) or "is using the store" in str(error), error
    finally:
        database.BUSY_SECONDS = before


def check(place, said, state):
    """The store is as after the last acknowledged operation, or after the one begun."""
    acknowledged, begun = None, None
    files = {path.name for path in Path(place, "out").iterdir()}
    assert not [name for name in files if name.startswith(".")], "a temporary file outside"
    for message in said:
        if message["kind"] == "begin":
            begun = message
        elif message["kind"] == "done":
            state, acknowledged, begun = applied(state, begun), message, None
    store = adiabat.open_store(f"{place}/model")
    found = dict(zip(store.ids, store.rows().labels.tolist(), strict=True)) if len(store) else {}
    now = found, store.settings.parameters["C"]
    entries = store.log()
    if acknowledged:
        entry = entries[acknowledged["seq"] - 1]
        assert entry.hash == acknowledged["hash"], "an acknowledged entry is another"
    possible = [state] if begun is None else [state, applied(state, begun)]
    assert now in possible, "the rows are neither those before nor those after"
    finished = begun is not None and now == possible[-1] and now != state
    result = store.verify()
    assert result.ok, result.problems
    left = set(os.listdir(store.path)) - {"store.sqlite", "lock"}
    assert not left, f"{left} is left behind"
    logged = {e.body["details"]["file"] for e in entries if e.operation == "export"}
    assert files <= logged, "an export that is not in the log"
    for name in files:
        if name.endswith(".adiabat"):
            adiabat.load(f"{place}/out/{name}")  # whole, since it is there
    gone = {name for m in said for name in m.get("gone", ()) if name not in found}
    for path in Path(store.path).iterdir():
        data = path.read_bytes()
        assert not [name for name in gone if name.encode() in data], f"erased id in {path.name}"
    return now, finished, sum(m["kind"] == "done" for m in said)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--signal", choices=SIGNALS, default="kill")
    parser.add_argument("--times", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory() as place:
        os.mkdir(f"{place}/out")
        adiabat.create_store(f"{place}/model", label="y", C=2.0, gamma=0.2).close()
        state, counter, done, halfway = ({}, 2.0), 0, 0, 0
        for number in range(arguments.times):
            said = one_signal(place, rng, counter, arguments.signal)
            counter += sum(len(m.get("new", ())) for m in said if m.get("operation") == "learn")
            state, finished, count = check(place, said, state)
            done, halfway = done + count, halfway + finished
            if number % 50 == 49:
                assert adiabat.open_store(f"{place}/model").verify(retrain=True).ok
            labels = state[0]
            if len(labels) > 150:
                adiabat.open_store(f"{place}/model").forget(sorted(labels)[:100])
                state = {name: labels[name] for name in sorted(labels)[100:]}, state[1]
        print(
            f"{arguments.times} times {arguments.signal}, {done} operations acknowledged, all "
            f"there; {halfway} times the operation under way was found complete, never half; "
            "nothing left behind"
        )


if __name__ == "__main__":
    main()
