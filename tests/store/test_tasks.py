# SPDX-License-Identifier: BSD-3-Clause
"""Every task: learning in parts, correcting and erasing equal learning the rest at once."""

import numpy as np
import pandas as pd
import pytest

import adiabat
from adiabat.store.tasks import TASKS

PARAMETERS = {
    "svc": [
        {"gamma": 0.5},
        {"scale": "exact"},
        {"kernel": "linear", "C": 0.1},
        {"class_weight": "balanced"},
    ],
    "svr": [{"gamma": 0.5, "epsilon": 0.05}, {"kernel": "linear", "C": 2.0}],
    "one-class": [{"gamma": 0.5, "nu": 0.2}, {"gamma": 0.5, "nu": 0.2, "scale": "exact"}],
    "svdd": [{"gamma": 0.5, "C": 0.1}],
    "lssvc": [
        {"rho": 0.1},
        {"kernel": "poly", "gamma": 0.5},
        {"kernel": "rbf", "seed": 3},
        {"scale": "exact"},
        {"impute": "median"},
    ],
    "kernel-lssvc": [{"rho": 0.5, "gamma": 0.3}, {}],
    "kernel-lssvr": [{"rho": 0.5, "gamma": 0.3}],
    "lssvr": [
        {"rho": 0.1},
        {"kernel": "rbf", "gamma": 0.2, "n_components": 20},
        {"scale": "exact", "impute": "mean"},
    ],
}
RETUNED = {
    "svc": {"C": 3.0},
    "svr": {"C": 3.0, "epsilon": 0.2},
    "one-class": {"nu": 0.4},
    "svdd": {"C": 0.05},
    "lssvc": {"rho": 1.0},
    "lssvr": {"rho": 1.0},
    "kernel-lssvc": {"rho": 2.0},
    "kernel-lssvr": {"rho": 2.0},
}
CASES = [(task, parameters) for task in TASKS for parameters in PARAMETERS[task]]


def frame(task, n=80, seed=0):
    rng = np.random.default_rng(seed)
    rows = pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "c"])
    rows.insert(0, "id", [f"r{i:03d}" for i in range(n)])
    score = rows.a - rows.b + 0.3 * rng.normal(size=n)
    if TASKS[task].target == "class":
        rows["y"] = (score > 0).astype(int)
    elif TASKS[task].target == "number":
        rows["y"] = score
    return rows


def make(folder, task, parameters):
    label = None if TASKS[task].target is None else "y"
    return adiabat.create_store(folder, task, label=label, **parameters)


@pytest.mark.parametrize(("task", "parameters"), CASES, ids=lambda value: str(value))
def test_a_history_equals_learning_what_is_left(tmp_path, task, parameters):
    rows = frame(task)
    store = make(tmp_path / "a", task, parameters)
    store.learn(rows[:50])
    store.learn(rows[50:])
    store.forget(["r007", "r060", "r061"], reference="R")
    fixed = rows.copy()
    fixed.loc[11, ["a", "c"]] = [1.5, -0.5]
    store.revise(fixed.loc[[11], ["id", "c", "a"]])
    if TASKS[task].target is not None:
        fixed.loc[20, "y"] = 1 - fixed.y[20]
        store.revise(fixed.loc[[20], ["id", "y"]])
    found = adiabat.open_store(store.path).verify(retrain=True)
    assert found.ok, found.problems
    assert found.rows == 77
    left = make(tmp_path / "b", task, {**parameters, **TASKS[task].held(store.model)})
    left.learn(fixed.drop(index=[7, 60, 61]))
    new = frame(task, 10, seed=1)
    ours, theirs = store.predict(new), left.predict(new)
    column = "decision" if "decision" in ours else "prediction"
    assert np.abs(ours[column] - theirs[column]).max() < 1e-7
    dry = store.forget("r001", dry_run=True)
    assert dry.moved["rows_compared"] == 76
    store.report(tmp_path / "report.html")
    assert store.receipt("R")["erasures"][0]["certificate"]["n_samples"] == 77


