# SPDX-License-Identifier: BSD-3-Clause
"""What the suite has no time for: loads on a service in a process of its own, on 127.0.0.1.

    PYTHONPATH=tests python -m service.evidence start                start-up on 5,000 rows
    PYTHONPATH=tests python -m service.evidence latency              p99 of a prediction, quiet and while it changes
    PYTHONPATH=tests python -m service.evidence crowd --clients 200  requests a second, and what is refused
    PYTHONPATH=tests python -m service.evidence retries --count 10000
    PYTHONPATH=tests python -m service.evidence kills --count 200

Every load is bounded in number and time.
"""  # noqa: E501

import argparse
import asyncio
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import numpy as np
import pandas as pd

import adiabat
from adiabat.service.server import serve

SERVE = "from adiabat.cli.main import app; app()"
M = "/v1/models/m"
WIDTH = 20


def rows(start, stop):
    """Noisy rows of two classes."""
    found = []
    for k in range(start, stop):
        rng = np.random.default_rng(k)
        x = rng.normal(size=WIDTH)
        y = int(x[:4].sum() + rng.normal() > 0)
        found.append({"id": f"c{k}", **{f"x{j}": float(x[j]) for j in range(WIDTH)}, "y": y})
    return found


def make(folder, n, **parameters):
    store = adiabat.create_store(folder / "m", "svc", label="y", **parameters)
    store.learn(pd.DataFrame(rows(0, n)))
    store.close()


class Forked:
    """A service in a fork of this process, which has imported all it needs: hundreds of starts."""

    def __init__(self, folder, port):
        self.status = None
        self.pid = os.fork()
        if self.pid == 0:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            try:
                serve(str(folder), "127.0.0.1", port)
            finally:
                os._exit(0)

    def poll(self):
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.status = status if pid else None
        return self.status

    def send_signal(self, number):
        os.kill(self.pid, number)

    def terminate(self):
        self.send_signal(signal.SIGTERM)

    def wait(self, seconds=60):
        deadline = time.monotonic() + seconds
        while self.poll() is None and time.monotonic() < deadline:
            time.sleep(0.005)
        return self.poll()


