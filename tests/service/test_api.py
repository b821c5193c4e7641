# SPDX-License-Identifier: BSD-3-Clause
"""The interface for programs does what it says."""

import numpy as np
import pytest

import adiabat
from store_tools import people

from service.conftest import bearer, rows_of

M = "/v1/models/loans"


def test_a_day_of_programs(client, folder):
    assert client.get("/v1/models").json()["models"][0]["name"] == "loans"
    info = client.get(M).json()
    assert info["rows"] == 60 and info["certificate"]["ok"] and str(folder) not in str(info)
    asked = client.post(f"{M}/predictions", json={"rows": rows_of(100, 110)})
    assert asked.status_code == 200 and asked.json()["entry"] == 2
    learned = client.post(f"{M}/rows", json={"rows": rows_of(60, 70)})
    assert learned.status_code == 201 and learned.json()["added"] == 10
    fixed = client.post(f"{M}/revisions", json={"rows": [{"name": "person-00003", "good": "no"}]})
    assert fixed.json()["revised"] == 1, fixed.json()
    ids = {"ids": ["person-00001", "person-00002"]}
    preview = client.post(f"{M}/erasures?dry_run=1", json=ids)
    assert preview.status_code == 200 and preview.json()["removed"] == 2
    assert client.get(M).json()["rows"] == 70
    erased = client.post(f"{M}/erasures", json=ids, headers={"Idempotency-Key": "DSR-1"})
    assert erased.status_code == 201 and erased.json()["removed"] == 2
    receipt = client.get(f"{M}/receipts/DSR-1").json()
    assert receipt["reference"] == "DSR-1" and "person" not in str(receipt)
    entries = client.get(f"{M}/log").json()["entries"]
    assert [entry["operation"] for entry in entries[:3]] == ["forget", "revise", "learn"]
    assert {entry["by"] for entry in entries[:3]} == {"this machine"}
    checked = client.post(f"{M}/verifications", json={"retrain": True}).json()
    while checked["state"] in ("waiting", "running"):
        checked = client.get(f"/v1/jobs/{checked['id']}").json()
    assert checked["result"]["ok"] and checked["result"]["retrained"]
    suspects = client.get(f"{M}/suspects?count=5")
    while suspects.status_code == 202:
        suspects = client.get(f"{M}/suspects?count=5")
    found = suspects.json()
    with adiabat.open_store(folder / "loans") as store:
        expected = store.leave_one_out().suspects(5)
        assert len(store) == 68
    assert [row["id"] for row in found["suspects"]] == [row["id"] for row in expected]
    margins = [[row["margin"] for row in rows] for rows in (found["suspects"], expected)]
    assert np.allclose(*margins, rtol=0, atol=1e-9)


def test_predictions_are_those_of_the_store(client, folder):
    with adiabat.open_store(folder / "loans") as store:
        expected = store.predict(people(100, 140))
    for sent in (
        {"json": {"rows": rows_of(100, 140)}},
        {
            "content": people(100, 140).to_csv(index=False),
            "headers": {"Content-Type": "text/csv"},
        },
    ):
        found = client.post(f"{M}/predictions", **sent).json()["predictions"]
        assert [row["id"] for row in found] == expected["id"]
        assert [row["label"] for row in found] == expected["prediction"].tolist()
        decisions = np.array([row["decision"] for row in found])
        assert np.array_equal(decisions, expected["decision"])


def test_a_calibrated_model_says_how_sure_it_is(folder, keys):
    from service.conftest import make_client

    store = adiabat.create_store(
        folder / "sure", id="name", label="good", ignore=["colour"], calibration="sigmoid"
    )
    store.learn(people(0, 60))
    shares = store.model.predict_proba(people(100, 140)[["income", "age"]].to_numpy())
    url, body = "/v1/models/sure/predictions", {"rows": rows_of(100, 140, ["income", "age"])}
    with make_client(folder) as client:
        found = [
            client.post(url, json=body, headers=bearer(key)).json()["predictions"]
            for key in (keys.admin, keys.predict)
        ]
        plain = client.post(f"{M}/predictions", json={"rows": rows_of(100, 101)},
                            headers=bearer(keys.admin)).json()["predictions"]  # fmt: skip
    full, short = ([row["confidence"] for row in rows] for rows in found)
    chosen = [store.model.classes_.tolist().index(row["label"]) for row in found[0]]
    np.testing.assert_allclose(full, shares[np.arange(40), chosen], rtol=1e-9)
    assert short == [round(value, 2) for value in full] and "decision" not in found[1][0]
    assert "confidence" not in plain[0]


