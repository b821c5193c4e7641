# SPDX-License-Identifier: BSD-3-Clause
"""Every page's main act, without a browser."""

import re

import pytest

import adiabat
from store_tools import people, write_keys

from service.conftest import make_client

PAGE = {"Accept": "text/html"}


def token(page):
    return re.search(r'name="csrf" value="([^"]+)"', page.text)[1]


def field(page, name):
    return re.search(rf'name="{name}" value="([^"]*)"', page.text)[1]


def review(client):
    page = client.get("/models/loans/review")
    while "hx-get" in page.text:
        page = client.get("/models/loans/review")
    return page


def test_signing_in_and_out(folder, keys):
    with make_client(folder) as client:
        sent = client.get("/models/loans/log")
        assert (
            sent.status_code == 303 and sent.headers["location"] == "/sign-in?to=/models/loans/log"
        )
        assert client.post("/sign-in", data={"key": "wrong"}).status_code == 401
        signed = client.post("/sign-in", data={"key": keys.audit, "to": "/models/loans/log"})
        cookie = signed.headers["set-cookie"]
        assert signed.headers["location"] == "/models/loans/log"
        assert "HttpOnly" in cookie and "SameSite=strict" in cookie and keys.audit not in cookie
        for elsewhere in ("//evil.example", "https://evil.example", "/\\evil.example"):
            found = client.post("/sign-in", data={"key": keys.audit, "to": elsewhere})
            assert found.headers["location"] == "/"
        page = client.get("/models/loans/log")
        assert page.status_code == 200 and "Erasure" not in page.text
        client.post("/sign-out", data={"csrf": token(page)})
        assert client.get("/models/loans/log").status_code == 303


def test_a_form_of_another_page_is_refused(client):
    page = client.get("/models/loans/erasure")
    send = {"ids": "person-00001", "reference": "x"}
    for data, headers in (
        (send, {}),
        ({**send, "csrf": "guess"}, {}),
        ({**send, "csrf": token(page)}, {"Origin": "https://evil.example"}),
        ({**send, "csrf": token(page)}, {"Sec-Fetch-Site": "cross-site"}),
    ):
        assert client.post("/models/loans/erasure", data=data, headers=headers).status_code == 403
    told = client.post(
        "/models/loans/erasure", content="ids=person-00001", headers={"Content-Type": "text/plain"}
    )
    assert told.status_code == 415


def test_models_stand_with_their_certificate(client):
    page = client.get("/")
    assert "This model is the one that retraining on its 60 rows would give" in page.text
    assert "<svg" in page.text and "style=" not in page.text and "<script>" not in page.text


def test_an_erasure_from_id_to_receipt(client):
    page = client.get("/models/loans/erasure")
    preview = client.post(
        "/models/loans/erasure/preview",
        data={"csrf": token(page), "ids": "person-00001\nperson-00002\nnobody\n"},
    )
    assert "2 rows held; not held: nobody" in preview.text and "What would change" in preview.text
    done = client.post(
        "/models/loans/erasure",
        data={"csrf": token(preview), "ids": "person-00001\nperson-00002", "reference": "DSR 7/a"},
    )
    assert done.status_code == 303
    receipt = client.get(done.headers["location"])
    assert "2 training rows were erased under the reference DSR 7/a" in receipt.text
    assert "person-0000" not in receipt.text
    for kind in ("html", "json"):
        saved = client.get(f"{done.headers['location']}&save={kind}")
        assert "attachment" in saved.headers["content-disposition"] and "DSR 7/a" in saved.text
    again = client.post(  # a second click
        "/models/loans/erasure",
        data={"csrf": token(preview), "ids": "person-00001\nperson-00002", "reference": "DSR 7/a"},
    )
    assert again.status_code == 303
    gone = client.post(
        "/models/loans/erasure/preview", data={"csrf": token(page), "ids": "person-00001"}
    )
    assert "nothing is held under them" in gone.text


def test_a_review_keeps_corrects_and_skips(client, folder):
    page = review(client)
    first = re.search(r'<h2 id="row-id">([^<]+)', page.text)[1]
    data = {"csrf": token(page), "number": field(page, "number")}
    assert client.post("/models/loans/review/keep", data=data).status_code == 303
    page = review(client)
    second = re.search(r'<h2 id="row-id">([^<]+)', page.text)[1]
    assert second != first and "Kept as it is." in page.text
    data = {"csrf": token(page), "number": field(page, "number"),
            "seen": field(page, "seen"), "label": field(page, "label")}  # fmt: skip
    client.post("/models/loans/review/correct", data=data)
    page = review(client)
    assert f"Corrected to {data['label']}." in page.text and "on the 60 rows changed" in page.text
    client.post("/models/loans/review/correct", data=data)  # another had it open, too
    page = review(client)
    assert "Somebody else has changed" in page.text
    third = re.search(r'<h2 id="row-id">([^<]+)', page.text)[1]
    data = {"csrf": token(page), "number": field(page, "number")}
    client.post("/models/loans/review/skip", data=data)
    assert third not in review(client).text
    with adiabat.open_store(folder / "loans") as store:
        assert [row["label"] for row in store.find([second])] == [
            "yes" if people(0, 60).set_index("name").good[second] == "no" else "no"
        ]
        assert store.log()[-1].by == "this machine"
    assert first not in (folder / ".service" / "loans.kept").read_text()


