# SPDX-License-Identifier: BSD-3-Clause
"""A manager's tables as they are: gaps, categories, semicolons, dates, Excel, databases."""

import json
import random
import sqlite3

import numpy as np
import pytest
from typer.testing import CliRunner

import adiabat
from adiabat.cli.main import app

HEADER = "name,age,city,x,since,good\n"


def call(*words, stdin=None):
    return CliRunner().invoke(app, list(words), input=stdin)


def ask(*words):
    result = call(*words, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def rows(first, last):
    chance = random.Random(first)
    return "".join(
        f"P{i},{chance.choice([30, 40, 55, ''])},{chance.choice(['Bern', 'Chur', ''])},"
        f"{chance.random():.3f},20{10 + i % 10}-03-01,{'yes' if i % 3 else 'no'}\n"
        for i in range(first, last)
    )


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text(HEADER + rows(0, 30))
    return tmp_path


@pytest.mark.parametrize("task", ["svc", "lssvc"])
def test_a_walk_with_categories_and_gaps_from_init_to_receipt(folder, task):
    made = call("init", "m", "--task", task, "--from", "a.csv", "--label", "good")
    assert made.exit_code == 0, made.output
    for said in (
        "id: name",
        "number: age (",
        "category: city (2 values",
        "date: since",
        "label: good",
    ):
        assert said in made.output
    assert ask("learn", "m", "a.csv")["added"] == 30
    (folder / "b.csv").write_text(HEADER + "Q1,33,Olten,0.5,2020-01-01,yes\nQ2,,Davos,,,no\n")
    assert ask("learn", "m", "b.csv")["added"] == 2
    assert ask("learn", "m", "b.csv", "--skip-known")["entry"] is None
    (folder / "c.csv").write_text(HEADER + "Q1,34,Olten,0.5,2020-01-01,yes\n")
    assert "are in the store already" in call("learn", "m", "c.csv", "--skip-known").output
    done = ask("forget", "m", "--id", "Q1")
    city = next(c for c in ask("columns", "m")["features"] if c["name"] == "city")
    assert "Olten" not in city["values"] and "Davos" in city["values"]
    again = call("forget", "m", "--id", "Q1")
    assert again.exit_code == 3 and "already erased" in again.output
    assert done["reference"] in again.output and "UTC" in again.output
    assert call("receipt", "m", done["reference"]).exit_code == 0
    (folder / "fix.csv").write_text("name,city\nQ2,Zug\n")
    assert ask("revise", "m", "fix.csv")["revised"] == 1
    assert "Davos" not in str(ask("columns", "m")["features"])
    added = call("columns", "m", "--add", "income")
    assert "Added a column" in added.output and "number: income" in added.output
    (folder / "fix.csv").write_text("name,income\nP3,12.5\nP4,99\n")
    assert ask("revise", "m", "fix.csv")["revised"] == 2
    checked = ask("verify", "m", "--retrain")
    assert checked["ok"] and checked["retrained"]["largest_difference"] < 1e-9
    retune = "retune m --C 3" if task == "svc" else "retune m --rho 3"
    for line in ("report m -o r.html", "loo m --hold-scaling", retune, "export m -o e"):
        assert call(*line.split()).exit_code == 0, line
    assert len(adiabat.load("e")._model) == 31


def test_all_problems_are_listed_at_once(folder):
    (folder / "bad.csv").write_text(HEADER + "Q1,3,a,1,2020-01-01,yes\nQ1,,b,,2020-01-01,\n")
    found = call("init", "m", "--from", "bad.csv", "--id", "name", "--label", "good").output
    assert "1 id in 'name' more than once" in found and "1 row without a label" in found
    found = call("init", "m", "--from", "a.csv", "--label", "goood").output
    assert "did you mean 'good'?" in found and not (folder / "m").exists()


def german(i):
    return f"K{i};{20 + i};{i},5;0{1 + i % 9}.03.2020;{'ja' if i % 3 else 'nein'}\n"


def test_semicolons_decimal_commas_dates_streams_and_packed_files(folder):
    text = "kunde;alter;betrag;seit;gut\n" + "".join(map(german, range(12)))
    (folder / "a.csv").write_text(text)
    assert call("init", "m", "--id", "kunde", "--label", "gut", "--scale").exit_code == 0
    assert ask("learn", "m", "a.csv")["added"] == 12
    X = adiabat.open_store("m").rows().X
    assert X[3].tolist() == [23.0, 3.5, 18_325.0]  # 2020-03-04
    printed = call("predict", "m", "a.csv").stdout
    assert printed.splitlines()[0] == '"kunde","prediction","decision"'
    assert call("predict", "m", "-", stdin=text).stdout == printed
    for name in ("p.csv.zst", "p.csv.gz", "p.xlsx", "p.tsv"):
        assert call("predict", "m", "a.csv", "-o", name).exit_code == 0
    assert call("init", "n", "--id", "kunde", "--ignore", "decision", "--task", "one-class",
                "--categorical", "prediction").exit_code == 0  # fmt: skip
    for name in ("p.csv.zst", "p.csv.gz", "p.xlsx", "p.tsv"):
        found = call("learn", "n", name, "--dry-run")
        assert found.exit_code == 0 and "12 rows" in found.output, found.output
    more = "kunde,alter,betrag,seit,gut\nQ1,33,4.5,2020-03-04,ja\n"
    assert call("learn", "m", "-", stdin=more).exit_code == 0
    near = call("learn", "m", "-", stdin=more.replace("betrag", "Betrage"))
    assert "did you mean 'betrag'?" in near.output


def test_rows_of_a_database(folder):
    base = sqlite3.connect("x.db")
    base.execute("create table t (name text, a real, b real, good text)")
    rng = np.random.default_rng(0)
    for i, (a, b) in enumerate(rng.normal(size=(12, 2)).tolist()):
        base.execute("insert into t values (?, ?, ?, ?)", (f"P{i}", a, b, "ja" if a > 0 else "no"))
    base.commit()
    base.close()
    assert call("init", "m", "--id", "name", "--label", "good").exit_code == 0
    assert ask("learn", "m", "--sql", "sqlite:///x.db", "t")["added"] == 12
    found = ask("predict", "m", "--sql", "sqlite:///x.db", "select * from t where name = 'P1'")
    assert found["columns"]["name"] == ["P1"]
    assert "cannot be carried out" in call("learn", "m", "--sql", "sqlite:///x.db", "u v").output
    assert call("learn", "m").exit_code == 2
    folds = ask("cv", "m", "--shuffle", "--scoring", "f1", "--positive-label", "ja", "--folds", "3")
    assert len(folds["scores"]) == 3
    wrong = call("cv", "m", "--scoring", "f1", "--positive-label", "maybe")
    assert wrong.exit_code == 3 and "'ja', 'no'" in wrong.output
