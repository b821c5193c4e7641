# SPDX-License-Identifier: BSD-3-Clause
"""An engineer's year with a store: nightly files, erasures, a backup, a crash, a new release."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import adiabat
from adiabat.cli.main import app
from adiabat.store import migrations, schema
from store_tools import people

GOLDEN = Path(__file__).parents[1] / "store" / "golden" / "v1"


def call(line):
    result = CliRunner().invoke(app, [*line.split(), "--json"])
    assert result.exit_code == 0, f"{line}\n{result.output}"
    return json.loads(result.stdout)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_nightly_files_thirty_erasures_backup_and_restore(folder):
    call("init m --task svc --id name --label good --categorical colour --C 5")
    for night in range(2):  # a job that is tried again does nothing
        people(60 * night, 60 * night + 60).to_csv("night.csv", index=False)
        assert call("learn m night.csv --skip-known")["added"] == 60
        assert call("learn m night.csv --skip-known")["entry"] is None
    gone = [f"person-{3 * number:05d}" for number in range(30)]
    with adiabat.open_store("m") as store:
        for name in gone[:15]:
            assert store.forget(name, reference=f"case {name}").removed == 1
    kept = call("backup m -o friday.backup")
    assert call(f"verify m --expect-head {kept['hash']}")["ok"]
    erased = gone[15:]
    with adiabat.open_store("m") as store:
        for name in erased[:-2]:
            store.forget(name, reference=f"case {name}")
    Path("batch.txt").write_text("\n".join(erased[-2:]))
    assert call("forget m --ids-file batch.txt --reference late")["removed"] == 2
    Path("erased.csv").write_text("id,reference\n" + "".join(f"{name},late\n" for name in erased))
    people(120, 130).to_csv("night.csv", index=False)
    call("learn m night.csv")

    shutil.rmtree("m")  # the disk is gone, and with it what came after the backup
    restored = call("restore friday.backup m --erased-since erased.csv")
    assert restored["erased_again"] == len(erased)
    assert call("learn m night.csv --skip-known")["added"] == 10
    found = call("verify m --retrain")
    assert found["ok"] and found["rows"] == 120 - 30 + 10
    assert found["retrained"]["largest_difference"] < 1e-9
    assert call("receipt m late")["reference"] == "late"

    rows = people(0, 130)
    call("init again --task svc --id name --label good --categorical colour --C 5")
    rows[~rows.name.isin(gone)].to_csv("all.csv", index=False)
    call("learn again all.csv")
    questions = people(300, 340)
    left, right = (adiabat.open_store(name).predict(questions) for name in ("m", "again"))
    np.testing.assert_array_equal(left["prediction"], right["prediction"])


def test_a_store_of_an_older_release_is_upgraded_and_goes_on(folder, monkeypatch):
    shutil.copytree(GOLDEN, "m")
    before = adiabat.open_store("m").predict(people(300, 340))
    monkeypatch.setattr(schema, "SCHEMA_VERSION", schema.SCHEMA_VERSION + 1)
    step = migrations.Step(
        "weights are written anew",
        lambda connection: connection.exec_driver_sql("UPDATE records SET weight = weight"),
    )
    monkeypatch.setitem(migrations.STEPS, schema.SCHEMA_VERSION - 1, step)
    said = CliRunner().invoke(app, ["verify", "m", "--retrain"])
    assert said.exit_code == 0, said.output
    assert "weights are written anew" in said.output
    assert (folder / "m" / "store-before-schema-1.sqlite").exists()
    after = adiabat.open_store("m").predict(people(300, 340))
    np.testing.assert_array_equal(before["prediction"], after["prediction"])
    people(100, 105).to_csv("night.csv", index=False)
    assert call("learn m night.csv")["added"] == 5
    assert call("forget m --id person-00002 --reference D-1")["removed"] == 1
    assert not (folder / "m" / "store-before-schema-1.sqlite").exists()
    assert call("verify m --retrain")["ok"]