@pytest.mark.parametrize("task", TASKS)
def test_all_rows_may_go(tmp_path, task):
    store = make(tmp_path / "a", task, PARAMETERS[task][0])
    store.learn(frame(task, 30))
    store.forget(store.ids)
    assert store.verify(retrain=True).ok and len(store) == 0
    store.learn(frame(task, 30, seed=2), allow_erased=True)
    assert store.verify(retrain=True).ok and len(store) == 30


@pytest.mark.parametrize("task", [name for name, task in TASKS.items() if not task.keeps_rows])
def test_a_kernel_without_a_map_is_refused(tmp_path, task):
    for wrong in ({"kernel": "chi2"}, {"kernel": "rbf", "gamma": "scale"}, {"C": 1.0}):
        with pytest.raises(ValueError, match=r"kernel|gamma|C=1\.0 is no parameter"):
            make(tmp_path / "a", task, wrong)


SCALED = [(name, "exact") for name in ("svc", "svr", "one-class", "svdd", "lssvc", "lssvr")]


@pytest.mark.parametrize(("task", "scale"), [*((name, None) for name in TASKS), *SCALED])
def test_leave_one_out_equals_learning_without_the_row(tmp_path, task, scale):
    rows = frame(task, 40)
    if TASKS[task].target == "class":
        rows.loc[5, "y"] = 1 - rows.y[5]
    parameters = {**PARAMETERS[task][0], **({"scale": scale} if scale else {})}
    store = make(tmp_path / "a", task, parameters)
    store.learn(rows)
    seen = []
    found = store.leave_one_out(n_jobs=2, progress=lambda *step: seen.append(step))
    assert not scale or not TASKS[task].keeps_rows or seen[-1] == (40, 40)
    for i in (5, 17):
        left = make(tmp_path / str(i), task, {**parameters, **TASKS[task].held(store.model)})
        left.learn(rows.drop(index=i))
        alone = left.predict(rows[i : i + 1])
        assert alone["prediction"][0] == pytest.approx(found.predictions[i], abs=1e-7)
        if "decision" in alone:
            sign = 1 if TASKS[task].target is None or rows.y[i] else -1
            assert sign * alone["decision"][0] == pytest.approx(found.margin[i], abs=1e-7)
    suspects = found.suspects(5)
    if TASKS[task].target == "class":
        assert "r005" in [item["id"] for item in suspects]
    if TASKS[task].target != "number":
        assert all(item["margin"] < 0 for item in suspects)
        assert found.score == np.mean(found.margin >= 0.0)
    store.report(tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text("utf-8")
    assert suspects[0]["id"] in text
    assert ("off by" in text) is (TASKS[task].target == "number")
    assert ("pairs of classes" in text) is (task == "svc")


@pytest.mark.parametrize("scale", [False, "exact", "held"])
@pytest.mark.parametrize("task", [name for name, task in TASKS.items() if task.target is not None])
def test_cross_validation_scores_every_fold(tmp_path, task, scale):
    if (scale and (task, "exact") not in SCALED) or (
        scale == "held" and not TASKS[task].keeps_rows
    ):
        return
    store = make(tmp_path / "a", task, {**PARAMETERS[task][0], "scale": scale})
    store.learn(frame(task, 60))
    found = store.cross_validate(folds=4)
    assert len(found["scores"]) == 4 and 0.5 < found["mean"] <= 1.0


def test_what_leaving_out_cannot_say(tmp_path):
    store = make(tmp_path / "a", "one-class", {})
    with pytest.raises(adiabat.StoreError, match="learned nothing"):
        store.leave_one_out()
    store.learn(frame("one-class"))
    with pytest.raises(ValueError, match="no labels to score folds against"):
        store.cross_validate()
    with pytest.raises(ValueError, match="hold_scaling is for a model that scales"):
        store.leave_one_out(hold_scaling=True)


def test_a_held_scaling_is_said(tmp_path):
    for scale, hold, said in (
        ("exact", True, True),
        ("exact", False, False),
        ("held", False, True),
    ):
        store = make(tmp_path / f"{scale}{hold}", "svc", {"scale": scale})
        store.learn(frame("svc", 30))
        found = store.leave_one_out(hold_scaling=hold)
        assert ("the scaling held" in found.sentence()) is said
        store.report(tmp_path / "r.html", hold_scaling=hold)
        assert ("the scaling held" in (tmp_path / "r.html").read_text("utf-8")) is said


@pytest.mark.parametrize("task", [n for n, t in TASKS.items() if hasattr(t.estimator, "retune")])
def test_retuning_equals_learning_with_those_parameters(tmp_path, task):
    new = RETUNED[task]
    store = make(tmp_path / "a", task, PARAMETERS[task][0])
    store.learn(frame(task))
    assert store.retune(**new, dry_run=True).moved["largest_change"] > 0
    assert store.verify().ok and len(store.log()) == 2
    done = store.retune(**new, reference="tuning")
    assert (done.operation, done.entry) == ("retune", 3)
    assert store.settings.parameters == {**PARAMETERS[task][0], **new}
    other = make(tmp_path / "b", task, {**PARAMETERS[task][0], **new})
    other.learn(frame(task))
    rows = frame(task, 10, seed=1)
    ours, theirs = store.predict(rows), other.predict(rows)
    column = "decision" if "decision" in ours else "prediction"
    assert np.abs(ours[column] - theirs[column]).max() < 1e-7
    with pytest.raises(ValueError, match="no parameter"):
        store.retune(colour=1.0)
    if not TASKS[task].keeps_rows:
        with pytest.raises(ValueError, match="part of the feature map"):
            store.retune(kernel="poly")
    assert store.verify(retrain=True).ok


def test_a_refresh_leaves_nothing_that_the_erased_rows_settled(tmp_path):
    store = make(tmp_path / "a", "svc", {})
    rows = frame("svc")
    rows.loc[3, "a"] = 1e4
    store.learn(rows)
    store.forget("r003")
    held = store.model.gamma_
    assert store.refresh().entry == 4
    other = make(tmp_path / "b", "svc", {})
    other.learn(rows.drop(index=3))
    assert store.model.gamma_ == pytest.approx(other.model.gamma_, rel=1e-12) and held < 1e-3
    assert store.verify(retrain=True).ok


def test_held_scaling_stays_until_refreshed(tmp_path):
    rows = frame("svc")
    rows.loc[3, "a"] = 1e4
    store = make(tmp_path / "a", "svc", {"scale": "held", "C": 2.0})
    store.learn(rows[:50])
    store.learn(rows[50:])
    store.forget("r003")
    assert "held" in str(store.verify(retrain=True).certificate) and store.verify(retrain=True).ok
    store.refresh()
    store.retune(C=5.0)
    assert adiabat.open_store(store.path).verify(retrain=True).ok
    other = make(tmp_path / "b", "svc", {"scale": True, "C": 5.0})
    other.learn(rows.drop(index=3))
    new = frame("svc", 10, seed=1)
    ours, theirs = store.predict(new)["decision"], other.predict(new)["decision"]
    assert np.abs(ours - theirs).max() < 1e-7


def test_a_scaled_model_is_exported_with_its_scaling(tmp_path):
    import joblib

    store = make(tmp_path / "a", "svc", {"scale": "exact"})
    store.learn(frame("svc"))
    store.export(tmp_path / "m.joblib", format="sklearn")
    X = frame("svc", 10, seed=1)[["a", "b", "c"]].to_numpy()
    theirs = joblib.load(tmp_path / "m.joblib").decision_function(X)
    assert np.abs(theirs - store.model.decision_function(X)).max() < 1e-9


def test_scaling_that_cannot_follow_rows_is_refused_with_a_remedy(tmp_path):
    for task, parameters, words in (
        ("kernel-lssvr", {"scale": True}, "cannot be scaled anew; use lssvc or lssvr"),
        ("lssvc", {"scale": "held"}, "use scale='exact'"),
        ("lssvr", {"scale": True, "kernel": "rbf"}, "use kernel='linear'"),
        ("lssvc", {"impute": "mean", "kernel": "poly"}, "use kernel='linear'"),
    ):
        with pytest.raises(ValueError, match=words):
            make(tmp_path / "a", task, parameters)
    with pytest.raises(ValueError, match="scale='sometimes' must be 'exact' or 'held'"):
        make(tmp_path / "a", "svc", {"scale": "sometimes"})


@pytest.mark.parametrize("verb", ["retune", "refresh"])
def test_what_an_estimator_cannot_is_refused(tmp_path, verb):
    for task in (n for n, t in TASKS.items() if not hasattr(t.estimator, verb)):
        store = make(tmp_path / task, task, {"rho": 1.0})
        store.learn(frame(task))
        with pytest.raises(ValueError, match=verb):
            getattr(store, verb)(**({"rho": 2.0} if verb == "retune" else {}))
        assert store.verify().ok


@pytest.mark.parametrize("impute", ["mean", "median", "most_frequent"])
@pytest.mark.parametrize("scale", [None, "exact"])
def test_least_squares_of_a_table_as_it_is(tmp_path, scale, impute):
    rows = frame("lssvc", 60)
    rows["b"] = rows.b + 1e8
    rows.loc[::7, "a"] = np.nan
    rows["town"] = ["Bern", "Chur", None] * 20
    rows.loc[3, "town"] = "Olten"
    given = {"label": "y", "categories": {"town": None}, "scale": scale, "impute": impute}
    store = adiabat.create_store(tmp_path / "a", "lssvc", **given)
    store.learn(rows[:30])
    store.learn(rows[30:])
    store.revise(pd.DataFrame({"id": ["r007"], "a": [0.25], "town": ["Zug"]}))
    store.forget(["r003", "r040"])
    store.add_column("d")
    store.revise(pd.DataFrame({"id": ["r001", "r002"], "d": [4.0, 6.0]}))
    with pytest.raises(ValueError, match="not a number"):
        store.learn(pd.DataFrame({"id": ["s"], "a": ["x"], "b": [1.0], "c": [1.0], "y": [1],
                                  "town": ["Bern"], "d": [1.0]}))  # fmt: skip
    store = adiabat.open_store(store.path)
    found = store.verify(retrain=True)
    assert found.ok, found.problems
    assert found.retrained["largest_difference"] == 0.0
    assert "Olten" not in str(store.settings.features)
    assert store.model.certificate().held_fixed == {}
    files = [path for path in (tmp_path / "a").iterdir() if path.is_file()]
    assert not any(b"Olten" in path.read_bytes() for path in files)
    again = adiabat.create_store(tmp_path / "b", "lssvc", **given)
    fixed = rows.drop(index=[3, 40])
    fixed.loc[7, ["a", "town"]] = [0.25, "Zug"]
    fixed["d"] = np.nan
    fixed.loc[[1, 2], "d"] = [4.0, 6.0]
    again.learn(fixed)
    new = frame("lssvc", 5, seed=2).assign(town="Bern", d=1.0)
    ours, theirs = store.predict(new), again.predict(new)
    assert np.abs(ours["decision"] - theirs["decision"]).max() < 1e-12


def test_a_table_without_categories_is_filled_and_its_scaling_held(tmp_path):
    store = make(tmp_path / "a", "svc", {"scale": "held", "impute": "mean"})
    rows = frame("svc")
    rows.loc[::9, "b"] = np.nan
    store.learn(rows)
    store.forget("r007")
    assert adiabat.open_store(store.path).verify(retrain=True).ok
