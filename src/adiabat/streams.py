# SPDX-License-Identifier: BSD-3-Clause
"""Adiabat's machines as estimators of River: one dictionary of features at a time.

Needs the extra ``river``. Each adapter wraps an estimator of this package, which it copies and
teaches (`learner`): with ``retain=Window(1000)`` it holds a window, each step one exact update.
`revert` takes back a sample given to `update` earlier, so that :class:`river.utils.Rolling` and
``TimeRolling`` give exact sliding windows, too.

A feature that a sample does not name is 0 for it, as in River's linear models. Features may appear
at any time; the model is then fitted again on the samples it holds, in which they are 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone

from adiabat.estimators.one_class_svm import OneClassSVM
from adiabat.estimators.svc import SVC
from adiabat.estimators.svr import SVR
from adiabat.martingales import Martingale, PowerMartingale, SimpleJumper
from adiabat.retention import Window
from adiabat.typing import FloatArray

try:
    from river import base
except ImportError as error:
    raise ImportError(
        "adiabat.streams needs River: install it with pip install 'adiabat[river]'"
    ) from error

Features = Mapping[Any, Any]

__all__ = [
    "RiverAnomalyDetector", "RiverClassifier", "RiverDriftDetector", "RiverRegressor",
]  # fmt: skip


class _Adapter(base.Estimator):
    """What the adapters share: dictionaries into rows, and samples found again by their content."""

    _verbs: ClassVar[tuple[str, ...]] = ("partial_fit", "forget", "fit")

    def __init__(self, model: Any) -> None:
        missing = [verb for verb in self._verbs if not hasattr(model, verb)]
        if missing or not hasattr(model, "retain"):
            raise TypeError(
                f"model={model!r} is not an estimator of adiabat that keeps its samples; pass "
                "adiabat.SVC(...), SVR(...), OneClassSVM(...) or SVDD(...)"
            )
        self.model = model
        self._learner = clone(model)
        self._columns: dict[Any, int] = {}
        self._contents: dict[int, tuple[frozenset[Any], Any]] = {}  # of the samples held, by id
        self._ids: dict[Hashable, list[int]] = {}  # the way back; equal samples, oldest first
        self._next_id = 0

    @property
    def learner(self) -> Any:
        """The estimator that learns: `certificate()`, `ids_` and the other verbs are there."""
        return self._learner

    def _learn(self, x: Features, y: Any) -> None:
        content = (_content(x), y)
        if any(name not in self._columns for name, _ in content[0]):
            self._widen(content[0])
        number = self._next_id
        self._learner.partial_fit(self._row(content[0]), [y], ids=[number])
        self._next_id += 1
        self._contents[number] = content
        self._ids.setdefault(content, []).append(number)
        if self._learner.last_update_.n_removed:
            held = set(self._learner.ids_.tolist()) if hasattr(self._learner, "ids_") else set()
            for gone in [number for number in self._contents if number not in held]:
                self._drop(gone)

    def _revert(self, x: Features, y: Any) -> None:
        content = (_content(x), y)
        if content not in self._ids:
            what = "x" if y is None else f"x with y={y!r}"
            raise ValueError(
                f"{what} is not among the {len(self._contents)} samples held; revert what was "
                "given to update, once"
            )
        number = self._ids[content][0]
        self._learner.forget([number])
        self._drop(number)

    def _drop(self, number: int) -> None:
        content = self._contents.pop(number)
        self._ids[content].remove(number)
        if not self._ids[content]:
            del self._ids[content]

    def _widen(self, content: frozenset[Any]) -> None:
        """Give new features a column, the samples held having 0 there."""
        columns = dict(self._columns)
        for name in sorted({name for name, _ in content if name not in columns}, key=repr):
            columns[name] = len(columns)
        if not self._contents:
            self._learner = clone(self.model)
        else:
            # in the order of learning, and started rather than fitted: few samples may be held
            learner, before = clone(self.model), self._columns
            self._columns = columns
            try:
                rows = np.vstack([self._row(held) for held, _ in self._contents.values()])
            finally:
                self._columns = before
            targets = [target for _, target in self._contents.values()]
            self._learner = learner.partial_fit(rows, targets, ids=list(self._contents))
        self._columns = columns

    def _row(self, content: frozenset[Any]) -> FloatArray:
        """Features as a row."""
        row = np.zeros((1, max(1, len(self._columns))))
        for name, value in content:
            row[0, self._columns[name]] = value
        return row

    def _known(self, x: Features) -> frozenset[Any]:
        """Content of a sample to decide on; features never learned are passed over unread."""
        return _content({name: value for name, value in x.items() if name in self._columns})

    def _knows_nothing(self) -> bool:
        return not self._contents

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        raise NotImplementedError


def _content(x: Features) -> frozenset[Any]:
    """The features that are not 0, as a value that can be looked up."""
    pairs = []
    for name, value in x.items():
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = np.nan
        if not np.isfinite(number):
            raise ValueError(
                f"x has {name!r}: {value!r}, which is not a finite number; encode it upstream, by "
                "river.preprocessing.OneHotEncoder or StatImputer, say"
            )
        if number != 0.0:
            pairs.append((name, number))
    return frozenset(pairs)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


class RiverClassifier(_Adapter, base.Classifier):
    """A classifier of this package in River's streams.

    Parameters
    ----------
    model : estimator
        An :class:`adiabat.SVC` with its parameters; it is copied and stays as it is. Give `gamma`
        a number: ``"scale"`` would be taken from the first sample.

    Examples
    --------
    >>> from river import datasets, metrics
    >>> from adiabat import SVC
    >>> from adiabat.retention import Window
    >>> from adiabat.streams import RiverClassifier
    >>> stream = RiverClassifier(SVC(C=10.0, gamma=0.5, retain=Window(100)))
    >>> accuracy = metrics.Accuracy()
    >>> for x, y in datasets.Phishing().take(300):
    ...     accuracy.update(y, stream.predict_one(x))
    ...     stream.learn_one(x, y)
    >>> accuracy.get() > 0.8, stream.learner.certificate().ok
    (True, True)
    """

    @property
    def _multiclass(self) -> bool:
        return True

    def learn_one(self, x: Features, y: Any) -> None:
        """Learn one sample."""
        self._learn(x, _plain(y))

    update = learn_one

    def revert(self, x: Features, y: Any) -> None:
        """Unlearn a sample that was learned earlier."""
        self._revert(x, _plain(y))

    def predict_one(self, x: Features, **kwargs: Any) -> Any:
        """The label; None before anything was learned."""
        if self._knows_nothing():
            return None
        return _plain(self._learner.predict(self._row(self._known(x)))[0])

    def predict_proba_one(self, x: Features, **kwargs: Any) -> Any:
        """Probabilities by label, if the model has a `calibration`; none before it is known.

        They are known once each class has two samples.
        """
        if self.model.calibration is None:
            raise NotImplementedError(
                "RiverClassifier has no probabilities, since calibration=None: pass "
                "SVC(calibration='sigmoid', ...), or use predict_one"
            )
        held = Counter(target for _, target in self._contents.values())
        if not held or min(held.values()) < 2:
            return {}
        found = self._learner.predict_proba(self._row(self._known(x)))[0]
        labels = [_plain(label) for label in self._learner.classes_]
        return dict(zip(labels, found.tolist(), strict=True))

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"model": SVC(gamma=0.5, retain=Window(30))}


class RiverRegressor(_Adapter, base.Regressor):
    """A regressor of this package in River's streams.

    Parameters
    ----------
    model : estimator
        An :class:`adiabat.SVR` with its parameters; it is copied and stays as it is.

    Examples
    --------
    >>> from adiabat import SVR
    >>> from adiabat.streams import RiverRegressor
    >>> model = RiverRegressor(SVR(kernel="linear", C=100.0, epsilon=0.0))
    >>> for value in (0.0, 1.0, 2.0):
    ...     model.learn_one({"x": value}, 3.0 * value)
    >>> round(model.predict_one({"x": 4.0}), 6)
    12.0
    """

    def learn_one(self, x: Features, y: Any) -> None:
        """Learn one sample."""
        self._learn(x, float(y))

    update = learn_one

    def revert(self, x: Features, y: Any) -> None:
        """Unlearn a sample that was learned earlier."""
        self._revert(x, float(y))

    def predict_one(self, x: Features, **kwargs: Any) -> float:
        """The prediction; 0 before anything was learned."""
        if self._knows_nothing():
            return 0.0
        return float(self._learner.predict(self._row(self._known(x)))[0])

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"model": SVR(gamma=0.1, retain=Window(30))}


class RiverAnomalyDetector(_Adapter, base.AnomalyDetector):
    """A one-class machine of this package in River's streams.

    Parameters
    ----------
    model : estimator
        An :class:`adiabat.OneClassSVM` or :class:`adiabat.SVDD` with its parameters; it is copied
        and stays as it is.

    Examples
    --------
    >>> from adiabat import OneClassSVM
    >>> from adiabat.streams import RiverAnomalyDetector
    >>> model = RiverAnomalyDetector(OneClassSVM(nu=0.5, gamma=1.0))
    >>> for value in (0.0, 0.1, -0.1, 0.2):
    ...     model.learn_one({"x": value})
    >>> model.score_one({"x": 5.0}) > model.score_one({"x": 0.0})
    True
    """

    def learn_one(self, x: Features) -> None:
        """Learn one sample."""
        self._learn(x, None)

    update = learn_one

    def revert(self, x: Features) -> None:
        """Unlearn a sample that was learned earlier."""
        self._revert(x, None)

    def score_one(self, x: Features) -> float:
        """Above 0 outside, below 0 inside, 0 before anything was learned: more is stranger."""
        if self._knows_nothing():
            return 0.0
        return float(-self._learner.decision_function(self._row(self._known(x)))[0])

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"model": OneClassSVM(gamma=0.1, nu=0.2, retain=Window(30))}


class RiverDriftDetector(base.DriftDetector):
    """A drift detector on p-values, for River's streams: a bet against exchangeability.

    Give it the smoothed p-value of each sample before that is learned, as by ``predict_p(X,
    smoothing=True)`` at the sample's own label. An alarm is false on one stream of `odds` at most;
    after it the detector begins anew.

    Parameters
    ----------
    odds : float, default=100.0
        Capital at which there is an alarm; above 1.
    betting : {"jumper", "power"}, default="jumper"
        How it bets (:mod:`adiabat.martingales`).

    Examples
    --------
    >>> from adiabat.streams import RiverDriftDetector
    >>> detector = RiverDriftDetector(odds=20.0, betting="power")
    >>> alarms = []
    >>> for p in [0.4, 0.9, 0.2, 0.001, 0.002, 0.7]:
    ...     detector.update(p)
    ...     alarms.append(detector.drift_detected)
    >>> alarms
    [False, False, False, False, True, False]
    """

    def __init__(self, odds: float = 100.0, betting: str = "jumper") -> None:
        super().__init__()
        if not odds > 1.0:
            raise ValueError(f"odds={odds!r} must be above 1")
        if betting not in ("jumper", "power"):
            raise ValueError(f"betting={betting!r} must be 'jumper' or 'power'")
        self.odds = odds
        self.betting = betting
        self._reset()

    def _reset(self) -> None:
        super()._reset()
        kind: type[Martingale] = SimpleJumper if self.betting == "jumper" else PowerMartingale
        self._martingale = kind()

    def update(self, x: int | float) -> None:
        """Take one p-value."""
        if self.drift_detected:
            self._reset()
        self._drift_detected = self._martingale.update(float(x)) >= self.odds
