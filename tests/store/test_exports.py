# SPDX-License-Identifier: BSD-3-Clause
"""Models out of a store: the same decisions, and an entry in the log."""

import hashlib
import html.parser
import re
from datetime import UTC, datetime

import joblib
import numpy as np
import pytest

import adiabat
from adiabat.store.charts import steps
from adiabat.store.tasks import TASKS
from store_tools import people


def test_exports_decide_as_the_store_does(store, tmp_path):
    rows = store.rows().X
    ours = store.model.decision_function(rows)
    done = store.export(tmp_path / "m.adiabat", reference="hand-over")
    assert np.array_equal(adiabat.load(tmp_path / "m.adiabat").decision_function(rows), ours)
    store.export(tmp_path / "m.joblib", format="sklearn")
    theirs = joblib.load(tmp_path / "m.joblib").decision_function(rows)
    assert np.abs(theirs - ours).max() < 1e-9
    entry = store.log()[done["entry"] - 1]
    data = (tmp_path / "m.adiabat").read_bytes()
    assert entry.body["details"]["sha256"] == hashlib.sha256(data).hexdigest()
    assert (entry.operation, entry.body["reference"]) == ("export", "hand-over")
    assert store.verify().ok


@pytest.mark.parametrize("scale", [False, "exact"])
@pytest.mark.parametrize("task", ["svc", "kernel-lssvc"])
def test_an_exported_model_knows_rows_by_the_ids_of_the_store(tmp_path, task, scale):
    if scale and task != "svc":
        return
    store = adiabat.create_store(
        tmp_path / "model", task, id="name", label="good", categories={"colour": None}, scale=scale
    )
    store.learn(people(0, 30))
    store.forget("person-00003")
    store.export(tmp_path / "named.adiabat")
    store.export(tmp_path / "numbered.adiabat", with_ids=False)
    named, numbered = (adiabat.load(tmp_path / f"{n}.adiabat") for n in ("named", "numbered"))
    assert named.ids_.tolist() == store.ids
    assert numbered.ids_.tolist() == store.model.ids_.tolist()
    assert b"person-00007" in (tmp_path / "named.adiabat").read_bytes()
    assert b"person-" not in (tmp_path / "numbered.adiabat").read_bytes()
    store.forget("person-00007")
    named.forget("person-00007")
    rows = store.rows().X
    values, ours = named.decision_function(rows), store.model.decision_function(rows)
    assert np.abs(values - ours).max() < 1e-9
    assert named.certificate().n_seen == 30 if task == "svc" else True


EXPORTED = ["svc", "svr", "one-class", "svdd", "lssvc", "lssvr"]


@pytest.mark.parametrize("scale", [False, "exact"])
@pytest.mark.parametrize("task", EXPORTED)
@pytest.mark.parametrize("label", ["good", "colour"])
def test_exports_of_every_task_decide_alike(tmp_path, task, label, scale):
    runtime = pytest.importorskip("onnxruntime")
    target = TASKS[task].target
    if label == "colour" and target != "class":
        return
    rows = people(0, 60)
    if target != "class":
        rows = rows.drop(columns="good").assign(good=rows.income - rows.age)
    store = adiabat.create_store(
        tmp_path / "model",
        task,
        id="name",
        label=label if target else None,
        ignore=["colour" if label == "good" else "good", *(() if target else ("good",))],
        scale=scale,
    )
    store.learn(rows)
    X, model = store.rows().X, store.model
    values = model.predict(X) if target == "number" else model.decision_function(X)
    store.export(tmp_path / "m.joblib", format="sklearn")
    plain = joblib.load(tmp_path / "m.joblib")
    theirs = plain.predict(X) if target == "number" else plain.decision_function(X)
    assert np.abs(theirs - values).max() < 1e-9
    store.export(tmp_path / "m.onnx", format="onnx")  # in single precision
    session = runtime.InferenceSession(str(tmp_path / "m.onnx"))
    found = np.ravel(session.run(None, {"X": X.astype(np.float32)})[0])
    if target == "number":
        assert np.abs(found - values).max() < 1e-4
        return
    if values.ndim == 1:
        clear = np.abs(values) > 1e-3
    else:  # ONNX takes the first of classes with as many votes
        most = np.sort(np.round(values) if task == "svc" else values, axis=1)
        clear = most[:, -1] - most[:, -2] > 1e-3
    assert clear.mean() > 0.7 and np.array_equal(found[clear], model.predict(X)[clear])


