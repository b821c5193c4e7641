# SPDX-License-Identifier: BSD-3-Clause
"""River's own checks of the adapters, and windows that are exact."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import pytest

river = pytest.importorskip("river")

from river import checks, compose, datasets, preprocessing, utils  # noqa: E402

from adiabat import SVC, SVDD, SVR, OneClassSVM  # noqa: E402
from adiabat.retention import Support, Window  # noqa: E402
from adiabat.streams import RiverAnomalyDetector, RiverClassifier, RiverRegressor  # noqa: E402

ADAPTERS = [RiverClassifier, RiverRegressor, RiverAnomalyDetector]


class Blobs:
    """Stands in for CreditCard, which River would have to download: one in ten is far out."""

    def take(self, n: int) -> Any:
        rng = np.random.default_rng(0)
        for _ in range(n):
            strange = bool(rng.random() < 0.1)
            row = rng.standard_normal(6) + 3.0 * strange
            yield {f"V{j}": float(value) for j, value in enumerate(row)}, strange


@pytest.mark.rotates(2)
@pytest.mark.parametrize("adapter", ADAPTERS)
def test_rivers_own_checks(adapter: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets, "CreditCard", Blobs)
    whole = checks._yield_datasets
    # a fifth of each stream, for the sake of time
    monkeypatch.setattr(
        checks,
        "_yield_datasets",
        lambda model, scale=1: (list(islice(part, 40 * scale)) for part in whole(model, scale)),
    )
    for params in adapter._unit_test_params():
        model = adapter(**params)
        names = set()
        for check in checks.yield_checks(model):
            check(model.clone())
            names.add(check.__name__)
        assert len(names) > 20 and not model._unit_test_skips()


def samples(n: int, labels: str) -> list[tuple[dict[str, float], Any]]:
    rng = np.random.default_rng(1)
    X = np.round(rng.standard_normal((n, 3)), 1)  # so that some are equal
    y = {"class": X[:, 0] > X[:, 1], "number": X[:, 0] - X[:, 1]}[labels]
    return [({"a": r[0], "b": r[1], "c": r[2]}, v.item()) for r, v in zip(X, y, strict=True)]


def rows(window: Any) -> Any:
    return np.array([[x["a"], x["b"], x["c"]] for x, _ in window])


def test_rolling_is_an_exact_window() -> None:
    stream = samples(150, "class")
    rolling = utils.Rolling(RiverClassifier, window_size=40, model=SVC(gamma=0.5))
    retained = RiverClassifier(SVC(gamma=0.5, retain=Window(40)))
    for k, (x, y) in enumerate(stream):
        rolling.update(x, y)
        retained.learn_one(x, y)
        if k % 10:
            continue
        window = stream[max(0, k - 39) : k + 1]
        plain = SVC(gamma=0.5).fit(rows(window), [label for _, label in window])
        for model in (rolling.obj, retained):
            assert model.learner.certificate().ok
            np.testing.assert_allclose(
                model.learner.decision_function(rows(stream)),
                plain.decision_function(rows(stream)),
                atol=1e-8,
            )
        assert rolling.predict_one(x) == plain.predict(rows([(x, y)]))[0]
    assert len(rolling.obj.learner.ids_) == len(retained._contents) == 40


def test_regression_and_spheres_revert() -> None:
    stream = samples(60, "number")
    model, twin = RiverRegressor(SVR(gamma=0.5)), RiverRegressor(SVR(gamma=0.5))
    for x, y in stream:
        model.update(x, y)
    for x, y in stream[30:]:
        model.revert(x, y)
    for x, y in stream[:30]:
        twin.update(x, y)
    for x, _ in stream:
        assert model.predict_one(x) == pytest.approx(twin.predict_one(x), abs=1e-8)
    sphere = RiverAnomalyDetector(SVDD(gamma=0.5, C=0.2))
    for x, _ in stream[:20]:
        sphere.update(x)
    inside = sphere.score_one(stream[3][0])
    assert inside < sphere.score_one({"a": 9.0, "b": 9.0})
    for x, _ in stream[:20]:
        sphere.revert(x)
    assert sphere.score_one(stream[3][0]) == 0.0
    sphere.update(stream[0][0])
    assert sphere.learner.certificate().n_samples == 1


def test_features_come_and_go() -> None:
    stream = samples(60, "class")
    late = [({k: v for k, v in x.items() if k != "c"}, y) for x, y in stream[:30]] + stream[30:]
    model = RiverClassifier(SVC(gamma=0.5))
    for x, y in late:
        model.learn_one(x, y)
    X = rows([({"c": 0.0, **x}, y) for x, y in late])
    plain = SVC(gamma=0.5).fit(X, [y for _, y in late])
    found = model.learner.decision_function(X)
    np.testing.assert_allclose(found, plain.decision_function(X), atol=1e-8)
    assert model.predict_one({"a": 2.0, "never seen": 5.0}) in (True, False)


def test_a_sample_that_a_policy_let_go_cannot_be_reverted() -> None:
    stream = samples(60, "class")
    model = RiverClassifier(SVC(gamma=0.5, retain=Support()))
    for x, y in stream:
        model.learn_one(x, y)
    assert set(model._contents) == set(model.learner.ids_.tolist())
    gone = next(k for k in range(60) if k not in model._contents)
    x, y = stream[gone]
    if (x, y) not in [stream[k] for k in model._contents]:
        with pytest.raises(ValueError, match="revert"):
            model.revert(x, y)


def test_in_a_pipeline() -> None:
    model = compose.Pipeline(
        preprocessing.StandardScaler(),
        RiverAnomalyDetector(OneClassSVM(gamma=0.1, nu=0.1, retain=Window(50))),
    )
    scores = {True: [], False: []}
    for x, strange in islice(Blobs().take(300), 300):
        scores[strange].append(model.score_one(x))
        model.learn_one(x)
    assert np.median(scores[True]) > np.median(scores[False])


@pytest.mark.parametrize(
    ("act", "error", "message"),
    [
        (lambda m: m.learn_one({"a": "red"}, True), ValueError, "'a': 'red'.*OneHotEncoder"),
        (lambda m: m.learn_one({"a": float("nan")}, True), ValueError, "'a': nan"),
        (lambda m: m.learn_one({"a": None}, True), ValueError, "'a': None"),
        (lambda m: m.predict_one({"a": float("inf")}), ValueError, "'a': inf"),
        (lambda m: m.revert({"a": 1.0}, True), ValueError, "not among the 3 samples"),
        (lambda m: m.learn_one({"a": 1.0, "new": 1.0}, "text"), ValueError, "label 'text'"),
        (lambda m: RiverClassifier(42), TypeError, "model=42"),
    ],
)
def test_bad_input(act: Any, error: type[Exception], message: str) -> None:
    model = RiverClassifier(SVC(gamma=0.5))
    for x, y in [({"a": 0.5}, True), ({"a": -0.5}, False), ({"a": 0.1}, True)]:
        model.learn_one(x, y)
    before = model.learner.decision_function([[0.3]]).tolist()
    with pytest.raises(error, match=message):
        act(model)
    if len(model._columns) == 1:
        assert model.learner.decision_function([[0.3]]).tolist() == before
    assert model.learner.ids_.tolist() == [0, 1, 2]
    model.learn_one({"a": 0.3}, False)


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_what_was_never_learned_is_passed_over_in_questions(adapter: Any) -> None:
    [params] = adapter._unit_test_params()
    stream = adapter(**params)
    ask = stream.score_one if hasattr(stream, "score_one") else stream.predict_one
    assert not ask({"a": float("nan"), "b": "text"})  # None or 0, as long as nothing is known
    for x, y in samples(12, "class"):
        stream.learn_one(x) if hasattr(stream, "score_one") else stream.learn_one(x, y)
    known = {"a": 1.0, "b": 2.0, "c": 0.0}
    assert ask({**known, "late": float("nan"), "later": "text"}) == ask(known)
    with pytest.raises(ValueError, match="'a': nan, which is not a finite number"):
        ask({**known, "a": float("nan")})


def test_probabilities_need_a_calibration() -> None:
    with pytest.raises(NotImplementedError, match=r"calibration=None.*use predict_one"):
        RiverClassifier(SVC()).predict_proba_one({"a": 1.0})
    stream = RiverClassifier(SVC(gamma=0.5, calibration="sigmoid"))
    assert stream.predict_proba_one({"a": 1.0}) == {}
    for value, expected in ((-1.0, {}), (-0.5, {}), (0.5, {False: 1.0}), (1.0, {})):
        assert stream.predict_proba_one({"a": value}) == expected
        stream.learn_one({"a": value}, value > 0.0)
    found = stream.predict_proba_one({"a": 1.0})
    assert set(found) == {False, True}
    assert sum(found.values()) == pytest.approx(1.0)
