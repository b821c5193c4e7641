# SPDX-License-Identifier: BSD-3-Clause
"""Every option of every command, and the proof that it changes the result.

A row of `PROOFS` is a command with an option, and what must then be another than without it. An
option without a row fails `test_every_option_has_its_proof`.
"""

import json
import os
import shutil
import sqlite3
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import typer
from typer.testing import CliRunner

import adiabat
from adiabat.cli.main import app
from adiabat.store.lock import writing
from store_tools import people, plant_model, write_keys

INIT = "init m --id name --label good --ignore colour"
#: A command that makes and teaches a model for what the option is about.
NUMBERS = "--task svr --label income --ignore good"
STRANGERS = "init m --id name --ignore colour --ignore good"
VARYING = ("time", "hash", "seconds", "model_seconds", "head", "sha256", "bytes", "issued")


def call(line, code=0):
    words = line if isinstance(line, list) else line.split()
    result = CliRunner().invoke(app, words)
    assert result.exit_code == code, f"{line}\n{result.output}"
    return result


def ask(line, code=0):
    return json.loads(call(f"{line} --json", code).stdout)


def steady(value):
    """A result without what differs from run to run."""
    if isinstance(value, dict):
        return {key: steady(item) for key, item in value.items() if key not in VARYING}
    return [steady(item) for item in value] if isinstance(value, list) else value


@pytest.fixture(scope="module")
def pristine(tmp_path_factory):
    """Files, keys and models that the proofs start from."""
    folder = tmp_path_factory.mktemp("options")
    before = os.getcwd()
    os.chdir(folder)
    try:
        rows = people(0, 60).assign(force=np.linspace(0.25, 2.0, 60))
        rows.to_csv("rows.csv", index=False)
        people(60, 70).assign(force=1.0).to_csv("more.csv", index=False)
        people(60, 70).assign(force=1.0).to_csv("tildes.csv", index=False, sep="~")
        fix = people(4, 5).assign(good="no" if people(4, 5).good[0] == "yes" else "yes")
        fix[["name", "good"]].to_csv("fix.csv", index=False)
        fix[["name", "good"]].to_csv("fix-tildes.csv", index=False, sep="~")
        fix.assign(income=7.25)[["name", "income"]].to_csv(
            "fix-commas.csv", index=False, sep=";", decimal=","
        )
        people(60, 70).assign(force=1.0).to_csv("commas.csv", index=False, sep=";", decimal=",")
        Path("ids.txt").write_text("person-00001\n\nperson-00002\n  \n")
        write_keys(folder, "ours")
        write_keys(folder, "other")
        Path("marks").write_text(os.urandom(32).hex())
        call("init base --id name --label good --ignore colour --ignore force --gamma 0.5")
        call("learn base rows.csv")
        call("init scaled --id name --label good --ignore colour --ignore force --scale")
        call("learn scaled rows.csv")
        call("init signed --id name --label good --ignore colour --ignore force "
             "--signing-key ours.pem")  # fmt: skip
        call("learn signed rows.csv --signing-key ours.pem")
        call("init marked --id name --label good --ignore colour --ignore force "
             "--suppression-key marks")  # fmt: skip
        call("learn marked rows.csv --suppression-key marks")
        for name in ("base", "signed"):
            key = " --signing-key ours.pem" if name == "signed" else ""
            call(f"forget {name} --id person-00050 --reference DSR-1{key}")
    finally:
        os.chdir(before)
    return folder


@pytest.fixture
def folder(pristine, tmp_path, monkeypatch):
    shutil.copytree(pristine, tmp_path / "work")
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path / "work"


def decisions(name="m"):
    found = adiabat.open_store(name).predict("rows.csv")
    return np.asarray(found.get("decision", found["prediction"]), dtype=float)


def learned(line):
    shutil.rmtree("m", ignore_errors=True)
    call(line)
    call("learn m rows.csv")
    return decisions()


# -- kinds of proofs -----------------------------------------------------------------------------


def parameter(name, first, second, line, option=None, same=False):
    """A parameter of `init` that reaches the estimator, and moves its decisions."""
    option = option or f"--{name.replace('_', '-')}"

    def prove():
        found = []
        for value in (first, second):
            found.append(learned(f"{line} --ignore force {option} {value}"))
            settings = adiabat.open_store("m").settings.parameters
            assert str(settings[name]) == str(value) or float(settings[name]) == float(value)
        assert same or np.abs(found[0] - found[1]).max() > 1e-6

    return prove


