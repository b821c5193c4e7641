# SPDX-License-Identifier: BSD-3-Clause
"""The walk-through of docs/service.md does what it says; the files to deploy with are sound."""

import configparser
import doctest
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from adiabat.cli.main import app as cli
from store_tools import people

from service.conftest import make_client

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "service.md").read_text("utf-8")


def steps():
    for block in re.findall(r"```console\n(.*?)```", TEXT, re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, expected = part.partition("\n")
            yield command, expected


def curl(client, words, folder):
    method, url, headers, body = "GET", "", {}, None
    words = iter(words)
    for word in words:
        if word == "-H":
            name, _, value = next(words).partition(": ")
            headers[name] = value
        elif word in ("-d", "--data-binary"):
            method, body = "POST", next(words)
            if body.startswith("@"):
                body = (folder / body[1:]).read_text()
        else:
            url = word.removeprefix("localhost:8000")
    found = client.request(method, url, headers=headers, content=body)
    assert found.is_success, found.text
    return found.text


def test_the_walk_through_answers_what_the_page_says(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    people(60, 70).to_csv(tmp_path / "march.csv", index=False)
    check, client, ran = doctest.OutputChecker(), None, 0
    try:
        for command, expected in steps():
            words = shlex.split(command)
            if words[:2] == ["adiabat", "key"]:
                said = CliRunner().invoke(cli, words[1:]).stdout
                monkeypatch.setenv("KEY", said.splitlines()[0])
                key = said.splitlines()[0]
            elif words[0] == "adiabat":
                client = make_client(folder)
                client.__enter__()
                continue
            else:
                said = curl(client, [w.replace("$KEY", key) for w in words[1:]], tmp_path) + "\n"
            assert check.check_output(expected, said, doctest.ELLIPSIS), (command, said)
            ran += 1
    finally:
        if client is not None:
            client.__exit__(None, None, None)
    assert ran == 9


def test_every_route_and_limit_is_in_the_page(client):
    from dataclasses import fields

    from adiabat.service.settings import Limits

    from service.test_access import SCOPES

    for path in SCOPES:
        last = path.split("/")[-1].replace(":path", "")
        assert last in TEXT, path
    assert all(f"\n{field.name} = " in TEXT for field in fields(Limits))


def test_the_settings_of_the_page_are_read(tmp_path):
    from adiabat.service.settings import Limits, ServiceSettings

    [text] = re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)
    (tmp_path / "service.toml").write_text(text)
    (tmp_path / "proxy.secret").write_text("s" * 64)
    found = ServiceSettings.read(str(tmp_path))
    assert found.limits == Limits() and found.hosts == ("desk.example.org",)


def test_the_files_to_deploy_with_are_sound():
    docker = (ROOT / "deploy" / "Dockerfile").read_text()
    assert docker.count("\nVOLUME ") == 1 and "\nUSER adiabat\n" in docker
    yaml = pytest.importorskip("yaml")
    compose = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text())
    assert compose["services"]["desk"]["build"]["dockerfile"] == "deploy/Dockerfile"
    unit = configparser.ConfigParser(strict=False, delimiters="=")
    unit.optionxform = str
    unit.read(ROOT / "deploy" / "adiabat.service")
    assert unit["Service"]["ExecStart"].split()[1] == "serve"
    for text in (docker.rpartition("CMD")[2], unit["Service"]["ExecStart"]):
        assert "--log-json" in text