@contextmanager
def serving(folder, forked=False):
    """A service in a process; (address, process). It is ended with SIGTERM if it still runs."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    if forked:
        process = Forked(folder, port)
    else:
        words = [sys.executable, "-c", SERVE, "serve", str(folder), "--port", str(port)]
        process = subprocess.Popen(words, stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + 600
        while time.monotonic() < deadline:
            with suppress(httpx.HTTPError):
                if httpx.get(f"{address}/readyz", timeout=5).is_success:
                    break
            time.sleep(0.01)
        yield address, process
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait(60)


def start(given):
    """Seconds until it is ready, on a store of 5,000 rows."""
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder), 5000)
        for _ in range(given.repeat):
            began = time.perf_counter()
            with serving(folder) as (_, process):
                # What the writer then imports in the background is not counted.
                ready, cpu = time.perf_counter() - began, cpu_seconds(process.pid)
            print(json.dumps({"ready_s": round(ready, 2), "cpu_s": round(cpu, 2)}))


def latency(given):
    """Quantiles of single predictions, one after the other: quiet, and under constant updates."""
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder), given.rows)
        question = {"rows": [{k: v for k, v in rows(9000, 9001)[0].items() if k != "y"}]}
        with serving(folder) as (address, _), httpx.Client(base_url=address, timeout=60) as client:

            def measure(count):
                took = []
                for _ in range(count):
                    began = time.perf_counter()
                    assert client.post(f"{M}/predictions", json=question).is_success
                    took.append(1000 * (time.perf_counter() - began))
                return took

            measure(50)
            quiet = measure(given.count)
            script = (
                "import httpx, sys\nfrom service.evidence import M, rows\n"
                "with httpx.Client(base_url=sys.argv[1], timeout=60) as client:\n"
                "    for k in range(20000, 10**9):\n"
                "        client.post(f'{M}/rows', json={'rows': rows(k, k + 1)})\n"
            )
            writer = subprocess.Popen([sys.executable, "-c", script, address])
            first = client.get("/v1/models").json()["models"][0]["entry"]
            while client.get("/v1/models").json()["models"][0]["entry"] < first + 3:
                time.sleep(0.05)
            first = client.get("/v1/models").json()["models"][0]["entry"]
            began = time.perf_counter()
            busy = measure(given.count)
            seconds = time.perf_counter() - began
            last = client.get("/v1/models").json()["models"][0]["entry"]
            writer.kill()
            writer.wait()
    quantiles = (50, 90, 99)
    said = {}
    for name, took in (("quiet_ms", quiet), ("busy_ms", busy)):
        found = np.percentile(took, quantiles).round(2).tolist()
        said[name] = dict(zip(quantiles, found, strict=True))
    said["ratio_p99"] = round(float(np.percentile(busy, 99) / np.percentile(quiet, 99)), 2)
    said["updates_per_s"] = round((last - first) / seconds, 1)
    print(said)


async def exchange(reader, writer, message):
    """One request over a connection that stays; (status, names of headers)."""
    writer.write(message)
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    fields = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:])}
    await reader.readexactly(int(fields["content-length"]))
    return int(head[0].split()[1]), fields.keys()


def crowd(given):
    """Many clients at once; every request is answered, 200 or 429 with Retry-After.

    Each client has a connection of its own, of plain sockets, so that little of what is measured is
    the clients' own work.
    """
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder), given.rows)
        question = {"rows": [{k: v for k, v in rows(9000, 9001)[0].items() if k != "y"}]}
        body = json.dumps(question).encode()
        message = (
            f"POST {M}/predictions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json"
            f"\r\nContent-Length: {len(body)}\r\n\r\n"
        ).encode() + body

        async def client(port, count, took, statuses):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            for _ in range(count):
                began = time.perf_counter()
                try:
                    said, names = await asyncio.wait_for(exchange(reader, writer, message), 120)
                except (OSError, EOFError) as error:
                    said, names = f"dropped: {type(error).__name__}", ()
                took.append(1000 * (time.perf_counter() - began))
                if said == 429 and "retry-after" not in names:
                    said = "429 without Retry-After"
                statuses[said] = statuses.get(said, 0) + 1
            writer.close()

        async def run(port):
            took, statuses = [], {}
            each = given.count // given.clients
            began = time.perf_counter()
            asked = [client(port, each, took, statuses) for _ in range(given.clients)]
            await asyncio.gather(*asked)
            return took, statuses, time.perf_counter() - began

        with serving(folder) as (address, process):
            asyncio.run(run(int(address.rpartition(":")[2])))  # once before, as a service runs long
            before, own = cpu_seconds(process.pid), time.process_time()
            took, statuses, seconds = asyncio.run(run(int(address.rpartition(":")[2])))
            spent, own = cpu_seconds(process.pid) - before, time.process_time() - own
    print({"clients": given.clients, "requests": len(took), "statuses": statuses,
           "per_s": round(len(took) / seconds),
           "service_cpu_ms_each": round(1000 * spent / len(took), 2),
           "clients_cpu_ms_each": round(1000 * own / len(took), 2),
           "p50_ms": round(float(np.percentile(took, 50)), 1),
           "p99_ms": round(float(np.percentile(took, 99)), 1)})  # fmt: skip


def cpu_seconds(pid):
    """Processor time of a process so far (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def retries(given):
    """Requests whose answers are dropped are sent again; each is applied once."""
    rng = random.Random(0)
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder), 20, kernel="linear")
        sent = 0
        with serving(folder) as (address, _):
            port = int(address.rpartition(":")[2])
            names = []
            for k in range(given.count):
                if time.monotonic() > given.deadline:
                    break
                body = json.dumps({"rows": rows(1000 + k // 3, 1001 + k // 3)}).encode()
                name = f"request-{k // 3}"
                names.append(name)
                head = (
                    f"POST {M}/rows HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json"
                    f"\r\nIdempotency-Key: {name}\r\nContent-Length: {len(body)}\r\n"
                    "Connection: close\r\n\r\n"
                ).encode()
                with socket.create_connection(("127.0.0.1", port), timeout=60) as line:
                    line.sendall(head + body)
                    sent += 1
                    # Two of three hang up: at once, or when the answer begins.
                    if k % 3 == 2:
                        while line.recv(65536):
                            pass
                    elif rng.random() < 0.5:
                        line.recv(1)
            with httpx.Client(base_url=address, timeout=60) as client:
                while client.get("/v1/models").json()["models"][0]["entry"] < 2 + len(set(names)):
                    time.sleep(0.1)
        with adiabat.open_store(Path(folder) / "m") as store:
            requests = [entry.body.get("origin", {}).get("request") for entry in store.log()[2:]]
            ok = store.verify(retrain=True).ok
    once = len(requests) == len(set(requests)) and set(requests) == set(names)
    print({"sent": sent, "distinct": len(set(names)), "applied": len(requests), "each_once": once,
           "verifies": ok})  # fmt: skip
    assert once and ok


def kills(given):
    """SIGKILL at random times under load: all that was acknowledged is there, and nothing half."""
    rng = random.Random(1)
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder), 30, kernel="linear")
        acknowledged, asked, k, lost, done = {}, {}, 0, 0, 0
        for round_ in range(given.count):
            if time.monotonic() > given.deadline:
                break
            with serving(folder, forked=True) as (address, process):
                with httpx.Client(base_url=address, timeout=10) as client:
                    until = time.monotonic() + rng.uniform(0.05, 0.6)
                    while time.monotonic() < until:
                        name, row = f"r{k}", rows(1000 + k, 1001 + k)
                        asked[name] = row[0]["id"]
                        found = client.post(
                            f"{M}/rows", json={"rows": row}, headers={"Idempotency-Key": name}
                        )
                        if found.is_success:
                            acknowledged[name] = found.json()["hash"]
                        k += 1
                    # One is on its way when the process dies.
                    name, row = f"r{k}", rows(1000 + k, 1001 + k)
                    asked[name] = row[0]["id"]
                    body = json.dumps({"rows": row}).encode()
                    line = socket.create_connection(("127.0.0.1", int(address.split(":")[2])))
                    line.sendall(
                        f"POST {M}/rows HTTP/1.1\r\nHost: 127.0.0.1\r\nIdempotency-Key: {name}\r\n"
                        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
                        .encode() + body
                    )  # fmt: skip
                    time.sleep(rng.uniform(0.0, 0.03))
                    process.send_signal(signal.SIGKILL)
                    process.wait()
                    line.close()
                    k += 1
            with adiabat.open_store(Path(folder) / "m") as store:
                hashes = {entry.hash for entry in store.log()}
                lost += sum(found not in hashes for found in acknowledged.values())
                ids = set(store.ids)
                logged = {e.body.get("origin", {}).get("request") for e in store.log()} - {None}
                half = [n for n in asked if (n in logged) != (asked[n] in ids)]
                assert not half, half
                if round_ % 20 == 0:
                    assert store.verify(retrain=True).ok
            done += 1
        with adiabat.open_store(Path(folder) / "m") as store:
            ok = store.verify(retrain=True).ok
    print({"kills": done, "acknowledged": len(acknowledged), "lost": lost, "verifies": ok})
    assert lost == 0 and ok


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["start", "latency", "crowd", "retries", "kills"])
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1800.0)
    given = parser.parse_args()
    given.deadline = time.monotonic() + given.seconds
    {"start": start, "latency": latency, "crowd": crowd, "retries": retries, "kills": kills}[
        given.what
    ](given)


if __name__ == "__main__":
    main()
