# SPDX-License-Identifier: BSD-3-Clause
"""Models out of a store: the same decisions, and an entry in the log."""

import hashlib
import html.parser
import re

import joblib
import numpy as np
import pytest

import adiabat
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


def test_onnx_decides_alike_in_single_precision(store, tmp_path):
    pytest.importorskip("skl2onnx")
    runtime = pytest.importorskip("onnxruntime")
    store.export(tmp_path / "m.onnx", format="onnx")
    session = runtime.InferenceSession(str(tmp_path / "m.onnx"))
    rows = store.rows().X
    labels = session.run(None, {"X": rows.astype(np.float32)})[0]
    assert np.mean(labels == store.model.predict(rows)) > 0.95


@pytest.mark.parametrize(
    ("where", "form", "message"),
    [("model/x.adiabat", "adiabat", "inside the store"), ("x.pkl", "pickle", "format='pickle'")],
)
def test_a_refused_export_leaves_no_file_and_no_entry(store, tmp_path, where, form, message):
    with pytest.raises((ValueError, adiabat.StoreError), match=message):
        store.export(tmp_path / where, format=form)
    assert not (tmp_path / where).exists() and len(store.log()) == 2


def test_a_failing_export_leaves_no_file_and_no_entry(store, tmp_path):
    with pytest.raises(OSError):
        store.export(tmp_path / "nowhere" / "x.adiabat")
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
