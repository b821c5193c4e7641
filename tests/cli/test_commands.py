# SPDX-License-Identifier: BSD-3-Clause
"""What every command promises: JSON for scripts, and exit codes that say what went wrong."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

import adiabat
from adiabat.cli import output
from adiabat.cli.main import app
from adiabat.store.tasks import TASKS
from store_tools import people


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    people(0, 60).to_csv("rows.csv", index=False)
    people(60, 70).to_csv("more.csv", index=False)
    init = "init m --id name --label good --categorical colour --C 5 --gamma 0.5"
    assert call(init).exit_code == 0
    assert call("learn m rows.csv").exit_code == 0
    return tmp_path


def call(line):
    return CliRunner().invoke(app, line.split())


def ask(line):
    result = call(line + " --json")
    return result.exit_code, json.loads(result.stdout)


def test_a_day_in_json(folder):
    moved = ask("learn m more.csv --dry-run")[1]["moved"]
    assert moved["rows_compared"] == 60 and any(" to " in move for move in moved["sets"])
    assert ask("learn m more.csv --reference march")[1]["entry"] == 3
    assert ask("forget m --id person-00003 --reference DSR-118")[1]["removed"] == 1
    people(4, 5).assign(good="no")[["name", "good"]].to_csv("fix.csv", index=False)
    assert ask("revise m fix.csv")[1]["revised"] == 1
    assert ask("predict m more.csv -o out.parquet")[1]["rows"] == 10
    assert ask("verify m --retrain")[1]["retrained"]["largest_difference"] < 1e-8
    entries = ask("log m")[1]["entries"]
    assert [e["operation"] for e in entries] == ["init", "learn", "learn", "forget", "revise"]
    info = ask("info m")[1]
    assert (info["rows"], info["features"], info["classes"]) == (69, 5, ["no", "yes"])


def test_leaving_out_with_and_without_scaling(folder):
    assert call("init s --id name --label good --ignore colour --scale").exit_code == 0
    assert call("learn s rows.csv").exit_code == 0
    exact, held = ask("loo s --top 3")[1], ask("loo s --hold-scaling")[1]
    assert exact["rows"] == held["rows"] == 60 and len(exact["suspects"]) == 3
    assert exact["suspects"][0]["margin"] != held["suspects"][0]["margin"]
    table = call("loo s").stdout
    assert "predicted" in table and exact["suspects"][0]["id"] in table
    assert "the scaling held" in call("loo s --hold-scaling").stdout
    assert ask("cv s --folds 3")[1]["folds"] == 3
    assert ask("report s -o r.html --hold-scaling")[0] == 0
    assert ask("loo m --hold-scaling")[0] == output.BAD_INPUT


def test_leaving_out_without_labels(folder):
    assert call("init o --task one-class --id name --ignore colour --ignore good").exit_code == 0
    assert call("learn o rows.csv").exit_code == 0
    found = ask("loo o")[1]
    assert found["kind"] == "one class" and 0.0 < found["score"] < 1.0
    said = call("loo o").stdout
    assert "taken for strangers" in said and "stored" not in said
    assert ask("cv o")[0] == output.BAD_INPUT


def test_an_export_has_the_ids_unless_told_not_to(folder):
    assert ask("export m -o a.adiabat")[1]["holds_rows"] is True
    assert call("export m -o b.adiabat --no-ids").exit_code == 0
    assert "person-00000" in adiabat.load("a.adiabat").ids_
    assert adiabat.load("b.adiabat").ids_.dtype == int


def test_ids_from_a_file(folder):
    (folder / "ids.txt").write_text("person-00001\nperson-00002\n")
    assert ask("forget m --ids-file ids.txt")[1]["removed"] == 2


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        ("learn m rows.csv", output.BAD_INPUT, "already"),
        ("learn m nothing.csv", output.BAD_INPUT, "not a file"),
        ("learn nowhere rows.csv", output.STORE, "holds no store"),
        ("forget m --id nobody", output.BAD_INPUT, "'nobody'"),
        ("forget m", output.BAD_INPUT, "--ids-file"),
        ("init m --label good", output.STORE, "not empty"),
        ("init n --label good --task svx", output.BAD_INPUT, "svx"),
        ("init n --label good --C -1", output.BAD_INPUT, "C"),
        ("predict m more.csv -o m/out.csv", output.STORE, "inside the store"),
        ("predict m more.csv -o out.xls", output.BAD_INPUT, "ending"),
        ("predict m more.csv -o nowhere/out.csv", output.STORE, "there is no folder"),
        ("report m -o nowhere/r.html", output.STORE, "there is no folder"),
        ("export m -o .", output.STORE, "is a folder"),
        ("forget m --id person-00001 --reference=", output.BAD_INPUT, "reference is empty"),
        ("init n --label good --categorical a=red,red", output.BAD_INPUT, "none there twice"),
        ("init n --label good --scaling odd", output.BAD_INPUT, "'exact' or 'held'"),
        ("cv m --scoring acuracy", output.BAD_INPUT, "did you mean 'accuracy'"),
    ],
)
def test_an_error_is_a_sentence_and_a_code(folder, line, code, message):
    found, result = ask(line)
    assert found == code == result["exit_code"] and message in result["error"]
    assert not (folder / "m" / "out.csv").exists()


def test_a_damaged_store_fails_the_check(folder):
    path = folder / "m" / "store.sqlite"
    data = path.read_bytes()
    assert data.count(b"person-00042") >= 2  # the table, and its index
    path.write_bytes(data.replace(b"person-00042", b"person-99942", 1))
    code, found = ask("verify m")
    assert code == output.CHECK_FAILED and not found["ok"] and found["problems"]


def test_usage_is_code_two(folder):
    assert call("learn m").exit_code == output.USAGE


def test_the_console_script_is_installed(folder):
    said = subprocess.run(
        [sys.executable, "-c", "from adiabat.cli.main import run; run()", "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout == f"adiabat {adiabat.__version__}\n"


def test_help_comes_without_what_takes_long_to_import():
    code = (
        "import sys; from adiabat.cli.main import app\n"
        "app(['init', '--help'], standalone_mode=False)\n"
        "print({'sklearn', 'scipy', 'numpy', 'sqlalchemy', 'pyarrow'} & set(sys.modules))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.endswith("set()\n")
    for task in TASKS:
        assert task in re.sub(r"[\s│]+", " ", said.stdout)


def test_progress_is_shown_on_a_terminal_and_not_among_the_results(folder, monkeypatch, capsys):
    terminal = Console(stderr=True, force_terminal=True, width=100)
    monkeypatch.setattr(output, "err", terminal)
    with output.working("Learning rows"):
        output.announce("learn: writing")
    shown = capsys.readouterr()
    assert "learn: writing" in shown.err and shown.out == ""


def test_every_exit_code_is_documented():
    text = (Path(__file__).parents[2] / "docs" / "command_line.md").read_text("utf-8")
    codes = {value for name, value in vars(output).items() if name.isupper() and type(value) is int}
    assert codes == {int(code) for code in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)}


def test_what_a_first_file_settles_is_said(folder):
    assert call("init n --id name --label good --categorical colour").exit_code == 0
    said = call("learn n rows.csv").stdout
    assert "Fixed now: colour is one of blue, green, red." in said
    assert "Fixed now: 3 columns of features, income, age, colour." in said


@pytest.mark.parametrize("line", ["log m", "info m", "verify m", "forget m --id person-00001"])
def test_people_read_sentences(folder, line):
    result = call(line)
    assert result.exit_code == 0 and "{" not in result.stdout and result.stdout.strip()


def test_a_file_of_ids_is_never_echoed(folder):
    """A data file given by mistake holds personal data, and an error may end up in a log."""
    people(0, 5).to_csv("data.csv", index=False)
    refused = call("forget m --ids-file data.csv")
    assert refused.exit_code == output.BAD_INPUT
    assert "lines that name no row of the model (line 1, 2, 3, 4, 5, 6)" in refused.stderr
    assert "person-" not in refused.stderr + refused.stdout
    Path("ids.txt").write_text("name\nperson-00001\n\nperson-00002\nperson-00001\n")
    assert ask("forget m --ids-file ids.txt")[1]["removed"] == 2


def test_predictions_and_reports_do_not_overwrite_a_table(folder):
    before = Path("more.csv").read_bytes()
    for line in ("predict m more.csv -o more.csv", "report m -o more.csv"):
        refused = call(line)
        assert refused.exit_code == output.BAD_INPUT and "--force" in refused.stderr
    assert Path("more.csv").read_bytes() == before


def test_what_is_not_signed_does_not_hold_by_signatures(folder):
    said = call("verify m").stdout
    assert "holds: signatures" not in said and "not signed: " in said


def test_the_receipt_on_the_terminal_lists_the_exports(folder):
    call("export m -o model.adiabat")
    call("forget m --id person-00001 --reference DSR-9")
    said = call("receipt m DSR-9").stdout
    assert "While a row was in the model, model.adiabat was written (export, entry 3" in said


def test_a_restored_model_says_what_it_cannot_know(folder):
    head = ask("backup m -o monday")[1]["hash"]
    call("forget m --id person-00001 --reference DSR-9")
    assert "Rows erased after that are back" in call("restore monday n").stdout
    assert ask(f"verify n --expect-head {head}")[0] == output.CHECK_FAILED
    Path("list").write_text("person-00001\n")
    assert "Erased 1 row again." in call("restore monday k --erased-since list").stdout


def test_an_option_that_is_nearly_one_is_suggested(folder):
    refused = call("learn m more.csv --skp-known")
    assert refused.exit_code == output.USAGE and "--skip-known" in refused.stderr
