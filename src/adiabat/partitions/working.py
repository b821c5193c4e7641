# SPDX-License-Identifier: BSD-3-Clause
"""A kernel machine on rows that stay in their partitions: it holds the few that matter.

The model is solved on some rows. All others are asked whether they agree; the worst that do not are
learned by an update, until none is left. Then the model is the optimum on all rows, and the last
look is the certificate that says so. (SLS99 keeps support vectors from batch to batch, and is not
exact; a second look at the rows makes it so.)

`ask(function, shared, own)` is how partitions are reached: a list of ``function(part, shared,
own[k])`` for every partition k. The system that runs it is not known here.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import clone, is_classifier

from adiabat.certificate import Certificate
from adiabat.engine.memory import estimated_bytes, require_limit, require_room
from adiabat.errors import IdError
from adiabat.formulations.labels import label_array
from adiabat.partitions.looks import Decider, Look, Rows, Survey, look, seeds, survey
from adiabat.typing import IntArray

Ask = Callable[[Callable[..., Any], Any, Sequence[Any]], list[Any]]

# Rows to start from, and violators learned in a round, in all.
_START: Final = 2000
_BATCH: Final = 2000
_FEWER_HELD: Final = (
    "a larger memory_limit, a client with more memory, or parameters with fewer support vectors"
)


@dataclass(frozen=True)
class Round:
    """One look at all rows: what disagreed, and what the model was when asked."""

    n_seen: int
    n_violators: int
    n_learned: int
    n_held: int
    n_support: int
    bytes_sent: int
    bytes_received: int
    seconds: float


class Working:
    """The rows of a kernel machine that matter, of all that are in the partitions.

    Parameters
    ----------
    like : SVC or SVR
        Its parameters.
    ask : callable
        ``ask(function, shared, own)`` gives ``[function(part, shared, own[k]) for all parts]``.
    memory_limit : float or None
        Bytes that the held rows may take; None for what there is.
    """

    def __init__(self, like: Any, ask: Ask, memory_limit: float | None = None) -> None:
        _require_known(like)
        require_limit(memory_limit)
        self.like, self._ask, self._limit = clone(like), ask, memory_limit
        self.model: Any = None
        self.rounds: list[Round] = []
        self.surveys: list[Survey] = []
        self.gone: set[int] = set()
        self.names: npt.NDArray[Any] | None = None
        self._last: list[Look] = []

    def copy(self, ask: Ask) -> Working:
        """An independent copy that asks in another way."""
        twin = copy(self)
        twin._ask = ask
        twin.model, twin.gone = deepcopy(self.model), set(self.gone)
        twin.rounds, twin.surveys = list(self.rounds), list(self.surveys)
        return twin

    # -- learn and unlearn -----------------------------------------------------------------------

    def fit(self, n_parts: int) -> Working:
        """Learn from all partitions."""
        self.surveys = self._surveyed(range(n_parts), n_parts)
        n = sum(each.n for each in self.surveys)
        if n == 0:
            raise ValueError(f"X has 0 rows in its {n_parts} partitions; one row or more is needed")
        self.like.set_params(**self._resolved())
        start = self._seeded(self._start_numbers())
        self._require_room(len(start.places))
        self.model = clone(self.like).fit(
            start.X, start.y, sample_weight=start.weight, ids=start.places.tolist()
        )
        self._solve()
        return self

    def extend(self, n_parts: int) -> Working:
        """Learn further partitions: there are `n_parts` now, the first ones as before."""
        known = len(self.surveys)
        if n_parts < known:
            raise ValueError(f"n_parts={n_parts} is less than the {known} that were there")
        self.surveys = self.surveys + self._surveyed(range(known, n_parts), n_parts)
        fresh = self._labels() - set(_labels_of(self.model)) if is_classifier(self.like) else set()
        if fresh:
            if self._balanced:
                raise ValueError(
                    f"y has the label {min(fresh, key=str)!r} that is new, and "
                    "class_weight='balanced' was settled at fit; call fit on all partitions"
                )
            self._learn(self._seeded({label: self._share(len(fresh)) for label in fresh}))
        self._solve()
        return self

    def forget(self, ids: Any) -> Working:
        """Unlearn rows, by their number in the order of the partitions."""
        wanted = self._ids(ids)
        held = set(self.model.ids_.tolist())
        self.gone |= wanted
        inside = sorted(wanted & held)
        start = None
        if is_classifier(self.like):
            start = self._replacements(inside)
        if len(inside) == len(held) and start is None:
            start = self._seeded(_START) if not is_classifier(self.like) else None
        if len(inside) == len(held) and (start is None or not len(start.places)):
            raise ValueError(
                f"ids has all {len(held)} rows of the model, and no other is left; a model needs "
                "one row"
            )
        added = {} if start is None else _as_update(start)
        self.model.update(**added, remove=inside)
        self._solve()
        return self

    # -- evidence --------------------------------------------------------------------------------

    def certificate(self, look_again: bool = True) -> Certificate:
        """Is this the optimum on all rows? Those held and those in the partitions judged afresh."""
        looks = self._looked(0) if look_again else self._last
        inside: Certificate = self.model.certificate()
        worst = max(range(len(looks)), key=lambda k: looks[k].ratio)
        out = looks[worst]
        gaps = np.sum([each.gap for each in looks], axis=0)
        sizes = np.array([_objective_size(m) for _, m in self.model._model.machines])
        more = float(np.max(gaps / np.where(sizes > 0.0, sizes, 1.0), initial=0.0))
        found = replace(
            inside,
            n_samples=self.n_samples,
            n_seen=self.n_samples + len(self.gone),
            gap=float(inside.gap + more),
            ok=bool(inside.ok and out.ratio <= 1.0 and more <= inside.gap_tol),
            f_error=math.nan,
        )
        if out.ratio * inside.tol <= inside.residual or out.worst < 0:
            return found
        return replace(
            found,
            residual=out.residual,
            tol=out.allowed,
            rounding=out.rounding,
            worst=int(self._offsets[worst]) + out.worst,
        )

    def decider(self) -> Decider:
        """The model as the partitions need it."""
        model = self.model._model
        places = model.support()
        machines = [machine for _, machine in model.machines]
        formulation = model.formulation
        code_of = None
        if is_classifier(self.like):
            code_of = {label: code for code, label in formulation.label.items()}
        return Decider(
            kernel=model.kernel,
            vectors=model.features(places),
            weights=model.weights(places),
            biases=model.biases(),
            formulation=formulation,
            keys=tuple(key for key, _ in model.machines),
            code_of=code_of,
            tol=model.solver.tol,
            unit=np.array(
                [float(np.median(np.abs(m.t))) or abs(m.b) if m.n else 0.0 for m in machines]
            ),
        )

    def local(self) -> Any:
        """A copy of the model of the rows held: by itself it knows no others."""
        return deepcopy(self.named_model())

    def named_model(self) -> Any:
        """The model of the rows held, which knows the names of the columns, if they have any."""
        if self.names is None:
            return self.model
        view = object.__new__(type(self.model))
        view.__dict__.update(self.model.__dict__)
        view.feature_names_in_ = self.names
        return view

    @property
    def n_samples(self) -> int:
        """Rows in the model: in the partitions and not forgotten."""
        return sum(each.n for each in self.surveys) - len(self.gone)

    # -- within ----------------------------------------------------------------------------------

    def _solve(self) -> None:
        """Learn violators until there are none."""
        while True:
            started = time.perf_counter()
            n = len(self.surveys)
            looks = self._looked(max(50, -(-2 * _BATCH // n)))
            rows = self._gathered([each.rows for each in looks])
            violators = sum(each.n_violators for each in looks)
            held, support = len(self.model.ids_), self.model._model.n_support()
            learned = 0 if rows is None else len(rows.places)
            self.rounds.append(
                Round(
                    sum(each.n_seen for each in looks), violators, learned, held, support,
                    self._sent * n, 0 if rows is None else _nbytes(rows),
                    time.perf_counter() - started,
                )
            )  # fmt: skip
            if rows is None:
                self._last = looks
                return
            self._learn(rows)
            if self._limit is not None:  # more of the rows may be support vectors now
                self._require_room(0)

    def _learn(self, rows: Rows) -> None:
        self._require_room(len(rows.places))
        self.model.update(**_as_update(rows))

    def _require_room(self, n_more: int) -> None:
        """MemoryError if the rows held and so many more do not fit at the client."""
        if self.model is None:  # each of the first rows may become a support vector
            n, support, machines = n_more, n_more, max(1, math.comb(len(self._labels()), 2))
        else:
            model = self.model._model
            n, support = len(self.model.ids_) + n_more, model.n_support()
            machines = len(model.machines)
        require_room(
            estimated_bytes(n, self._width, support, machines), self._limit,
            f"Holding {n} rows with {support} support vectors at the client", _FEWER_HELD,
        )  # fmt: skip

    def _looked(self, most: int) -> list[Look]:
        decider = self.decider()
        self._sent = int(_nbytes_of(decider.vectors) + decider.weights.nbytes)
        own = [(excluded, most) for excluded in self._excluded()]
        return self._ask(look, (self.like, decider), own)

    def _gathered(self, parts: Sequence[Rows | None]) -> Rows | None:
        """Rows of all partitions, their places made ids."""
        some = [(k, part) for k, part in enumerate(parts) if part is not None and len(part.places)]
        if not some:
            return None
        stack = sp.vstack if sp.issparse(some[0][1].X) else np.vstack
        X = stack([part.X for _, part in some])
        return Rows(
            np.concatenate([self._offsets[k] + part.places for k, part in some]),
            sp.csr_array(X) if sp.issparse(X) else X,
            label_array([v for _, part in some for v in part.y.tolist()])
            if is_classifier(self.like)
            else np.concatenate([part.y for _, part in some]),
            np.concatenate([part.weight for _, part in some]),
        )

    def _seeded(self, number: dict[Any, int] | int) -> Rows:
        own = [(number, excluded) for excluded in self._excluded()]
        rows = self._gathered(self._ask(seeds, self.like, own))
        if rows is None:
            raise ValueError("no row of positive weight is left; one or more is needed")
        return rows

    def _start_numbers(self) -> dict[Any, int] | int:
        if not is_classifier(self.like):
            return self._share(1)
        labels = self._labels()
        return {label: self._share(len(labels)) for label in labels}

    def _share(self, n_labels: int) -> int:
        """Rows of one label from one partition to start from."""
        return max(2, -(-_START // (n_labels * len(self.surveys))))

    def _replacements(self, inside: list[int]) -> Rows | None:
        """Rows for labels that would leave with the rows that go, though others have them."""
        model = self.model._model
        places = model.ledger.locate(inside)
        stays = np.ones(len(model), dtype=bool)
        stays[places] = False
        kept = {model.formulation.label[code] for code in np.unique(model.target[stays]).tolist()}
        missing = [label for label in _labels_of(self.model) if label not in kept]
        if not missing:
            return None
        own = [
            ({label: self._share(len(missing)) for label in missing}, excluded)
            for excluded in self._excluded()
        ]
        return self._gathered(self._ask(seeds, self.like, own))

    def _surveyed(self, numbers: range, n_parts: int) -> list[Survey]:
        """Who is in some partitions; those that are known already are not asked."""
        wants = self.model is None and self.like.gamma == "scale" and self._has_gamma
        found: list[Survey] = self._ask(
            survey, self.like, [wants if k in numbers else None for k in range(n_parts)]
        )
        fresh = [found[k] for k in numbers]
        widths = {each.n_features for each in [*self.surveys, *fresh] if each.n}
        if len(widths) > 1:
            raise ValueError(
                f"X has {' and '.join(map(str, sorted(widths)))} features in different "
                "partitions; they must agree"
            )
        for each in fresh:
            if each.names is None:
                continue
            if self.names is None:
                self.names = each.names
            elif not np.array_equal(each.names, self.names):
                raise ValueError("X has columns of other names in different partitions")
        return fresh

    def _resolved(self) -> dict[str, Any]:
        """Parameters that depend on all rows, as numbers."""
        params: dict[str, Any] = {}
        if self._has_gamma and self.like.gamma == "scale":
            params["gamma"] = self._gamma()
        self._balanced = getattr(self.like, "class_weight", None) == "balanced"
        if self._balanced:
            own: dict[Any, float] = {}
            for each in self.surveys:
                for label, weight in zip(each.labels, each.weights, strict=True):
                    own[label] = own.get(label, 0.0) + weight
            total = sum(own.values())
            params["class_weight"] = {
                label: total / (len(own) * weight) if weight > 0.0 else 1.0
                for label, weight in own.items()
            }
        return params

    def _gamma(self) -> float:
        moments = None
        for each in self.surveys:
            if each.entries is not None:
                moments = each.entries if moments is None else moments.joined(each.entries)
        assert moments is not None
        variance = float(moments.variance()[0])
        value = 1.0 / (self._width * variance) if variance > 0.0 else 1.0
        if not (math.isfinite(variance) and math.isfinite(value)):
            raise ValueError(
                f"gamma='scale': the variance of X is {variance:g}; scale the features"
            )
        return value

    @property
    def _has_gamma(self) -> bool:
        return self.like.kernel in ("rbf", "poly", "laplacian", "chi2")

    @property
    def _width(self) -> int:
        return max(each.n_features for each in self.surveys)

    @property
    def _offsets(self) -> IntArray:
        return np.cumsum([0, *(each.n for each in self.surveys)])[:-1]

    def _excluded(self) -> list[IntArray]:
        """Places of each partition that the model holds or has forgotten."""
        held = self.model.ids_.tolist() if self.model is not None else []
        ids = np.array(sorted({*held, *self.gone}), dtype=np.int64)
        offsets = self._offsets
        ends = np.append(offsets[1:], sum(each.n for each in self.surveys))
        return [
            ids[np.searchsorted(ids, first) : np.searchsorted(ids, last)] - first
            for first, last in zip(offsets, ends, strict=True)
        ]

    def _labels(self) -> set[Any]:
        return {
            label
            for each in self.surveys
            for label, n in zip(each.labels, each.counts, strict=True)
            if n
        }

    def _ids(self, ids: Any) -> set[int]:
        wanted = np.atleast_1d(np.asarray(ids))
        if wanted.ndim != 1 or (len(wanted) and wanted.dtype.kind not in "iu"):
            raise IdError(f"ids={ids!r} must be whole numbers, the places of rows in X")
        n = sum(each.n for each in self.surveys)
        chosen = set(wanted.tolist())
        bad = sorted(i for i in chosen if not 0 <= i < n or i in self.gone)
        if bad or len(chosen) < len(wanted):
            what = f"{bad[0]} is not" if bad else "one is there twice: each may be once"
            raise IdError(f"ids has {len(wanted)} rows, of which {what} in the model of {n} rows")
        return chosen


def _as_update(rows: Rows) -> dict[str, Any]:
    return {
        "X": rows.X, "y": rows.y, "sample_weight": rows.weight, "ids": rows.places.tolist(),
    }  # fmt: skip


def _labels_of(model: Any) -> list[Any]:
    labels: list[Any] = model.classes_.tolist()
    return labels


def _objective_size(machine: Any) -> float:
    """Size of the two terms of the objective, as the certificate takes it."""
    square = float(machine.u @ (machine.r + machine.t)) - float(machine.b * machine.d)
    return 0.5 * abs(square) + abs(float(machine.u @ machine.t))


def _nbytes(rows: Rows) -> int:
    return int(_nbytes_of(rows.X) + rows.weight.nbytes + rows.places.nbytes)


def _nbytes_of(X: Any) -> int:
    return int(X.data.nbytes + X.indices.nbytes if sp.issparse(X) else X.nbytes)


def _require_known(like: Any) -> None:
    if like.kernel == "precomputed":
        raise ValueError(
            "kernel='precomputed' has no rows to leave in partitions; use a kernel of features"
        )
    if like.C == np.inf:
        raise ValueError("C=inf is for models that hold all of their rows; use a finite C")
    if like.retain is not None:
        raise ValueError(f"retain={like.retain!r} lets rows go; partitions keep all, use None")
