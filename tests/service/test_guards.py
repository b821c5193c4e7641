# SPDX-License-Identifier: BSD-3-Clause
"""Limits hold, headers are strict, logs tell nothing, two desks do not share a folder."""

import json
import logging
import sys
import threading

import pytest

from adiabat.errors import StoreError
from adiabat.service.desk import Desk
from adiabat.service.logs import JsonLines
from adiabat.service.served import Asked
from adiabat.service.settings import Limits, ServiceSettings
from store_tools import people

from service.conftest import make_client, rows_of

M = "/v1/models/loans"


def test_the_server_outlasts_idle_clients_and_leaves_a_cpu_free(folder, monkeypatch):
    from adiabat.engine.threads import n_cpus, n_threads
    from adiabat.service import server

    seen = []

    class Server:
        def __init__(self, config):
            self.idle = config.timeout_keep_alive

        def run(self):
            seen.append((self.idle, n_threads()))

    desk = Desk(str(folder))
    monkeypatch.setattr(server, "Desk", lambda folder: desk)
    monkeypatch.setattr(server.uvicorn, "Server", Server)
    before = sys.getswitchinterval()
    try:
        server.serve(str(folder))
    finally:
        sys.setswitchinterval(before)
        desk.close()
    [(idle, threads)] = seen
    assert idle > 60 and threads <= max(1, n_cpus() - 1)


def limited(folder, **limits):
    return make_client(folder, ServiceSettings(limits=Limits(**limits)))


def test_bodies_rows_columns_and_ids_are_limited(folder):
    with limited(folder, body_bytes=2000, rows=5, columns=6, id_length=30) as client:
        big = client.post(f"{M}/rows", content=b" " * 2001, headers={"Content-Type": "text/csv"})
        assert big.status_code == 413

        def parts():
            for _ in range(10):
                yield b" " * 500

        streamed = client.post(
            f"{M}/rows", content=parts(), headers={"Content-Type": "application/json"}
        )
        assert streamed.status_code == 413
        many = client.post(f"{M}/predictions", json={"rows": rows_of(0, 6)})
        assert many.status_code == 413
        wide = client.post(f"{M}/predictions", json={"rows": [{str(k): 1 for k in range(7)}]})
        assert wide.status_code == 413
        long = client.post(f"{M}/predictions", json={"rows": [{"name": "x" * 31}]})
        assert long.status_code == 422


def test_too_many_changes_at_once_are_told_to_come_back(folder):
    with limited(folder, queue=1, seconds=0.2) as client:
        model = client.desk.models["loans"]
        hold, held = threading.Event(), threading.Event()
        learn = model.store.learn

        def slowly(*args, **options):
            held.set()
            hold.wait(20)
            return learn(*args, **options)

        asked = Asked("learn", "test", None, lambda store: slowly(people(60, 61)))
        first = model.submit(asked)
        held.wait(20)
        late = client.post(f"{M}/rows", json={"rows": rows_of(61, 62)})
        assert late.status_code == 503 and "nothing was changed" in late.json()["detail"]
        assert late.headers["retry-after"]
        full = client.post(f"{M}/rows", json={"rows": rows_of(62, 63)})
        assert full.status_code == 429 and full.headers["retry-after"]
        hold.set()
        first.result(20)
        assert client.get(M).json()["rows"] == 61


def test_a_key_may_ask_so_often(folder):
    with limited(folder, per_minute=3) as client:
        found = [client.get("/v1/models").status_code for _ in range(5)]
        assert found == [200, 200, 200, 429, 429]


def test_every_answer_has_strict_headers(client):
    for path in ("/", "/v1/models", "/nothing", "/static/style.css", "/healthz"):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] in ("no-store", "no-cache")


def test_logs_hold_no_id_and_no_feature(client, caplog):
    caplog.set_level(logging.INFO, "adiabat")
    send = {"name": "secret-person", "income": 1234.5678, "age": 1.0, "colour": "red", "good": "no"}
    client.post(f"{M}/rows", json={"rows": [send]}, headers={"Idempotency-Key": "DSR-secret"})
    client.post(f"{M}/predictions", json={"rows": [send]})
    client.post(f"{M}/erasures", json={"ids": ["secret-person"]}, headers={"Idempotency-Key": "s"})
    client.get(f"{M}/receipts/DSR-secret")
    client.post(f"{M}/erasures", json={"ids": ["secret-person"]}, headers={"Idempotency-Key": "t"})
    lines = [JsonLines().format(record) for record in caplog.records]
    assert len(lines) >= 5
    assert all(json.loads(line)["logger"].startswith("adiabat") for line in lines)
    text = "\n".join(lines)
    assert "secret" not in text and "1234.5" not in text
    assert "/v1/models/{m}/receipts/{reference:path}" in text


def test_figures_for_prometheus(client):
    client.post(f"{M}/rows", json={"rows": rows_of(60, 61)})
    text = client.get("/metrics").text
    assert 'adiabat_changes_total{model="loans",operation="learn"} 1.0' in text
    assert 'adiabat_log_entries{model="loans"} 3.0' in text
    assert 'route="/v1/models/{m}/rows",status="201"' in text


def test_a_folder_is_served_once(client, folder):
    with pytest.raises(StoreError, match="being served by another process"):
        Desk(str(folder))


def test_a_store_alone_is_served_under_its_name(folder):
    with make_client(folder / "loans") as client:
        assert client.get("/v1/models").json()["models"][0]["name"] == "loans"


@pytest.mark.parametrize(
    "text", ["limits = 3", "[limits]\nrows = 0", "[limits]\nfoo = 1", "other = 1", "=", "https = 3"]
)
def test_settings_that_are_none_are_refused(folder, text):
    (folder / "service.toml").write_text(text)
    with pytest.raises(StoreError, match=r"service\.toml"):
        Desk(str(folder))


def test_settings_are_read(folder):
    (folder / "secret").write_text("s" * 32)
    (folder / "service.toml").write_text(
        'hosts = ["desk.example"]\nhttps = true\nproxy_secret_file = "secret"\n'
        "[limits]\nrows = 7\nseconds = 2.5\n"
    )
    found = ServiceSettings.read(str(folder))
    assert found.limits.rows == 7 and found.limits.seconds == 2.5 and found.https
    with make_client(folder) as client:
        page = client.get("/", headers={"Host": "desk.example"})
        assert page.status_code == 200 and "Secure" in page.headers["set-cookie"]
        assert "strict-transport-security" in page.headers


def test_a_desk_that_stops_finishes_what_it_began(folder):
    client = make_client(folder)
    with client:
        model = client.desk.models["loans"]
    with pytest.raises(Exception, match="stopping"):
        model.submit(Asked("learn", "x", None, lambda store: None))
