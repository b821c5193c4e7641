# SPDX-License-Identifier: BSD-3-Clause
"""Nobody gets in who should not: every route, every kind of bad key, every scope."""

import json
import re
import stat
from datetime import UTC, datetime, timedelta

import pytest
from typer.testing import CliRunner

from adiabat.cli.main import app as cli
from adiabat.errors import StoreError

from service.conftest import bearer, make_client, rows_of

M = "/v1/models/loans"
OPEN = {"/healthz", "/readyz", "/static/{name}", "/sign-in"}
# The scope that a route needs; None for any key.
SCOPES = {
    "/v1/models": None,
    "/v1/models/{m}": None,
    "/v1/models/{m}/predictions": "predict",
    "/v1/models/{m}/rows": "review",
    "/v1/models/{m}/revisions": "review",
    "/v1/models/{m}/erasures": "erase",
    "/v1/models/{m}/receipts/{reference:path}": "erase audit",
    "/v1/models/{m}/log": "audit",
    "/v1/models/{m}/verifications": "audit",
    "/v1/models/{m}/suspects": "review",
    "/v1/jobs/{id}": None,
    "/metrics": "audit",
    "/openapi.json": None,
}
PAGES = {
    "/": None,
    "/sign-out": None,
    "/jobs/{id}": None,
    "/models/{m}/erasure": "erase",
    "/models/{m}/erasure/preview": "erase",
    "/models/{m}/receipt": "erase audit",
    "/models/{m}/review": "review",
    "/models/{m}/review/{act}": "review",
    "/models/{m}/log": "audit",
    "/models/{m}/log/verify": "audit",
    "/models/{m}/predict": "predict",
}


def routes(app):
    """(method, template) of everything that the application answers, from its own list."""
    found = []

    def walk(items):
        for route in items:
            if hasattr(route, "methods"):
                found.extend((method, route.path) for method in route.methods - {"HEAD"})
            else:  # a router that was included
                walk(getattr(getattr(route, "original_router", None), "routes", ()))

    walk(app.routes)
    return sorted(found)


def address(template):
    path = re.sub(r"{m}", "loans", template).replace("{reference:path}", "first")
    return re.sub(r"{\w+(:path)?}", "x", path)


def application(client):
    made = client.app
    while not hasattr(made, "routes"):
        made = made.app
    return made


def test_every_route_is_known_here(client):
    found = {path for _, path in routes(application(client))}
    assert found == OPEN | set(SCOPES) | set(PAGES)


def test_every_route_refuses_every_bad_key(folder, keys):
    from adiabat.service.keys import KeyRing

    ring = KeyRing(str(folder))
    _, over = ring.add("late", ["admin"], expires=datetime.now(UTC) + timedelta(hours=1))
    path = folder / ".service" / "keys.json"
    body = json.loads(path.read_text())
    for item in body["keys"]:
        if item["name"] == "late":
            item["expires"] = "2020-01-01T00:00:00+00:00"
    path.write_text(json.dumps(body))
    bad = {
        "none": {},
        "empty": bearer(""),
        "nonsense": bearer("x"),
        "unknown": bearer("adiabat_" + "0" * 12 + "_" + "A" * 43),
        "changed": bearer(keys.admin[:-1] + ("A" if keys.admin[-1] != "A" else "B")),
        "over": bearer(over),
        "basic": {"Authorization": f"Basic {keys.admin}"},
        "cookie": {"Cookie": f"adiabat_session={keys.admin}"},
        "proxy": {"X-Adiabat-User": "eve", "X-Adiabat-Scopes": "admin",
                  "X-Adiabat-Proxy-Secret": "guess"},
    }  # fmt: skip
    with make_client(folder) as client:
        tried = 0
        for method, template in routes(application(client)):
            if template in OPEN:
                continue
            for name, headers in bad.items():
                found = client.request(method, address(template), headers=headers)
                expected = {401} if template in SCOPES else {303}
                assert found.status_code in expected, (method, template, name, found.status_code)
                tried += 1
        assert tried > 150
        assert client.get("/v1/models", headers=bearer(keys.admin)).status_code == 200


def test_every_route_refuses_keys_of_other_scopes(folder, keys):
    with make_client(folder) as client:
        for method, template in routes(application(client)):
            needed = SCOPES.get(template)
            if template not in SCOPES or needed is None:
                continue
            for scope, key in keys.all.items():
                if scope in needed or scope == "admin":
                    continue
                found = client.request(method, address(template), headers=bearer(key))
                assert found.status_code == 403, (method, template, scope, found.status_code)