def retuned(name, value, line, option=None):
    """A parameter that `retune` moves, as if the model had had it from the first."""
    option = option or f"--{name.replace('_', '-')}"

    def prove():
        before = learned(f"{line} --ignore force")
        done = ask(f"retune m {option} {value}")
        assert done["certificate"]["ok"] and np.abs(decisions() - before).max() > 1e-6
        after = decisions()
        assert np.abs(after - learned(f"{line} --ignore force {option} {value}")).max() < 1e-6

    return prove


def differs(without, given, code=0):
    """Two command lines whose results differ; each begins with the files as they were."""

    def prove():
        shutil.copytree(".", "../again")
        first = call(f"{without} --json", code)
        os.chdir("../again")
        second = call(f"{given} --json", code)
        assert steady(json.loads(first.stdout)) != steady(json.loads(second.stdout))

    return prove


def logged(line):
    """A reference is kept in the log, and without it there is none."""

    def prove():
        call(f"{line} --reference why")
        model = line.split()[1]
        assert ask(f"log {model}")["entries"][-1]["reference"] == "why"

    return prove


def unchanged(line):
    """A dry run leaves the log as it was, and says what would move."""

    def prove():
        model = line.split()[1]
        before = len(ask(f"log {model}")["entries"])
        assert ask(f"{line} --dry-run")["moved"] is not None
        assert len(ask(f"log {model}")["entries"]) == before
        call(line)
        assert len(ask(f"log {model}")["entries"]) == before + 1

    return prove


HALF_OF_THE_DEFAULT_WAIT = 30.0


def waits(line):
    """How long a command waits for a store that another is changing."""

    def prove():
        model = line.split()[1]
        for seconds in (0.0, 0.3):
            with writing(model, "learn", 0.0):
                started = time.monotonic()
                said = call(f"{line} --wait {seconds}", code=5)
                waited = time.monotonic() - started
            assert f"wait longer than {seconds:g} seconds" in said.stderr
            assert seconds <= waited < HALF_OF_THE_DEFAULT_WAIT
        call(line)

    return prove


def signs(line):
    """A change of a signed model needs the key; of an unsigned one, word that it is not needed."""

    def prove():
        given = line.replace("base", "signed", 1)
        call(given, code=4)
        call(f"{given} --signing-key other.pem", code=4)
        call(f"{given} --signing-key ours.pem")

    return prove


def passes_over(line):
    def prove():
        call(f"{line} --signing-key ours.pem", code=4)
        call(f"{line} --signing-key ours.pem --allow-unsigned")

    return prove


def in_json(line):
    """One JSON object instead of sentences."""

    def prove():
        shutil.copytree(".", "../again")
        with pytest.raises(json.JSONDecodeError):
            json.loads(call(line).stdout)
        os.chdir("../again")
        assert isinstance(json.loads(call(f"{line} --json").stdout), dict)

    return prove


# -- proofs of their own -------------------------------------------------------------------------


def init_task():
    call(f"init m --task svr --id name --label income --ignore colour --ignore good")  # noqa: F541
    assert type(adiabat.open_store("m").model).__name__ == "SVR"
    call("init n --id name --label good")
    assert type(adiabat.open_store("n").model).__name__ == "SVC"


def init_id():
    call("init m --label good", 0)
    call("learn m rows.csv", code=3)  # there is no column id
    call("init n --label good --id name --ignore colour")
    call("learn n rows.csv")
    assert adiabat.open_store("n").ids[0] == "person-00000"


def init_label():
    call("init m --id name", code=3)
    call("init m --id name --label good --ignore colour")
    call("learn m rows.csv")
    assert adiabat.open_store("m").model.classes_.tolist() == ["no", "yes"]


def init_weight():
    plain = learned(f"{INIT} --ignore force --gamma 0.5")
    weighted = learned(f"{INIT} --weight force --gamma 0.5")
    assert np.abs(plain - weighted).max() > 1e-6
    assert adiabat.open_store("m").rows().weights[0] == 0.25


def init_ignore():
    call("init m --id name --label good --gamma 0.5")
    call("learn m rows.csv", code=3)  # colour is no number
    assert len(learned(f"{INIT} --gamma 0.5")) == 60
    assert adiabat.open_store("m").settings.n_features == 3