def test_a_retried_request_is_applied_once(client):
    send = {"json": {"rows": rows_of(60, 62)}, "headers": {"Idempotency-Key": "batch-7"}}
    first = client.post(f"{M}/rows", **send)
    second = client.post(f"{M}/rows", **send)
    assert first.status_code == second.status_code == 201
    assert {**first.json(), "replayed": True} == second.json()
    assert client.get(M).json()["rows"] == 62


def test_a_retry_after_a_restart_is_applied_once(folder):
    from service.conftest import make_client

    send = {"json": {"ids": ["person-00001"]}, "headers": {"Idempotency-Key": "DSR-9"}}
    with make_client(folder) as client:
        first = client.post(f"{M}/erasures", **send).json()
    with make_client(folder) as client:
        second = client.post(f"{M}/erasures", **send).json()
        other = client.post(f"{M}/rows", json={"rows": rows_of(60, 61)},
                            headers={"Idempotency-Key": "DSR-9"})  # fmt: skip
    assert {**first, "replayed": True} == second
    assert other.status_code == 422 and "another request" in other.json()["detail"]


def test_a_name_is_not_for_two_requests(client):
    named = {"Idempotency-Key": "one"}
    assert client.post(f"{M}/rows", json={"rows": rows_of(60, 61)}, headers=named).is_success
    found = client.post(f"{M}/rows", json={"rows": rows_of(61, 62)}, headers=named)
    assert found.status_code == 422
    assert client.get(M).json()["rows"] == 61


def test_a_name_is_not_for_two_requests_after_a_restart_either(folder):
    from service.conftest import make_client

    learn, revise, erase = ({"Idempotency-Key": name} for name in ("learn", "revise", "DSR-1"))
    rows, other = rows_of(60, 62), rows_of(60, 62)
    other[0]["income"] += 1.0
    fixed = [{"name": "person-00004", "good": "no"}]
    ids = {"ids": ["person-00060", "person-00003", "unknown"], "missing": "ignore"}
    more = {**ids, "ids": [*ids["ids"], "person-00005"]}
    sent = [(f"{M}/rows", {"rows": rows}, learn), (f"{M}/revisions", {"rows": fixed}, revise)]
    with make_client(folder) as client:
        first = [client.post(url, json=body, headers=name).json() for url, body, name in sent]
    with make_client(folder) as client:
        for (url, body, name), before in zip(sent, first, strict=True):
            assert client.post(url, json=body, headers=name).json() == {**before, "replayed": True}
        for url, body, name in [
            (f"{M}/rows", {"rows": other}, learn),
            (f"{M}/rows", {"rows": rows[:1]}, learn),
            (f"{M}/rows", {"rows": rows_of(62, 64)}, learn),
            (f"{M}/revisions", {"rows": [{**fixed[0], "good": "yes"}]}, revise),
        ]:
            assert client.post(url, json=body, headers=name).status_code == 422
        assert client.post(f"{M}/erasures", json=ids, headers=erase).is_success
    with make_client(folder) as client:
        assert client.post(f"{M}/erasures", json=ids, headers=erase).json()["replayed"]
        assert client.post(f"{M}/erasures", json=more, headers=erase).status_code == 422
        # A row of the first request is gone, and with it the way to test what was said of it.
        url, body, name = sent[0]
        assert client.post(url, json=body, headers=name).json()["replayed"]
        assert client.get(M).json()["rows"] == 60


