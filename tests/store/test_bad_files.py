# SPDX-License-Identifier: BSD-3-Clause
"""Files that cannot be taken as they are: the message says where and what to do; nothing moves."""

import gzip
import tracemalloc

import numpy as np
import pytest
from sklearn.datasets import load_svmlight_file

import adiabat
from adiabat.store.tables import read_table, write_table
from store_tools import people

GOOD = "name,income,age,colour,good\n"
ROW = "p1,0.5,1.5,red,yes\n"

FILES = {
    "missing id column": ("rows.csv", "income,age,colour,good\n1,2,red,yes\n", ["'name'", "ids"]),
    "missing label column": ("rows.csv", "name,income,age,colour\np1,1,2,red\n", ["'good'"]),
    "missing feature column": ("rows.csv", "name,income,colour,good\np1,1,red,yes\n", ["'age'"]),
    "extra column": ("rows.csv", "name,income,age,colour,good,x\np,1,2,red,yes,3\n", ["'x'"]),
    "duplicate ids": ("rows.csv", GOOD + ROW + ROW, ["'p1'", "line 2", "line 3", "unique"]),
    "empty id": ("rows.csv", GOOD + ROW + ",1,2,red,yes\n", ["no id", "line 3", "'name'"]),
    "text among numbers": (
        "rows.csv",
        GOOD + ROW + "p2,oops,2,red,yes\n",
        ["'oops'", "'income'", "line 3", "categorical"],
    ),
    "nan": ("rows.csv", GOOD + ROW + "p2,nan,2,red,yes\n", ["'income'", "line 3", "fill it in"]),
    "missing value": ("rows.csv", GOOD + ROW + "p2,,2,red,yes\n", ["'income'", "line 3"]),
    "infinite": ("rows.csv", GOOD + "p2,inf,2,red,yes\n", ["inf", "'income'", "line 2"]),
    "missing label": ("rows.csv", GOOD + ROW + "p2,1,2,red,\n", ["no label", "line 3"]),
    "new category": ("rows.csv", GOOD + "p2,1,2,pink,yes\n", ["'pink'", "'colour'", "line 2"]),
    "label never seen": ("rows.csv", GOOD + "p2,1,2,red,perhaps\n", ["'perhaps'", "line 2"]),
    "ragged": ("rows.csv", GOOD + ROW + "p2,1,2,red\n", ["4 values", "5 columns", "line 3"]),
    "column twice": ("rows.csv", "name,age,age,colour,good\np,1,2,red,yes\n", ["'age' twice"]),
    "empty": ("rows.csv", "", ["empty"]),
    "no rows": ("rows.csv", GOOD, ["columns, but no rows"]),
    "not utf-8": (
        "rows.csv",
        (GOOD + ROW + "p\xe9,1,2,red,yes\n").encode("latin-1"),
        ["not in UTF-8", "line 3", "Latin-1"],
    ),
    "utf-16": ("rows.csv", (GOOD + ROW).encode("utf-16"), ["is in UTF-16; save it in UTF-8"]),
    "noise": ("rows.csv", bytes(range(256)), ["not in UTF-8"]),
    "broken gzip": ("rows.csv.gz", b"\x1f\x8b\x08\x00nothing", ["cannot be read"]),
    "truncated parquet": ("rows.parquet", None, ["truncated"]),
    "no parquet": ("rows.parquet", GOOD + ROW, ["truncated"]),
    "no feather": ("rows.feather", GOOD + ROW, ["truncated"]),
    "no svmlight": ("rows.svmlight", GOOD + ROW, ["svmlight"]),
    "svmlight without ids": ("rows.svmlight", "1 1:2.0\n", ["no ids", "end each line with '# id'"]),
    "svmlight with few ids": ("rows.svmlight", "1 1:2 # a\n0 1:1\n", ["no id on line 2"]),
    "svmlight into columns": ("rows.svmlight", "1 1:2.0 # p1\n", ["svmlight"]),
    "unknown ending": ("rows.ods", GOOD + ROW, ["ending", ".csv"]),
}


@pytest.fixture
def store(tmp_path):
    made = adiabat.create_store(
        tmp_path / "model",
        id="name",
        label="good",
        categories={"colour": ["red", "green", "blue"]},
        classes=["yes", "no"],
    )
    made.learn(people(0, 30))
    return made