def test_every_page_refuses_keys_of_other_scopes(folder, keys):
    with make_client(folder) as client:
        for scope, key in keys.all.items():
            client.cookies.clear()
            assert client.post("/sign-in", data={"key": key}).status_code == 303
            for method, template in routes(application(client)):
                needed = PAGES.get(template)
                if needed is None or scope in needed or scope == "admin":
                    continue
                params = {"reference": "x"} if template.endswith("receipt") else {}
                found = client.request(method, address(template), params=params)
                assert found.status_code == 403, (method, template, scope)


def test_decision_values_are_for_those_who_review(folder, keys):
    with make_client(folder) as client:
        send = {"json": {"rows": rows_of(0, 3)}}
        plain = client.post(f"{M}/predictions", headers=bearer(keys.predict), **send).json()
        assert all("decision" not in row for row in plain["predictions"])
        full = client.post(f"{M}/predictions", headers=bearer(keys.admin), **send).json()
        assert all("decision" in row for row in full["predictions"])


def test_a_key_is_for_its_models(folder, keys):
    from adiabat.service.keys import KeyRing

    _, other = KeyRing(str(folder)).add("other", ["admin"], ["elsewhere"])
    with make_client(folder) as client:
        assert client.get("/v1/models", headers=bearer(other)).json() == {"models": []}
        for method, template in routes(application(client)):
            if "{m}" in template and template in SCOPES:
                found = client.request(method, address(template), headers=bearer(other))
                assert found.status_code == 404, template


def test_without_keys_only_this_machine_gets_in(folder):
    with make_client(folder, address=("10.0.0.9", 1234)) as client:
        assert client.get("/v1/models").status_code == 401
        assert client.get("/").status_code == 401
    with make_client(folder) as client:
        assert client.get("/v1/models").status_code == 200
        elsewhere = client.get("/v1/models", headers={"Host": "evil.example"})
        assert elsewhere.status_code == 421
        crossed = client.post(
            f"{M}/erasures", json={"ids": ["person-00001"]},
            headers={"Idempotency-Key": "x", "Sec-Fetch-Site": "cross-site"},
        )  # fmt: skip
        assert crossed.status_code == 403


def test_it_listens_elsewhere_only_with_a_key(folder):
    from adiabat.service.server import serve

    with pytest.raises(StoreError, match=r"has no key; make one\s+with adiabat key add"):
        serve(str(folder), "0.0.0.0", 0)


def test_keys_are_kept_hashed_and_private(folder, keys):
    path = folder / ".service" / "keys.json"
    text = path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for key in keys.all.values():
        assert key not in text and key.split("_", 2)[2] not in text


def test_keys_on_the_command_line(tmp_path):
    def call(*words):
        return CliRunner().invoke(cli, ["key", *words, "--folder", str(tmp_path)])

    made = call("add", "desk", "--scopes", "erase,audit", "--expires", "90d", "--json")
    key = json.loads(made.stdout)["key"]
    assert re.fullmatch(r"adiabat_[0-9a-f]{12}_[\w-]{43}", key)
    listed = call("list")
    assert "desk: erase, audit, until " in listed.stdout and key not in listed.stdout
    assert call("add", "desk", "--scopes", "audit").exit_code == 3
    assert call("add", "other", "--scopes", "everything").exit_code == 3
    assert call("add", "other", "--scopes", "audit", "--expires", "2001-01-01").exit_code == 3
    assert call("remove", "desk").exit_code == 0
    assert "There are no keys" in call("list").stdout


def test_a_key_that_is_taken_away_opens_nothing(folder, keys):
    from adiabat.service.keys import KeyRing

    with make_client(folder) as client:
        client.post("/sign-in", data={"key": keys.admin})
        assert client.get("/").status_code == 200
        KeyRing(str(folder)).remove("admin")
        assert client.get("/").status_code == 303
        assert client.get("/v1/models", headers=bearer(keys.admin)).status_code == 401


def test_a_proxy_says_who_it_is_with_its_secret_only(folder, keys):
    from adiabat.service.settings import ServiceSettings

    settings = ServiceSettings(proxy_secret="s" * 40)
    said = {"X-Adiabat-User": "ann", "X-Adiabat-Scopes": "review, nonsense"}
    with make_client(folder, settings) as client:
        assert client.get("/", headers=said).status_code == 303
        wrong = {**said, "X-Adiabat-Proxy-Secret": "x" * 40}
        assert client.get("/", headers=wrong).status_code == 401
        right = {**said, "X-Adiabat-Proxy-Secret": "s" * 40}
        page = client.get("/", headers=right)
        assert page.status_code == 200 and "ann" in page.text
        assert client.get("/models/loans/erasure", headers=right).status_code == 403