def test_a_change_of_another_process_is_noticed(client, folder):
    with adiabat.open_store(folder / "loans") as other:
        other.learn(people(60, 65))
    client.desk.refresh()
    assert client.post(f"{M}/predictions", json={"rows": rows_of(0, 1)}).json()["entry"] == 3


@pytest.mark.parametrize(
    "kind, body, status",
    [
        ("application/json", b"{", 400),
        ("application/json", b"\xff\xfe", 400),
        ("application/json", b"[" * 100_000, 400),
        ("application/json", b'{"rows": [[1]]}', 422),
        ("application/json", b'{"rows": []}', 422),
        ("application/json", b'{"rows": [{"name": "a", "income": NaN}]}', 400),
        ("application/json", b'{"rows": [{"name": "a"}, {"income": 1}]}', 422),
        ("application/json", b'{"rows": [{"name": {"a": 1}}]}', 422),
        ("application/json", b'{"rows": [{"income": 1e999, "age": 1, "colour": "red"}]}', 422),
        ("application/json", b'{"rows": [{"income": true, "age": "x", "colour": "red"}]}', 422),
        ("application/json", b'{"rows": [{"income": 1, "age": 1, "colour": "\\ud800"}]}', 422),
        ("application/json", b'{"rows": [{"income": 1, "age": 1}]}', 422),
        ("text/csv", b"", 422),
        ("text/csv", b"income,age,colour\n1,2\n", 422),
        ("text/csv", b"income,income\n1,2\n", 422),
        ("text/csv", b'income,age,colour\n"1,2,red\n', 400),
        ("text/csv", b"income,age,colour\n1,old,red\n", 422),
        ("text/csv", b"\x00\x01\x02\n\x00", 422),
        ("text/plain", b"income,age,colour\n1,2,red\n", 415),
        ("", b"income,age,colour\n1,2,red\n", 415),
    ],
)
def test_a_bad_body_is_a_problem(client, kind, body, status):
    for route in ("predictions", "rows", "revisions"):
        found = client.post(f"{M}/{route}", content=body, headers={"Content-Type": kind})
        assert found.status_code == status, (route, found.text)
        assert found.headers["content-type"] == "application/problem+json"
        assert found.json()["status"] == status and found.json()["detail"]
    assert client.get(M).json()["rows"] == 60


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"ids": []},
        {"ids": "person-00001"},
        {"ids": [1.5]},
        {"ids": [None]},
        {"ids": [""]},
        {"ids": ["x" * 201]},
        {"ids": ["person-00001"], "missing": "maybe"},
        {"ids": ["person-00001"], "more": 1},
        [],
    ],
)
def test_a_bad_erasure_is_a_problem(client, body):
    found = client.post(f"{M}/erasures", json=body, headers={"Idempotency-Key": "x"})
    assert found.status_code == 422, found.text
    assert client.get(M).json()["rows"] == 60


def test_ids_that_are_not_there_are_a_conflict(client):
    found = client.post(f"{M}/erasures", json={"ids": ["nobody"]}, headers={"Idempotency-Key": "x"})
    assert found.status_code == 409
    again = client.post(f"{M}/rows", json={"rows": rows_of(0, 1)})
    assert again.status_code == 409 and "already" in again.json()["detail"]


def test_an_erasure_needs_a_reference(client):
    found = client.post(f"{M}/erasures", json={"ids": ["person-00001"]})
    assert found.status_code == 400 and client.get(M).json()["rows"] == 60


TRICKS = ["nobody", "%2e%2e", "..%2f..%2fetc", "loans%2f..", "loans%00", ".service", "LOANS"]


@pytest.mark.parametrize("name", TRICKS)
def test_a_name_is_never_a_path(client, name):
    for route in ("", "/log", "/receipts/..%2f..%2fkeys.json"):
        assert client.get(f"/v1/models/{name}{route}").status_code == 404
    page = client.get(f"/models/{name}/erasure", headers={"Accept": "text/html"})
    assert page.status_code == 404
    if name != "%2e%2e":  # which the client resolves
        assert client.get(f"/static/{name}").status_code == 404
    assert client.get("/static/..%2fkeys.py").status_code == 404