def init_categorical():
    call("init m --id name --label good --ignore force --categorical colour=blue,green,red,violet")
    call("learn m rows.csv")
    assert adiabat.open_store("m").settings.n_features == 6
    call("init n --id name --label good --ignore force --categorical colour")
    call("learn n rows.csv")
    assert adiabat.open_store("n").settings.n_features == 5


def init_classes():
    call(f"{INIT} --classes no,maybe")
    call("learn m rows.csv", code=3)
    call(f"{INIT.replace(' m ', ' n ')} --classes no,yes")
    call("learn n rows.csv")


def init_scale():
    plain, scaled = learned(INIT), learned(f"{INIT} --scale")
    assert np.abs(plain - scaled).max() > 1e-6
    assert adiabat.open_store("m").settings.scale == "exact"


def init_scaling():
    for mode in ("exact", "held"):
        learned(f"{INIT} --scaling {mode}")
        assert adiabat.open_store("m").settings.scale == mode
        held = adiabat.open_store("m").info()["certificate"]["held_fixed"]
        assert bool(held) == (mode == "held")


def init_signing_key():
    call(f"{INIT} --signing-key ours.pem")
    assert adiabat.open_store("m").info()["signed"] is True
    assert adiabat.open_store("base").info()["signed"] is False


def init_suppression_key():
    call(f"{INIT} --suppression-key marks")
    assert adiabat.open_store("m").settings.pepper == ""
    assert adiabat.open_store("base").settings.pepper != ""


def init_seed():
    line = "init m --id name --label good --ignore colour --task lssvc --kernel rbf --gamma 0.5"
    found = [learned(f"{line} --ignore force --seed {seed}") for seed in (1, 2)]
    assert np.abs(found[0] - found[1]).max() > 1e-6


def init_class_weight():
    found = [learned(f"{SVC} --ignore force{more}") for more in ("", " --class-weight balanced")]
    assert np.abs(found[0] - found[1]).max() > 1e-6


def init_calibration():
    call("predict base rows.csv -o plain.csv")
    learned(f"{SVC} --ignore force --calibration sigmoid")
    call("predict m rows.csv -o sure.csv")
    found = pd.read_csv("sure.csv")
    assert found["confidence"].between(0.0, 1.0).all()
    assert "confidence" not in pd.read_csv("plain.csv")


def init_tol():
    learned(f"{INIT} --tol 1e-7")
    assert adiabat.open_store("m").model.tol == 1e-7
    assert adiabat.open_store("base").model.tol == 1e-9


def learn_allow_erased():
    call("forget base --id person-00001")
    people(1, 2).to_csv("back.csv", index=False)
    rows = people(1, 2).assign(force=1.0)
    rows.to_csv("back.csv", index=False)
    call("learn base back.csv", code=3)
    assert ask("learn base back.csv --allow-erased")["added"] == 1


def learn_suppression_key():
    call("forget marked --id person-00001 --suppression-key marks")
    call("learn marked more.csv", code=4)
    assert ask("learn marked more.csv --suppression-key marks")["added"] == 10


def forget_ids():
    assert ask("forget base --id person-00001 --id person-00002")["removed"] == 2
    call("forget base", code=3)


def forget_ids_file():
    assert ask("forget base --ids-file ids.txt")["removed"] == 2
    assert "person-00001" not in adiabat.open_store("base").ids


def forget_missing():
    call("forget base --id nobody", code=3)
    assert ask("forget base --id nobody --missing ignore")["removed"] == 0


def forget_no_suppress():
    rows = people(1, 3).assign(force=1.0)
    rows.to_csv("back.csv", index=False)
    call("forget base --id person-00001")
    call("forget base --id person-00002 --no-suppress")
    refused = ask("learn base back.csv", code=3)["error"]
    assert "person-00001" in refused and "person-00002" not in refused
    call("learn base back.csv --allow-erased")
    call("forget base --id person-00001 --id person-00002 --suppress")
    assert "person-00002" in ask("learn base back.csv", code=3)["error"]


def forget_suppression_key():
    call("forget marked --id person-00001", code=4)
    assert ask("forget marked --id person-00001 --suppression-key marks")["removed"] == 1


def retune_refresh():
    learned(f"{INIT} --ignore force")  # gamma by the rows
    before = adiabat.open_store("m").info()["certificate"]["held_fixed"]["gamma"]
    call("forget m --id person-00001")
    assert adiabat.open_store("m").info()["certificate"]["held_fixed"]["gamma"] == before
    call("retune m --refresh")
    assert adiabat.open_store("m").info()["certificate"]["held_fixed"]["gamma"] != before
    call("retune m --refresh --C 3", code=3)
    call("retune m", code=3)


