# SPDX-License-Identifier: BSD-3-Clause
"""The k-th write fails, for every k: a clear error, and the store is intact.

Starts itself again with `failing_io.c` loaded before the C library, then runs each operation with
its 1st, 2nd, ... change of a file failing (disk full, I/O error; once, or from then on), until the
operation succeeds. `python tests/store/soaks/failing_io.py [--every 1]`; Linux with a C compiler.
"""

import argparse
import collections
import ctypes
import errno
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import adiabat

SHIM = Path(__file__).with_suffix(".c")
# What is not acknowledged may be there or not, but whole. These messages promise which.
UNCHANGED = "nothing was changed"
# The error, and whether all later writes fail too.
WAYS = [(errno.ENOSPC, 0), (errno.ENOSPC, 1), (errno.EIO, 0), (errno.EIO, 1)]
KEPT = ("the change is in the store", "is in the store, but")


def rows(start, stop):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 3))
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    return X[start:stop], y[start:stop]


def learn(store):
    X, y = rows(60, 75)
    store.learn(X, y, ids=range(60, 75))


OPERATIONS = {
    "learn": learn,
    "forget": lambda store: store.forget(["4", "9", "30"], reference="DSR-1"),
    "revise": lambda store: store.revise({"id": ["5", "6"], "y": [1, 0]}),
}


def snapshot(folder):
    store = adiabat.open_store(folder)
    result = store.verify()
    assert result.ok, result.problems
    return result.entries, tuple(store.ids), tuple(store.rows().labels.tolist())


def run(shim, every):
    library = ctypes.CDLL(str(shim))
    library.fail_arm.argtypes = [ctypes.c_char_p, ctypes.c_long, ctypes.c_int, ctypes.c_long]
    library.fail_count.restype = ctypes.c_long
    verdicts = collections.Counter()
    with tempfile.TemporaryDirectory() as place:
        pristine, folder = os.path.join(place, "pristine"), os.path.join(place, "model")
        X, y = rows(0, 60)
        adiabat.create_store(pristine, label="y", gamma=0.3).learn(X, y, ids=range(60))
        before = snapshot(pristine)
        for name, operation in OPERATIONS.items():
            for error, sticky in WAYS if every == 1 else WAYS[1:3]:
                k, tried = 1, 0
                while True:
                    shutil.rmtree(folder, ignore_errors=True)
                    shutil.copytree(pristine, folder)
                    store = adiabat.open_store(folder)
                    library.fail_arm(folder.encode(), k, error, sticky)
                    message = ""
                    try:
                        operation(store)
                    except adiabat.StoreError as caught:
                        message = str(caught)
                        assert message
                    reached = library.fail_count() >= k
                    library.fail_arm(folder.encode(), 0, 0, 0)
                    after = snapshot(folder)
                    same, label = after == before, f"{name} {errno.errorcode[error]}"
                    if not message:
                        # a failed note of who holds the lock, or of its end, does not matter
                        assert not same, f"{label} {k}: acknowledged and not there"
                        verdicts[f"{label}: acknowledged, there"] += reached
                    elif any(said in message for said in KEPT):
                        assert not same, f"{label} {k}: {message}"
                        verdicts[f"{label}: not acknowledged, said to be there, is"] += 1
                    else:
                        assert same and UNCHANGED in message, f"{label} {k}: {message}"
                        verdicts[f"{label}: refused, unchanged"] += 1
                    tried += 1
                    if not reached:
                        break
                    k += every
    for said, count in sorted(verdicts.items()):
        print(f"{count:5d}  {said}")
    print(f"{sum(verdicts.values())} failures, every store intact")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--every", type=int, default=1, help="try every so-manieth write")
    arguments = parser.parse_args()
    if "LD_PRELOAD" in os.environ:
        run(os.environ["LD_PRELOAD"], arguments.every)
        return
    with tempfile.TemporaryDirectory() as place:
        shim = os.path.join(place, "failing_io.so")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", shim, str(SHIM), "-ldl"], check=True)
        code = subprocess.run(
            [sys.executable, *sys.argv], env={**os.environ, "LD_PRELOAD": shim}, check=False
        )
    sys.exit(code.returncode)


if __name__ == "__main__":
    main()