def test_two_reviewers_are_not_shown_the_same_row(folder):
    with make_client(folder) as client:
        mine = review(client)
        cookies = dict(client.cookies)
        client.cookies.clear()
        yours = review(client)
        assert field(mine, "number") != field(yours, "number")
        client.cookies.clear()
        client.cookies.update(cookies)
        assert field(review(client), "number") == field(mine, "number")


def test_the_log_says_who_and_verifies(client, folder):
    page = client.get("/models/loans/log")
    assert "not signed" in page.text and "first" in page.text
    assert "No entry fits." in client.get("/models/loans/log?by=eve").text
    begun = client.post("/models/loans/log/verify", data={"csrf": token(page), "retrain": "1"})
    job = client.get(begun.headers["location"])
    while "hx-get" in job.text:
        job = client.get(begun.headers["location"])
    assert "All of it holds." in job.text and "fitted anew decides the same" in job.text


def test_a_form_made_from_the_columns_answers(client):
    page = client.get("/models/loans/predict")
    assert all(name in page.text for name in ("income", "age", "colour"))
    given = {"csrf": token(page), "column income": "2.5", "column age": "1", "column colour": "red"}
    answer = client.post("/models/loans/predict", data=given)
    assert '<h2 id="answer">yes</h2>' in answer.text and "Spoke for it" in answer.text
    assert 'value="2.5"' in answer.text
    wrong = client.post("/models/loans/predict", data={**given, "column income": "much"})
    assert wrong.status_code == 422 and "which is not a number" in wrong.text


def test_html_in_ids_and_labels_is_shown_and_never_run(tmp_path):
    evil = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'"
    frame = people(0, 40).rename(columns={"age": f"{evil}column"})
    frame.loc[:19, "name"] = [f"{evil}{i}" for i in range(20)]
    frame["good"] = frame["good"].replace("yes", f"{evil}yes")
    store = adiabat.create_store(
        tmp_path / "m", id="name", label="good", categories={"colour": None}, C=5.0, gamma=0.5
    )
    store.learn(frame, reference=evil)
    store.forget(f"{evil}0", reference=evil)
    store.close()
    with make_client(tmp_path) as client:
        pages = [client.get(path) for path in ("/", "/models/m/log", "/models/m/predict")]
        page = client.get("/models/m/review")
        while "hx-get" in page.text:
            page = client.get("/models/m/review")
        csrf = token(pages[1])
        pages += [
            page,
            client.post("/models/m/erasure/preview", data={"csrf": csrf, "ids": f"{evil}1"}),
            client.post("/models/m/erasure/preview", data={"csrf": csrf, "ids": f"{evil}x"}),
            client.get("/models/m/receipt", params={"reference": evil}),
            client.get("/models/m/receipt", params={"reference": evil + "x"}, headers=PAGE),
            client.post("/models/m/predict", headers=PAGE, data={
                "csrf": csrf, "column income": evil, f"column {evil}column": evil,
                "column colour": "red"}),
            client.get("/sign-in", params={"to": evil}),
        ]  # fmt: skip
        for page in pages:
            assert "text/html" in page.headers["content-type"]
            assert "<script>alert" not in page.text and "<img" not in page.text, page.text
        assert sum("&lt;script&gt;alert" in page.text for page in pages) >= 6


def test_a_signed_log_shows_its_signature(tmp_path):
    private, _ = write_keys(tmp_path, "key")
    (tmp_path / "desk").mkdir()
    store = adiabat.create_store(tmp_path / "desk" / "m", label="y", signing_key=private)
    store.learn([[0.0], [1.0], [3.0]], [0, 0, 1], ids=["a", "b", "c"])
    signature = store.head()["signature"]
    store.close()
    with make_client(tmp_path / "desk") as client:
        assert signature in client.get("/models/m/log").text


@pytest.mark.parametrize("task", ["svr", "one-class", "lssvc", "svc"])
def test_pages_of_other_tasks(tmp_path, task):
    label = {} if task == "one-class" else {"label": "y"}
    store = adiabat.create_store(tmp_path / "m", task, **label)
    frame = people(0, 40)
    labels = {"svr": frame.income + frame.age, "one-class": None, "lssvc": frame.good,
              "svc": frame.colour}[task]  # fmt: skip
    store.learn(frame[["income", "age"]], labels, ids=list(frame.name))
    store.close()
    with make_client(tmp_path) as client:
        page = client.get("/models/m/review")
        while "hx-get" in page.text:
            page = client.get("/models/m/review")
        assert page.status_code == 200 and "Keep" in page.text
        if task == "svr":
            data = {"csrf": token(page), "number": field(page, "number"),
                    "seen": field(page, "seen"), "label": "0.25"}  # fmt: skip
            client.post("/models/m/review/correct", data=data)
            assert "Corrected to 0.25." in client.get("/models/m/review").text
        given = {"csrf": token(client.get("/models/m/predict")), "column x0": "1", "column x1": "2"}
        assert client.post("/models/m/predict", data=given).status_code == 200
        assert client.get("/").status_code == 200


def test_a_model_that_has_learned_nothing_has_pages(tmp_path):
    adiabat.create_store(tmp_path / "m", label="y").close()
    with make_client(tmp_path) as client:
        for path in ("/", *(f"/models/m/{act}" for act in ("review", "erasure", "log", "predict"))):
            assert client.get(path).status_code == 200
        assert client.get("/v1/models/m").json()["rows"] == 0
        body = {"rows": [{"x": 1}]}
        assert client.post("/v1/models/m/predictions", json=body).status_code == 409
        assert client.get("/v1/models/m/suspects").status_code == 409