def predict_out():
    for name in ("a.csv", "b.parquet"):
        call(f"predict base more.csv -o {name}")
        assert Path(name).exists()
    call("predict base more.csv --out c.csv")
    assert Path("c.csv").read_bytes() == Path("a.csv").read_bytes()


def decimal(command):
    """A comma stands before a fraction, unless numbers are said to have points."""

    def prove():
        call(command)
        shutil.rmtree("base")
        shutil.copytree("../work-base", "base")
        call(f"{command} --decimal .", code=3)

    def with_a_copy():
        shutil.copytree("base", "../work-base")
        prove()

    return with_a_copy


def init_from():
    call("init m --from rows.csv --label good --id name")
    assert adiabat.open_store("m").settings.categories == {"colour": None}
    call("init n --label good --id name")
    assert adiabat.open_store("n").settings.categories == {}


def init_impute():
    Path("gaps.csv").write_text("name,income,good\na,1,no\nb,,yes\nc,5,yes\n")
    call("init m --label good --id name")
    call("learn m gaps.csv", code=3)
    call("init n --label good --id name --impute mean")
    call("learn n gaps.csv")
    assert adiabat.open_store("n").model.scaler_.transform([[np.nan]]).tolist() == [[3.0]]


def init_delimiter():
    call("init m --from tildes.csv --label good --id name", code=3)
    call("init m --from tildes.csv --label good --id name --delimiter ~")


def init_decimal():
    call("init m --from commas.csv --label good --id name")
    assert "income" not in adiabat.open_store("m").settings.categories
    call("init n --from commas.csv --label good --id name --decimal .")
    settings = adiabat.open_store("n").settings
    assert "income" in (*settings.categories, *settings.ignored)


def from_sql(command):
    """Rows of a database in the place of a file."""

    def prove():
        base = sqlite3.connect("x.db")
        people(60, 61).assign(force=1.0).to_sql("more", base, index=False)
        base.execute("create table fix as select 'person-00004' as name, 3.5 as income")
        base.commit()
        base.close()
        table = "fix" if command == "revise" else "more"
        done = json.loads(
            call([command, "base", "--sql", "sqlite:///x.db", table, "--json"]).stdout
        )
        assert 1 in (done.get("added"), done.get("revised"), done.get("rows"))

    return prove


def learn_skip_known():
    call("learn base more.csv")
    call("learn base more.csv", code=3)
    assert ask("learn base more.csv --skip-known")["added"] == 0


def with_gaps():
    """A model to which columns can be added."""
    call("init base2 --from rows.csv --label good --id name --ignore force")
    call("learn base2 rows.csv")


def columns_add():
    with_gaps()
    assert len(ask("columns base2 --add height")["features"]) == len(
        ask("columns base2")["features"]
    )
    assert ask("columns base2")["features"][-1] == {"name": "height", "kind": "number"}


def columns_category():
    with_gaps()
    ask("columns base2 --add height --category")
    assert ask("columns base2")["features"][-1]["kind"] == "category"


def columns_reference():
    with_gaps()
    call("columns base2 --add height --reference why")
    assert ask("log base2")["entries"][-1]["reference"] == "why"


def columns_wait():
    with_gaps()
    waits("columns base2 --add height")()


def columns_signing_key():
    call("init s2 --id name --label good --ignore colour --impute mean --signing-key ours.pem")
    call("learn s2 more.csv --signing-key ours.pem")
    call("columns s2 --add height", code=4)
    call("columns s2 --add height --signing-key ours.pem")


def columns_allow_unsigned():
    with_gaps()
    call("columns base2 --add height --signing-key ours.pem", code=4)
    call("columns base2 --add height --signing-key ours.pem --allow-unsigned")


def predict_delimiter():
    call("predict base tildes.csv -o out.csv", code=3)
    call("predict base tildes.csv -o out.csv --delimiter ~")


def loo_hold_scaling():
    differs("loo scaled", "loo scaled --hold-scaling")()


def report_hold_scaling():
    call("report scaled -o a.html")
    call("report scaled -o b.html --hold-scaling")
    said = "the scaling held"
    assert said not in Path("a.html").read_text() and said in Path("b.html").read_text()


