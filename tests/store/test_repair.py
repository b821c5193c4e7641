# SPDX-License-Identifier: BSD-3-Clause
"""A store never keeps a model that is not the optimum, and one that holds it has a way out."""

import sqlite3
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

import adiabat
from adiabat.archive import unpack_archive
from adiabat.cli import output
from adiabat.cli.main import app
from adiabat.store.tasks import TASKS
from store_tools import people, plant_model


def spoil(manifest, arrays):
    """Weights that no solver found, in whichever arrays the estimator keeps them."""
    for name in ("machine0_u", "machine.machine0_u", "solution", "alpha"):
        if name in arrays:
            arrays[name] = 0.5 * arrays[name]


def filled(tmp_path, task, **settings):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 3))
    y = {"class": (X[:, 0] > 0).astype(int), "number": X[:, 0], None: None}[TASKS[task].target]
    store = adiabat.create_store(tmp_path / "m", task, label=None if y is None else "y", **settings)
    store.learn(X, y, ids=range(40))
    store.forget([3, 4])
    return store


def spoiled_verb(monkeypatch, verb):
    """Have the estimator's verb report a certificate that is not ok."""
    plain = getattr(adiabat.SVC, verb)

    def spoiled(self, *arguments, **named):
        found = plain(self, *arguments, **named)
        report = self.last_update_
        self.last_update_ = replace(
            report, certificate=replace(report.certificate, ok=False, residual=1.0)
        )
        return found

    monkeypatch.setattr(adiabat.SVC, verb, spoiled)


@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize(
    ("verb", "call"),
    [
        ("partial_fit", lambda s, dry: s.learn(people(60, 70), dry_run=dry)),
        ("forget", lambda s, dry: s.forget("person-00001", dry_run=dry)),
        ("revise", lambda s, dry: s.revise(people(4, 5).assign(good="no"), dry_run=dry)),
        ("retune", lambda s, dry: s.retune(C=2.0, dry_run=dry)),
        ("refresh", lambda s, dry: s.refresh(dry_run=dry)),
    ],
)
def test_a_model_short_of_the_optimum_is_never_committed(store, monkeypatch, verb, call, dry_run):
    before = store.verify().head
    with monkeypatch.context() as patched:
        spoiled_verb(patched, verb)
        with pytest.raises(adiabat.NotOptimalError, match="nothing was changed") as caught:
            call(store, dry_run)
        assert caught.value.certificate.residual == 1.0
    after = store.verify(retrain=True)
    assert after.ok and after.head == before
    call(store, dry_run)  # and the handle is as good as before


def test_forget_on_the_command_line_fails_where_the_optimum_is_not_reached(store, monkeypatch):
    spoiled_verb(monkeypatch, "forget")
    result = CliRunner().invoke(app, ["forget", store.path, "--id", "person-00001"])
    assert result.exit_code == output.NOT_OPTIMAL
    assert "NOT the optimum" not in result.stdout and "nothing was changed" in result.stderr
    assert "person-00001" in store.ids


@pytest.mark.parametrize("task", TASKS)
def test_a_store_with_a_wrong_model_says_so_and_is_repaired(tmp_path, task):
    store = filled(tmp_path, task, **({"gamma": 0.3} if TASKS[task].keeps_rows else {}))
    questions = {f"x{k}": np.linspace(-1, 1, 5) for k in range(3)}
    expected = store.predict(questions)["prediction"]
    plant_model(store.path, spoil)
    opened = adiabat.open_store(store.path)
    assert len(opened) == 38  # what does not need the model is there
    uses = (lambda: opened.model, lambda: opened.forget([7]), lambda: opened.predict(questions))
    for use in uses:
        with pytest.raises(adiabat.StoreDamagedError, match=r"cannot be used.*adiabat repair"):
            use()
    found = opened.verify()
    assert not found.ok and found.repairable
    done = opened.repair(reference="ticket 9")
    assert done.entry == 4 and done.certificate["ok"] and done.found == found.problems
    entry = opened.log()[-1]
    assert (entry.operation, entry.body["reference"]) == ("repair", "ticket 9")
    assert entry.body["details"]["refitted"] == 38 and entry.body["details"]["failed"]
    assert adiabat.open_store(store.path).verify(retrain=True).ok
    assert np.allclose(opened.predict(questions)["prediction"], expected, atol=1e-6)
    assert opened.forget([7]).removed == 1


@pytest.mark.parametrize("scale", ["exact", "held"])
def test_a_scaled_model_is_repaired(tmp_path, scale):
    store = filled(tmp_path, "svc", scale=scale)
    plant_model(store.path, spoil)
    assert store.repair().certificate["ok"]
    assert adiabat.open_store(store.path).verify(retrain=True).ok


def test_damaged_bytes_of_the_model_are_repaired(store):
    with sqlite3.connect(f"{store.path}/store.sqlite") as connection:
        connection.execute("UPDATE state SET model = zeroblob(100)")
    connection.close()
    assert adiabat.open_store(store.path).repair().entry == 3
    assert store.verify(retrain=True).ok


def test_damaged_rows_are_not_repaired(store):
    with sqlite3.connect(f"{store.path}/store.sqlite") as connection:
        connection.execute("UPDATE records SET weight = 2.0 WHERE number = 7")
    connection.close()
    with pytest.raises(adiabat.StoreDamagedError, match=r"cannot be repaired.*restore"):
        adiabat.open_store(store.path).repair()
    assert len(adiabat.open_store(store.path).log()) == 2


def test_a_sound_model_is_left_as_it_is(store):
    done = store.repair()
    assert done.entry is None and done.found == [] and len(store.log()) == 2


def test_repair_on_the_command_line(store):
    plant_model(store.path, spoil)
    assert "adiabat repair" in CliRunner().invoke(app, ["verify", store.path]).stdout
    failed = CliRunner().invoke(app, ["info", store.path])
    assert failed.exit_code == output.STORE and "adiabat repair" in failed.stderr
    done = CliRunner().invoke(app, ["repair", store.path, "--reference", "R"])
    assert done.exit_code == 0 and "Fitted again from 60 rows" in done.stdout
    assert "Found: model against its digest" in done.stdout
    again = CliRunner().invoke(app, ["repair", store.path])
    assert again.exit_code == 0 and "nothing was written" in again.stdout


@pytest.mark.parametrize("task", ["lssvc", "lssvr"])
def test_a_model_of_other_rows_is_noticed_though_it_keeps_none(tmp_path, task):
    """It is the optimum of its own moments; only a refit tells that they are of other rows."""
    ours = filled(tmp_path / "ours", task)
    theirs = filled(tmp_path / "theirs", task)
    theirs.learn(np.ones((2, 3)), [0, 1], ids=[50, 51])
    theirs.forget([5, 6])
    with closing(sqlite3.connect(f"{theirs.path}/store.sqlite")) as connection:
        ((blob,),) = connection.execute("SELECT model FROM state").fetchall()
    manifest, arrays = unpack_archive(blob, "theirs")

    def exchange(own_manifest, own_arrays):
        for own, other in ((own_manifest, manifest), (own_arrays, arrays)):
            own.clear()
            own.update(other)

    plant_model(ours.path, exchange)
    found = adiabat.open_store(ours.path).verify()
    assert "from a model fitted anew" in str(found.problems) and found.repairable
