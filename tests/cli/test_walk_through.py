# SPDX-License-Identifier: BSD-3-Clause
"""The walk-through of the README does what the README says, on a real CSV."""

import doctest
import re
import shlex
from pathlib import Path

import pytest
from sklearn.datasets import load_breast_cancer
from typer.testing import CliRunner

from adiabat.cli.main import app

ROOT = Path(__file__).parents[2]


def steps(text):
    """(command, expected output) of every console block; `...` stands for any text."""
    found = []
    for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, expected = part.partition("\n")
            found.append((command, expected))
    return found


def write_tables():
    frame = load_breast_cancer(as_frame=True).frame
    frame.insert(0, "patient", [f"P{i:03d}" for i in range(len(frame))])
    frame[:500].to_csv("patients.csv", index=False)
    frame[500:].to_csv("march.csv", index=False)
    wrong = frame.loc[[99], ["patient", "target"]]
    wrong.assign(target=1 - wrong.target).to_csv("corrections.csv", index=False)


def test_the_walk_through_prints_what_the_readme_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    write_tables()
    taken = steps((ROOT / "README.md").read_text("utf-8"))
    assert len(taken) > 5
    for command, expected in taken:
        words = shlex.split(command)
        if words[0] != "adiabat":
            continue
        result = CliRunner().invoke(app, words[1:])
        assert result.exit_code == 0, f"{command}\n{result.output}"
        agrees = doctest.OutputChecker().check_output(
            expected, result.stdout, doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        )
        assert agrees, f"{command}\nREADME: {expected}\nfound: {result.stdout}"


@pytest.mark.parametrize("command", sorted(c.callback.__name__ for c in app.registered_commands))
def test_every_command_is_documented_and_has_help(command):
    assert f"## {command}\n" in (ROOT / "docs" / "command_line.md").read_text("utf-8")
    result = CliRunner().invoke(app, [command, "--help"])
    assert result.exit_code == 0
    assert "--json" in result.output or command == "serve"  # it prints nothing