def verify_public_key():
    call("verify signed --public-key ours.pub")
    call("verify signed --public-key other.pub", code=4)
    call("verify base --public-key ours.pub", code=4)


def receipt_public_key():
    call("receipt signed DSR-1 --public-key other.pub", code=4)
    given = ask("receipt signed DSR-1 --public-key ours.pub")
    assert given["verified"]["public_key_given"]
    assert not ask("receipt signed DSR-1")["verified"]["public_key_given"]


def receipt_out():
    for name in ("r.html", "r.json"):
        call(f"receipt base DSR-1 -o {name}")
        assert "DSR-1" in Path(name).read_text()
    call("receipt base DSR-1 --out r.txt", code=3)


def report_out():
    call("report base -o a.html")
    call("report base --out b.html")
    assert Path("a.html").exists() and Path("b.html").exists()


def export_out():
    call("export base -o a.adiabat")
    call("export base --out b.adiabat")
    assert len(adiabat.load("a.adiabat").ids_) == len(adiabat.load("b.adiabat").ids_) == 59


def export_format():
    import joblib

    call("export base -o a.joblib --format sklearn")
    assert type(joblib.load("a.joblib")).__module__.startswith("sklearn")
    call("export base -o a.adiabat --format adiabat")
    assert isinstance(adiabat.load("a.adiabat"), adiabat.SVC)


def export_ids():
    call("export base -o a.adiabat --ids")
    call("export base -o b.adiabat --no-ids")
    assert adiabat.load("a.adiabat").ids_[0] == "person-00000"
    assert adiabat.load("b.adiabat").ids_[0] == 0


def overwrites(line, name):
    """A file that is there is overwritten with --force, and stays as it is without."""

    def prove():
        Path(name).write_text("precious")
        assert "is there already" in ask(line, code=3)["error"]
        assert Path(name).read_text() == "precious"
        call(f"{line} --force")
        assert Path(name).read_bytes() != b"precious"

    return prove


def verify_expect_head():
    head = ask("verify base")["head"]
    call("export base -o out.adiabat")  # the log goes on
    assert "the expected head" in ask(f"verify base --expect-head {head}")["checks"]
    later = ask("verify base")["head"]
    old = ask(f"verify signed --expect-head {later}", code=1)
    assert "an older copy" in old["problems"][0]
    call("verify base --expect-head 12ab", code=3)


def backup_out():
    for name in ("a.backup", "b.backup"):
        call(f"backup base {'-o' if name == 'a.backup' else '--out'} {name}")
        call(f"restore {name} from-{name}")
        assert adiabat.open_store(f"from-{name}").ids == adiabat.open_store("base").ids


def backed_up():
    call("backup base -o monday")
    call("forget base --id person-00003 --reference DSR-2")


def restore_erased_since():
    backed_up()
    Path("list.csv").write_text("id,reference,time\nperson-00003,DSR-2,2999-01-01T00:00:00+00:00\n")
    assert ask("restore monday plain")["erased_again"] == 0
    assert "person-00003" in adiabat.open_store("plain").ids
    assert ask("restore monday sound --erased-since list.csv")["erased_again"] == 1
    assert "person-00003" not in adiabat.open_store("sound").ids
    call("receipt sound DSR-2")


def restore_reference():
    backed_up()
    Path("list.txt").write_text("person-00003\n")
    call("restore monday sound --erased-since list.txt --reference again")
    call("receipt sound again")


def restore_signing_key():
    call("backup signed -o tuesday --signing-key ours.pem")
    Path("list.txt").write_text("person-00003\n")
    call("restore tuesday a --erased-since list.txt", code=4)
    call("restore tuesday b --erased-since list.txt --signing-key ours.pem")
    call("verify b --public-key ours.pub")
    assert not Path("a").exists()


def restore_suppression_key():
    call("backup marked -o tuesday")
    Path("list.txt").write_text("person-00003\n")
    call("restore tuesday a --erased-since list.txt", code=4)
    call("restore tuesday b --erased-since list.txt --suppression-key marks")


def spoil(manifest, arrays):
    arrays["machine0_u"] = 0.5 * arrays["machine0_u"]


def broken(proof, *names):
    """A proof on models that need a repair."""

    def prove():
        for name in names:
            plant_model(name, spoil)
        proof()

    return prove


def repair_signing_key():
    call("repair signed", code=4)  # its head is signed, and what is planted is not
    call("repair base --signing-key ours.pem", code=4)
    call("repair signed --signing-key ours.pem")