def test_a_machine_that_scikit_learn_does_not_have_is_refused(tmp_path):
    for task, kernel in (("kernel-lssvc", "rbf"), ("lssvc", "poly")):
        store = adiabat.create_store(
            tmp_path / task, task, id="name", label="good", ignore=["colour"], kernel=kernel
        )
        store.learn(people(0, 30))
        with pytest.raises(ValueError, match="no counterpart in scikit-learn; use"):
            store.export(tmp_path / "m.joblib", format="sklearn")
        done = store.export(tmp_path / "m.adiabat")
        assert done["holds_rows"] is (task == "kernel-lssvc")


@pytest.mark.parametrize(
    ("where", "form", "message"),
    [("model/x.adiabat", "adiabat", "inside the store"), ("x.pkl", "pickle", "format='pickle'")],
)
def test_a_refused_export_leaves_no_file_and_no_entry(store, tmp_path, where, form, message):
    with pytest.raises((ValueError, adiabat.StoreError), match=message):
        store.export(tmp_path / where, format=form)
    assert not (tmp_path / where).exists() and len(store.log()) == 2


def test_a_failing_export_leaves_no_file_and_no_entry(store, tmp_path, monkeypatch):
    def fail(_):
        raise OSError("the disk is full")

    with pytest.raises(adiabat.StoreError, match="there is no folder"):
        store.export(tmp_path / "nowhere" / "x.adiabat")
    monkeypatch.setattr("adiabat.store.exports.sha256", fail)
    with pytest.raises(adiabat.StoreError, match=r"the disk is full.*nothing was changed"):
        store.export(tmp_path / "x.adiabat")
    assert len(store.log()) == 2 and [p.name for p in tmp_path.iterdir()] == ["model"]


class Links(html.parser.HTMLParser):
    """Tags, and attributes that would load something."""

    def __init__(self):
        super().__init__()
        self.tags, self.loads = set(), []

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.loads += [value for name, value in attributes if name in ("src", "href")]


def test_the_report_is_one_page_that_loads_nothing(store, tmp_path):
    store.forget("person-00003", reference="DSR-<b>")
    done = store.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text("utf-8")
    links = Links()
    links.feed(page)
    assert "script" not in links.tags and links.loads == [] and "url(" not in page
    assert "retraining on its 59 rows would give with gamma = 0.5" in page
    assert "DSR-&lt;b&gt;" in page and "Categories of colour" in page and "blue, green, red" in page
    assert links.tags >= {"svg", "table", "figure"} and "prefers-color-scheme: dark" in page
    assert store.log()[done["entry"] - 1].operation == "report"
    names = re.findall(r"(MARGIN|ERROR|RESERVE) (\d+)</text>", page)
    assert sum(int(count) for _, count in names) == 59


def test_a_report_needs_rows(tmp_path):
    store = adiabat.create_store(tmp_path / "m", label="good", id="name")
    with pytest.raises(adiabat.StoreError, match="learned nothing"):
        store.report(tmp_path / "report.html")
    store.learn(people(0, 20).drop(columns="colour"))
    assert store.report(tmp_path / "report.html")["entry"] == 3


def test_a_report_counts_classes_and_what_they_would_be_taken_for(store, tmp_path):
    store.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text("utf-8")
    found = store.leave_one_out()
    for label in set(found.labels.tolist()):
        mine = found.labels == label
        taken = [int(np.sum(mine & (found.predictions == other))) for other in store.model.classes_]
        cells = [label, f"{mine.sum()} ({mine.mean():.0%})", *taken]
        row = "".join(rf"<td[^>]*>{re.escape(str(cell))}</td>" for cell in cells)
        assert re.search(row, page), row
    assert re.search(r"<dt>Held fixed</dt>\s*<dd>gamma = 0.5", page)
    assert re.search(r"<dt>Made</dt>\s*<dd>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", page)


def test_a_chart_has_an_axis_of_time():
    times = [datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2, 11)]
    drawn = steps("rows", [1, 2, 3], times, {"rows": [1.0, 2.0, 3.0]})
    x = [float(found) for found in re.findall(r'circle cx="([\d.]+)"', drawn)]
    assert (x[1] - x[0]) / (x[2] - x[0]) == pytest.approx(0.1, abs=1e-3)
    assert "2026-01-01" in drawn and "2026-01-11" in drawn
