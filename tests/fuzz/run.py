# SPDX-License-Identifier: BSD-3-Clause
"""Fuzzing: no crash, no hang, no more memory than declared, no exception but the promised ones.

`python -m fuzz.run --inputs 100000` with `tests` on the path (`make fuzz`). Inputs are drawn by
Hypothesis in processes of their own, each under a limit on memory and with the input at hand on
disk: one that takes its process down is known. What breaks a promise is kept in `corpus`, which the
test suite replays.
"""

import argparse
import collections
import hashlib
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CORPUS = Path(__file__).parent / "corpus"
SHARES = {"model": 0.5, "csr": 0.3, "table": 0.1, "store": 0.1}
#: Processor time of one input: other work on the machine is no fault of the input. One that waits
#: for ever takes none, and is noticed by the clock.
SECONDS = 5.0
#: Inputs of one process; a crash costs no more than these.
BATCH = 2000
_SLACK = 96 << 20  # what a process takes from time to time whatever it reads
#: A thread's own heap would reserve 64 MiB of addresses, which count as memory here.
ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "PYTHONFAULTHANDLER": "1", "MALLOC_ARENA_MAX": "1"}


class Hang(BaseException):
    """An input took longer than allowed."""


def alarmed(*_):
    raise Hang


def child(target, seed, count, folder):
    """Draw and try inputs; a line of JSON for each fault, and the verdicts at the end."""
    import warnings

    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import seed as seeded

    from adiabat import inputs as limits
    from adiabat.store import tables

    from fuzz.inputs import TARGETS
    from fuzz.targets import DECLARED, Bench

    warnings.simplefilter("ignore")
    bench = Bench(folder)
    limits.memory_limit = tables.memory_limit = lambda: DECLARED
    attempt = getattr(bench, target)
    verdicts = collections.Counter()
    faults = []
    signal.signal(signal.SIGPROF, alarmed)
    limited = False

    @seeded(seed)
    @settings(
        max_examples=count, database=None, deadline=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(TARGETS[target])
    def each(drawn):
        nonlocal limited
        if not limited and sum(verdicts.values()) == 30:  # all that is loaded lazily is there
            held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            most = held + 2 * DECLARED + _SLACK
            resource.setrlimit(resource.RLIMIT_AS, (most, most))
            limited = True
        with open(f"{folder}/current.json", "w") as file:
            json.dump([target, drawn], file)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            verdicts[attempt(drawn)] += 1
        except (Exception, Hang) as error:
            signal.setitimer(signal.ITIMER_PROF, 0)
            verdicts["FAULT"] += 1
            faults.append([f"{type(error).__name__}: {error}"[:300], drawn])
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)

    each()
    print(json.dumps({"verdicts": verdicts, "faults": faults}))


def keep(target, drawn):
    """Put an input into the corpus."""
    text = json.dumps([target, drawn], sort_keys=True)
    name = f"{target}-{hashlib.sha256(text.encode()).hexdigest()[:12]}.json"
    (CORPUS / name).write_text(text + "\n", "utf-8")
    return name


def run(target, seed, count):
    """One process; (verdicts, faults as sentences)."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            "-m",
            "fuzz.run",
            "--child",
            target,
            str(seed),
            str(count),
            folder,
        ]
        # An input that waits, or hangs inside compiled code, does not hear its alarm: the file
        # grows old.
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, **ENVIRONMENT},
        )  # fmt: skip
        current = Path(folder) / "current.json"
        hung = False
        while True:
            try:
                out, err = process.communicate(timeout=2.0)
                break
            except subprocess.TimeoutExpired:
                if current.exists() and time.time() - current.stat().st_mtime > 6 * SECONDS:
                    hung = True
                    process.kill()
        if process.returncode == 0:
            found = json.loads(out.splitlines()[-1])
            faults = [f"{said} ({keep(target, drawn)})" for said, drawn in found["faults"]]
            return collections.Counter(found["verdicts"]), faults
        what = "hang" if hung else f"crash {process.returncode}"
        if not current.exists():
            return collections.Counter(), [f"{what}: {err[-1500:]}"]
        name = keep(*json.loads(current.read_text()))
        return collections.Counter({"FAULT": 1}), [f"{what} ({name}): {err[-1500:]}"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target", choices=SHARES, default=None)
    parser.add_argument("--child", nargs=4, metavar=("TARGET", "SEED", "COUNT", "FOLDER"))
    arguments = parser.parse_args()
    if arguments.child:
        target, seed, count, folder = arguments.child
        child(target, int(seed), int(count), folder)
        return
    shares = {arguments.target: 1.0} if arguments.target else SHARES
    failed = 0
    for target, share in shares.items():
        left, verdicts, started, number = round(share * arguments.inputs), collections.Counter(), \
            time.monotonic(), 0  # fmt: skip
        while left > 0:
            found, faults = run(target, 10_000 * arguments.seed + number, min(BATCH, left))
            verdicts += found
            left, number, failed = left - BATCH, number + 1, failed + len(faults)
            for said in faults:
                print(f"{target}: {said}", flush=True)
        spent = time.monotonic() - started
        print(f"{target}: {sum(verdicts.values())} inputs in {spent:.0f} s")
        for verdict, count in verdicts.most_common():
            print(f"  {count:7d}  {verdict}")
    print(f"{failed} faults")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