SVC = f"{INIT} --gamma 0.5"
POLY = f"{INIT} --kernel poly --gamma 0.5"
REGRESSION = f"init m --id name --ignore colour {NUMBERS} --gamma 0.5"
LEAST = "init m --id name --label good --ignore colour --task lssvc"
CHANGES = {
    "learn": "learn base more.csv",
    "forget": "forget base --id person-00001",
    "revise": "revise base fix.csv",
    "retune": "retune base --C 3",
    "export": "export base -o out.adiabat",
    "report": "report base -o out.html",
    "backup": "backup base -o out.backup",
}
PROOFS = {
    ("init", "--task"): init_task,
    ("init", "--kernel"): parameter("kernel", "linear", "poly", INIT),
    ("init", "--C"): parameter("C", 0.1, 10.0, SVC, "--C"),
    ("init", "--gamma"): parameter("gamma", 0.1, 2.0, INIT),
    ("init", "--degree"): parameter("degree", 2, 4, POLY),
    ("init", "--coef0"): parameter("coef0", 0.0, 1.0, POLY),
    ("init", "--epsilon"): parameter("epsilon", 0.01, 0.5, REGRESSION),
    ("init", "--nu"): parameter("nu", 0.1, 0.5, f"{STRANGERS} --task one-class --gamma 0.5"),
    ("init", "--rho"): parameter("rho", 0.1, 10.0, LEAST),
    ("init", "--components"): parameter(
        "n_components", 10, 40, f"{LEAST} --kernel rbf --gamma 0.5", "--components"),
    ("init", "--seed"): init_seed,
    ("init", "--class-weight"): init_class_weight,
    ("init", "--calibration"): init_calibration,
    ("init", "--tol"): init_tol,
    ("init", "--id"): init_id,
    ("init", "--label"): init_label,
    ("init", "--weight"): init_weight,
    ("init", "--ignore"): init_ignore,
    ("init", "--categorical"): init_categorical,
    ("init", "--classes"): init_classes,
    ("init", "--scale"): init_scale,
    ("init", "--scaling"): init_scaling,
    ("init", "--signing-key"): init_signing_key,
    ("init", "--suppression-key"): init_suppression_key,
    ("init", "--from"): init_from,
    ("init", "--impute"): init_impute,
    ("init", "--delimiter"): init_delimiter,
    ("init", "--decimal"): init_decimal,
    ("learn", "--decimal"): decimal("learn base commas.csv"),
    ("learn", "--sql"): from_sql("learn"),
    ("learn", "--skip-known"): learn_skip_known,
    ("revise", "--decimal"): decimal("revise base fix-commas.csv"),
    ("revise", "--sql"): from_sql("revise"),
    ("predict", "--decimal"): decimal("predict base commas.csv"),
    ("predict", "--sql"): from_sql("predict"),
    ("cv", "--shuffle"): lambda: differs("cv base", "cv base --shuffle")(),
    ("cv", "--seed"): lambda: differs("cv base --shuffle", "cv base --shuffle --seed 5")(),
    ("cv", "--positive-label"): lambda: differs(
        "cv base --scoring f1 --positive-label yes", "cv base --scoring f1 --positive-label no")(),
    ("columns", "--add"): columns_add,
    ("columns", "--category"): columns_category,
    ("columns", "--reference"): columns_reference,
    ("columns", "--wait"): columns_wait,
    ("columns", "--signing-key"): columns_signing_key,
    ("columns", "--allow-unsigned"): columns_allow_unsigned,
    ("columns", "--json"): in_json("columns base"),
    ("init", "--json"): in_json(INIT),
    ("learn", "--delimiter"): lambda: (
        call("learn base tildes.csv", 3), call("learn base tildes.csv --delimiter ~")),
    ("learn", "--allow-erased"): learn_allow_erased,
    ("learn", "--suppression-key"): learn_suppression_key,
    ("forget", "--id"): forget_ids,
    ("forget", "--ids-file"): forget_ids_file,
    ("forget", "--missing"): forget_missing,
    ("forget", "--suppress"): forget_no_suppress,
    ("forget", "--suppression-key"): forget_suppression_key,
    ("revise", "--delimiter"): lambda: (
        call("revise base fix-tildes.csv", 3),
        call("revise base fix-tildes.csv --delimiter ~")),
    ("retune", "--C"): retuned("C", 20.0, SVC, "--C"),
    ("retune", "--gamma"): retuned("gamma", 2.0, INIT),
    ("retune", "--kernel"): retuned("kernel", "linear", INIT),
    ("retune", "--degree"): retuned("degree", 2, POLY),
    ("retune", "--coef0"): retuned("coef0", 1.0, POLY),
    ("retune", "--epsilon"): retuned("epsilon", 0.3, REGRESSION),
    ("retune", "--nu"): retuned("nu", 0.2, f"{STRANGERS} --task one-class --gamma 0.5"),
    ("retune", "--rho"): retuned("rho", 10.0, LEAST),
    ("retune", "--class-weight"): retuned("class_weight", "balanced", SVC),
    ("retune", "--refresh"): retune_refresh,
    ("predict", "--out"): predict_out,
    ("predict", "--delimiter"): predict_delimiter,
    ("predict", "--json"): in_json("predict base more.csv -o out.csv"),
    ("loo", "--top"): lambda: differs("loo base --top 1", "loo base --top 2")(),
    ("loo", "--hold-scaling"): loo_hold_scaling,
    ("loo", "--json"): in_json("loo base"),
    ("cv", "--folds"): lambda: differs("cv base", "cv base --folds 3")(),
    ("cv", "--scoring"): lambda: differs("cv base", "cv base --scoring roc_auc")(),
    ("cv", "--json"): in_json("cv base"),
    ("verify", "--retrain"): lambda: differs("verify base", "verify base --retrain")(),
    ("verify", "--public-key"): verify_public_key,
    ("verify", "--expect-head"): verify_expect_head,
    ("predict", "--force"): overwrites("predict base more.csv -o out.csv", "out.csv"),
    ("report", "--force"): overwrites("report base -o out.csv", "out.csv"),
    ("receipt", "--force"): overwrites("receipt base DSR-1 -o r.html", "r.html"),
    ("export", "--force"): overwrites("export base -o out.adiabat", "out.adiabat"),
    ("backup", "--force"): overwrites("backup base -o out.backup", "out.backup"),
    ("backup", "--out"): backup_out,
    ("restore", "--erased-since"): restore_erased_since,
    ("restore", "--reference"): restore_reference,
    ("restore", "--signing-key"): restore_signing_key,
    ("restore", "--suppression-key"): restore_suppression_key,
    ("restore", "--json"): lambda: (call("backup base -o b"), in_json("restore b m")()),
    ("verify", "--json"): in_json("verify base"),
    ("repair", "--reference"): broken(logged("repair base"), "base"),
    ("repair", "--wait"): broken(waits("repair base"), "base"),
    ("repair", "--signing-key"): repair_signing_key,
    ("repair", "--allow-unsigned"): broken(passes_over("repair base"), "base"),
    ("repair", "--json"): in_json("repair base"),
    ("log", "--json"): in_json("log base"),
    ("receipt", "--out"): receipt_out,
    ("receipt", "--public-key"): receipt_public_key,
    ("receipt", "--json"): in_json("receipt base DSR-1"),
    ("report", "--out"): report_out,
    ("report", "--hold-scaling"): report_hold_scaling,
    ("export", "--out"): export_out,
    ("export", "--format"): export_format,
    ("export", "--ids"): export_ids,
    ("info", "--json"): in_json("info base"),
}  # fmt: skip
for _name, _line in CHANGES.items():
    PROOFS[_name, "--reference"] = logged(_line)
    PROOFS[_name, "--wait"] = waits(_line)
    PROOFS[_name, "--signing-key"] = signs(_line)
    PROOFS[_name, "--allow-unsigned"] = passes_over(_line)
    PROOFS[_name, "--json"] = in_json(_line)
    if _name not in ("export", "report", "backup"):
        PROOFS[_name, "--dry-run"] = unchanged(_line)


@pytest.mark.rotates(3)
@pytest.mark.parametrize(("command", "option"), PROOFS, ids=lambda name: name)
def test_an_option_changes_the_result(folder, command, option):
    PROOFS[command, option]()


def options():
    """All options of all commands, by the first of their names that is long."""
    found = set()
    for name, command in typer.main.get_command(app).commands.items():
        for parameter in command.params:
            long = [opt for opt in parameter.opts if opt.startswith("--")]
            if long and long[0] != "--help" and name != "serve":  # tests/service has its own
                found.add((name, long[0]))
    return found


def test_every_option_has_its_proof():
    assert options() == set(PROOFS)
