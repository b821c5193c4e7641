# SPDX-License-Identifier: BSD-3-Clause
"""A desk with one model, and somebody to ask it."""

import shutil
from types import SimpleNamespace

import pytest

import adiabat
from store_tools import people

fastapi = pytest.importorskip("fastapi")


@pytest.fixture(scope="session")
def golden(tmp_path_factory):
    """A folder with one model; copied, since making it takes longer."""
    folder = tmp_path_factory.mktemp("golden")
    store = adiabat.create_store(
        folder / "loans", id="name", label="good", categories={"colour": None}, C=5.0, gamma=0.5
    )
    store.learn(people(0, 60), reference="first")
    store.close()
    return folder


@pytest.fixture
def folder(golden, tmp_path):
    return shutil.copytree(golden, tmp_path / "desk")


def make_client(folder, settings=None, address=("127.0.0.1", 1234), **options):
    from fastapi.testclient import TestClient

    from adiabat.service.app import make_app
    from adiabat.service.desk import Desk

    desk = Desk(str(folder), settings)
    client = TestClient(
        make_app(desk), base_url="http://localhost", client=address,
        raise_server_exceptions=False, follow_redirects=False, **options,
    )  # fmt: skip
    client.desk = desk
    return client


@pytest.fixture
def client(folder):
    with make_client(folder) as made:
        yield made


@pytest.fixture
def keys(folder):
    """A key of each scope, by its name."""
    from adiabat.service.keys import SCOPES, KeyRing

    ring = KeyRing(str(folder))
    found = {scope: ring.add(scope, [scope])[1] for scope in SCOPES}
    return SimpleNamespace(**found, all=found)


def bearer(key):
    return {"Authorization": f"Bearer {key}"}


def rows_of(start, stop, columns=None):
    """Rows for a body, as JSON has them."""
    frame = people(start, stop)
    return frame[columns or list(frame)].to_dict("records")