@pytest.mark.parametrize("case", FILES)
def test_a_bad_file_is_refused_with_place_and_remedy(store, tmp_path, case, capfd):
    name, content, expected = FILES[case]
    path = tmp_path / name
    if content is None:
        people(30, 40).to_parquet(path)
        path.write_bytes(path.read_bytes()[:-20])
    else:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    before = store.verify().head
    with pytest.raises(adiabat.InputFileError) as caught:
        store.learn(path)
    message = str(caught.value)
    for part in [name, *expected]:
        assert part in message, message
    after = store.verify()
    assert after.ok and after.head == before and len(store) == 30
    assert capfd.readouterr() == ("", "")


def test_damaged_files_hold_no_memory_once_they_are_refused(tmp_path):
    path = tmp_path / "rows.csv.gz"
    path.write_bytes(gzip.compress((GOOD + ROW * 9).encode())[:30])
    tracemalloc.start()
    try:
        for _ in range(20):
            with pytest.raises(adiabat.InputFileError, match="cannot be read"):
                read_table(str(path))
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 1 << 20


def test_lines_are_counted_with_blank_lines_and_quoted_newlines(store, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(GOOD + '\n"p\n1",1,2,red,yes\n\np2,1,,red,yes\n')
    with pytest.raises(adiabat.InputFileError, match="on line 6;"):
        store.learn(path)


def test_mixed_types_of_labels(tmp_path):
    store = adiabat.create_store(tmp_path / "m", label="y")
    store.learn(np.arange(4.0).reshape(4, 1), [0, 1, 0, 1], ids=range(4))
    path = tmp_path / "rows.csv"
    path.write_text("id,x0,y\n9,1.0,1\n10,2.0,high\n")
    with pytest.raises(adiabat.InputFileError, match=r"'high' on line 3.*whole number"):
        store.learn(path)


@pytest.mark.parametrize("ending", ["csv", "tsv", "csv.gz", "parquet", "feather"])
def test_formats_in_and_out(store, tmp_path, ending):
    path = tmp_path / f"rows.{ending}"
    frame = people(30, 40)
    if "csv" in ending or ending == "tsv":
        frame.to_csv(path, index=False, sep="\t" if ending == "tsv" else ",")
    else:
        getattr(frame, f"to_{ending}")(path)
    assert store.learn(path).added == 10
    assert store.ids[-1] == "person-00039"


def test_a_split_character_is_utf8(store, tmp_path, monkeypatch):
    monkeypatch.setattr("adiabat.store.tables._PART_BYTES", 7)
    path = tmp_path / "rows.csv"
    path.write_text(GOOD + "zoë-ß-€-𝄞,1,2,red,yes\n", encoding="utf-8")
    assert store.learn(path).added == 1 and store.ids[-1] == "zoë-ß-€-𝄞"


def test_questions_need_no_ids_and_may_have_more_columns(store, tmp_path):
    frame = people(30, 40)
    whole = store.predict(frame.assign(note="x"))
    alone = store.predict(frame[["income", "age", "colour"]])
    assert list(alone) == ["prediction", "decision"] and whole["id"][0] == "person-00030"
    assert np.array_equal(alone["decision"], whole["decision"])


def test_labels_that_are_no_numbers(tmp_path):
    store = adiabat.create_store(tmp_path / "m", "svr", label="y")
    path = tmp_path / "rows.csv"
    path.write_text("id,a,y\nr1,1,high\n")
    with pytest.raises(adiabat.InputFileError, match="'high' on line 2, which is not a number; c"):
        store.learn(path)


def test_svmlight_keeps_sparse_rows(tmp_path):
    path = tmp_path / "rows.svmlight"
    path.write_text("".join(f"{i % 2} {1 + i % 5}:{1.0 + i} 90:1 # s{i}\n" for i in range(20)))
    store = adiabat.create_store(tmp_path / "m", label="y", gamma=0.1)
    store.learn(path)
    store.forget("s3")
    assert store.settings.n_features == 90
    assert store.verify(retrain=True).ok
    assert len(adiabat.open_store(store.path).predict(path)["prediction"]) == 20
    alone = tmp_path / "alone.svmlight"
    alone.write_text("0 1:1.0 90:1\n")
    assert list(store.predict(alone)) == ["prediction", "decision"]
    out = tmp_path / "out.svmlight"
    found = store.predict(path)
    write_table(str(out), found)
    values, targets = load_svmlight_file(str(out))
    assert np.array_equal(targets, found["prediction"])
    assert np.array_equal(values.toarray()[:, 0], found["decision"])
    assert "# s19" in out.read_text()
    fixes = tmp_path / "fixes.csv"
    fixes.write_text("id,y\ns5,0\n")
    assert store.revise(fixes).revised == 1
    with pytest.raises(adiabat.InputFileError, match="begun with svmlight"):
        store.predict(fixes)
    assert store.verify(retrain=True).ok
