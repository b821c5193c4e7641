# SPDX-License-Identifier: BSD-3-Clause
"""A durable model: one folder, the verbs of an estimator, and a log of what was done."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any

from adiabat.store import records, schema
from adiabat.store.analysis import LeftOut, Progress, cross_validate, leave_one_out
from adiabat.store.changes import (
    add_batch,
    add_column,
    correct_records,
    erase_records,
    follow_parameters,
    refresh_held,
)
from adiabat.store.decoding import described
from adiabat.store.encoding import (
    as_id,
    encode,
    encode_arrays,
    encode_questions,
    table_ids,
    text_columns,
)
from adiabat.store.folder import DATABASE
from adiabat.store.lookup import find_records, names_of, new_ones, require_new
from adiabat.store.origin import Origin, new_reference
from adiabat.store.outcome import Outcome, Watch
from adiabat.store.outgoing import Outgoing
from adiabat.store.predictions import predictions
from adiabat.store.predictor import Predictor
from adiabat.store.repair import repair
from adiabat.store.session import Change, Session
from adiabat.store.settings import Settings
from adiabat.store.signing import Keys, read_public_key
from adiabat.store.tables import Table, as_table, read_table
from adiabat.store.tasks import Rows, plain
from adiabat.store.verification import Verification, verify


class Store(Outgoing):
    """A model in a folder. Make one with `adiabat.create_store`, open it with `open_store`.

    Parameters
    ----------
    path : path-like
        The folder.
    wait : float, default=10
        Seconds to wait for another process that is changing the store.
    signing_key, public_key, suppression_key, allow_unsigned
        As in `open_store`.
    announce : callable, optional
        Told in a few words what is being done, or who is being waited for.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        wait: float = 10.0,
        signing_key: str | os.PathLike[str] | None = None,
        public_key: str | os.PathLike[str] | None = None,
        suppression_key: str | os.PathLike[str] | None = None,
        allow_unsigned: bool = False,
        announce: Callable[[str], None] | None = None,
    ) -> None:
        self.path = os.fspath(path)
        keys = Keys.read(signing_key, public_key, suppression_key, allow_unsigned)
        self._session = Session(self.path, wait, keys, announce)
        self._origin: Origin | None = None

    def on_behalf_of(
        self, by: str, request: str | None = None, content: bytes | None = None
    ) -> Store:
        """The same store; what is changed through it is logged as done by somebody.

        Parameters
        ----------
        by : str
            Who asked: the name of a key, never that of a row.
        request : str, optional
            The request's own name, by which a second one for the same is known.
        content : bytes, optional
            The request itself; the log keeps an HMAC of it that goes with its rows.
        """
        other = copy.copy(self)
        other._origin = Origin(by, request, content)
        return other

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the model in memory; the store cannot be used after that."""
        self._session.close()

    # -- look ------------------------------------------------------------------------------------

    @property
    def settings(self) -> Settings:
        """What the store was set up to be."""
        with self._session.reading() as (_, _, settings):
            return settings

    @property
    def model(self) -> Any:
        """The estimator as of the last entry; later changes of the store leave it as it is."""
        return self._session.model()

    def prepare(self) -> None:
        """Read the estimator into memory, if it is not there, so that the next change has it."""
        self._session.prepare()

    @property
    def predictor(self) -> Predictor:
        """What the model decides with as of the last entry; nothing changes it any more."""
        return self._session.predictor()

    @property
    def ids(self) -> list[str]:
        """Ids of the rows held, in the order in which they were learned."""
        with self._session.reading() as (connection, _, _):
            return list(records.ids_by_number(connection).values())

    def unknown(self, ids: Iterable[Any]) -> list[str]:
        """Those of the ids that the store does not hold."""
        names = [as_id(item) for item in ids]
        with self._session.reading() as (connection, _, _):
            held = records.known(connection, names)
        return [name for name in names if name not in held]

    def find(self, ids: Iterable[Any]) -> list[dict[str, Any]]:
        """The rows of those of the ids that are there, as plain JSON.

        Each has its ``id``, ``number``, ``features`` by column, ``label``, ``weight`` and the
        ``entry`` of the log that learned it.
        """
        names = [as_id(item) for item in ids]
        with self._session.reading() as (connection, _, settings):
            held = records.find(connection, names)
        return [described(held[name], settings) for name in names if name in held]

    def points(self, numbers: Iterable[int]) -> dict[int, Any]:
        """Features of rows as the model takes them, a row each, by the rows' numbers."""
        with self._session.reading() as (connection, _, settings):
            held = records.find_numbers(connection, list(numbers))
        return {
            number: records.decode_features([record.features], settings.n_features)
            for number, record in held.items()
        }

    def find_numbers(self, numbers: Iterable[int]) -> dict[int, dict[str, Any]]:
        """As `find`, by the numbers that the store has for its rows."""
        with self._session.reading() as (connection, _, settings):
            held = records.find_numbers(connection, list(numbers))
        return {number: described(record, settings) for number, record in held.items()}

    def __len__(self) -> int:
        with self._session.reading() as (connection, _, _):
            return records.count(connection)

    def rows(self) -> Rows:
        """The training rows, in the order of `ids`."""
        with self._session.reading() as (connection, _, settings):
            return records.as_rows(list(records.read_all(connection)), settings.n_features)

    def info(self) -> dict[str, Any]:
        """What the store is and how it stands, as plain JSON."""
        predictor = self.predictor  # so that a model that does not hold is refused
        with self._session.reading() as (connection, head, settings):
            rows = records.count(connection)
        if predictor.hash != head.hash:  # changed in between
            return self.info()
        return {
            "model": self.path,
            "task": settings.task,
            "parameters": plain(settings.parameters),
            "scale": settings.scale,
            "impute": settings.impute,
            "id": settings.id_column,
            "label": settings.label_column,
            "rows": rows,
            "features": settings.n_features,
            "columns": settings.features,
            "classes": plain(getattr(predictor.decider, "classes_", None)),
            "sets": head.body["sets"],
            "certificate": head.body["certificate"]["after"],
            "entries": head.seq,
            "head": head.hash,
            "time": head.body["time"],
            "signed": settings.public_key is not None,
            "schema": schema.SCHEMA_VERSION,
            "bytes": os.path.getsize(os.path.join(self.path, DATABASE)),
        }

    def predict(
        self, data: Any, *, delimiter: str | None = None, decimal: str | None = None
    ) -> dict[str, Any]:
        """Predictions for the rows of a file or data frame.

        Returns
        -------
        dict
            Columns ``prediction`` and, if there are any, ``id``, ``decision``, ``confidence``.
        """
        predictor = self.predictor
        table = _read(data, predictor.settings, delimiter, decimal)
        decider = predictor.require_fitted(self.path)
        return predictions(decider, *encode_questions(table, predictor.settings))

    def verify(
        self,
        *,
        retrain: bool = False,
        public_key: str | os.PathLike[str] | None = None,
        expect_head: str | None = None,
    ) -> Verification:
        """Check everything: pages, log, rows, model, certificate.

        Parameters
        ----------
        retrain : bool, default=False
            Whether to fit the model anew from the rows, and compare decision values.
        public_key : path-like, optional
            A PEM file: every entry must be signed by that key.
        expect_head : str, optional
            The head of an earlier verification, kept elsewhere: the log must have that entry. An
            older copy of the folder does not.
        """
        expected = None if public_key is None else read_public_key(public_key)
        return verify(self._session, retrain=retrain, public_key=expected, expect_head=expect_head)

    def leave_one_out(
        self,
        *,
        hold_scaling: bool = False,
        n_jobs: int | None = None,
        progress: Progress | None = None,
    ) -> LeftOut:
        """What each row would get from the model without it: exact, and without a refit.

        Parameters
        ----------
        hold_scaling : bool, default=False
            For a store that scales its features exactly: hold the scaling of all rows, rather than
            take each row out of it, too. Much faster.
        n_jobs : int or None, default=None
            Rows left out at a time, as in joblib.
        progress : callable, optional
            Called with (removals done, removals in all).
        """
        return leave_one_out(self._session, hold_scaling, n_jobs, progress)

    def cross_validate(
        self,
        *,
        folds: int = 5,
        scoring: str | None = None,
        shuffle: bool = False,
        seed: int = 0,
        positive_label: Any = None,
    ) -> dict[str, Any]:
        """Exact cross-validation: each fold is unlearned from the model in turn.

        Parameters
        ----------
        folds : int, default=5
        scoring : str, optional
            A score of scikit-learn; by default accuracy or r2.
        shuffle : bool, default=False
            Whether to deal the rows to folds at random, by `seed`; else in order of learning.
        seed : int, default=0
        positive_label : optional
            The class that a score such as ``"f1"`` or ``"recall"`` is about.
        """
        return cross_validate(self._session, folds, scoring, shuffle, seed, positive_label)

    # -- change ----------------------------------------------------------------------------------

    def learn(
        self,
        data: Any,
        y: Any = None,
        *,
        ids: Any = None,
        sample_weight: Any = None,
        reference: str | None = None,
        allow_erased: bool = False,
        skip_known: bool = False,
        delimiter: str | None = None,
        decimal: str | None = None,
        dry_run: bool = False,
    ) -> Outcome:
        """Learn rows that are not there yet.

        Parameters
        ----------
        data : path, data frame, or array
            Rows with ids and labels in their columns; an array needs `ids` (and `y`).
        y, ids, sample_weight : sequences, optional
            For an array.
        reference : str, optional
            Kept in the log.
        allow_erased : bool, default=False
            Whether ids that were erased may come back.
        skip_known : bool, default=False
            Whether to pass over rows that are there already and the same, so that a job that was
            interrupted can be run again. A row that is there and differs is an error.
        delimiter, decimal : str, optional
            Of a CSV file; by default as they are found in it.
        dry_run : bool, default=False
            Only say what would move.
        """
        watch = Watch("learn", dry_run)
        table = None if ids is not None else _read(data, self.settings, delimiter, decimal)
        with self._changing("learn", reference, dry_run) as change:
            if table is None:
                batch = encode_arrays(data, y, ids, sample_weight, change.settings)
            else:
                batch = encode(table, change.settings)
            if skip_known and change.settings.features is not None:
                batch = new_ones(change, batch)
            watch.begin(change)
            require_new(change, batch.ids, allow_erased)
            add_batch(change, batch)
            watch.end(change, added=len(batch))
        return watch.outcome(change)

    def forget(
        self,
        ids: Any,
        *,
        reference: str | None = None,
        missing: str = "raise",
        suppress: bool = True,
        dry_run: bool = False,
    ) -> Outcome:
        """Erase rows: from the model, from the table, and from every file of the folder.

        Parameters
        ----------
        ids : id or sequence of ids
        reference : str, optional
            The request behind it; `receipt` finds the erasure by it. One is made if none is given.
        missing : {"raise", "ignore"}
            What to do about ids that are not there.
        suppress : bool, default=True
            Whether to refuse these ids when a later file brings them.
        dry_run : bool, default=False
            Only say what would move.
        """
        if missing not in ("raise", "ignore"):
            raise ValueError(f"missing={missing!r} must be 'raise' or 'ignore'")
        watch = Watch("forget", dry_run)
        names = names_of(ids)
        reference = new_reference() if reference is None else reference
        with self._changing("forget", reference, dry_run) as change:
            found = find_records(change, names, missing)
            watch.begin(change)
            erase_records(change, found, suppress)
            watch.end(change, removed=len(found))
        return watch.outcome(change)

    def revise(
        self,
        data: Any,
        *,
        reference: str | None = None,
        delimiter: str | None = None,
        decimal: str | None = None,
        dry_run: bool = False,
    ) -> Outcome:
        """Correct rows that are there: labels, features or weights, by the columns of `data`.

        Parameters
        ----------
        data : path or data frame
            The ids, and the columns to correct; what is left out stays.
        reference, delimiter, decimal, dry_run
            As in `learn`.
        """
        watch = Watch("revise", dry_run)
        table = _read(data, self.settings, delimiter, decimal)
        with self._changing("revise", reference, dry_run) as change:
            found = find_records(change, table_ids(table, change.settings), "raise")
            watch.begin(change)
            correct_records(change, found, table)
            watch.end(change, revised=len(found))
        return watch.outcome(change)

    def retune(
        self, *, reference: str | None = None, dry_run: bool = False, **parameters: Any
    ) -> Outcome:
        """Change parameters of the estimator; the model follows the optimum there.

        Parameters
        ----------
        reference, dry_run
            As in `learn`.
        **parameters
            New values, such as ``C=100.0``.
        """
        watch = Watch("retune", dry_run)
        with self._changing("retune", reference, dry_run) as change:
            watch.begin(change)
            follow_parameters(change, parameters)
            watch.end(change)
        return watch.outcome(change)

    def refresh(self, *, reference: str | None = None, dry_run: bool = False) -> Outcome:
        """Take gamma and class weights again from the rows now there; nothing else is held then.

        Categories that the first rows fixed, and no row has any more, go too. After an erasure
        this leaves nothing in the model that was resolved from the erased rows.
        """
        watch = Watch("refresh", dry_run)
        with self._changing("refresh", reference, dry_run) as change:
            watch.begin(change)
            refresh_held(change)
            watch.end(change)
        return watch.outcome(change)

    def add_column(
        self, name: str, *, kind: str = "number", reference: str | None = None
    ) -> Outcome:
        """Add a feature; the rows that are there have a gap in it.

        For a store that fills gaps (`impute`). The model is fitted anew; `revise` fills in values.

        Parameters
        ----------
        name : str
        kind : {"number", "category"}
        reference : str, optional
            Kept in the log.
        """
        if kind not in ("number", "category"):
            raise ValueError(f"kind={kind!r} must be 'number' or 'category'")
        watch = Watch("columns", False)
        with self._changing("columns", reference, False) as change:
            watch.begin(change)
            add_column(change, name, kind)
            watch.end(change)
        return watch.outcome(change)

    def repair(self, *, reference: str | None = None) -> Outcome:
        """Fit the model again from the rows, where it is damaged or not the optimum on them.

        A store whose rows, log, marks or signatures do not hold is refused; restore a copy of it.
        Gamma, class weights and scaling are resolved again from the rows. A model that
        holds is left as it is, and nothing is logged.

        Parameters
        ----------
        reference : str, optional
            Kept in the log.

        Returns
        -------
        Outcome
            Its `found` says what was wrong.
        """
        return repair(self._session, reference)

    def _changing(
        self, operation: str, reference: str | None, dry_run: bool
    ) -> AbstractContextManager[Change]:
        return self._session.changing(operation, reference, dry_run, origin=self._origin)


# -- within --------------------------------------------------------------------------------------


def _read(
    data: Any, settings: Settings, delimiter: str | None, decimal: str | None = None
) -> Table:
    if isinstance(data, (str, os.PathLike)):
        return read_table(os.fspath(data), text_columns(settings), delimiter, decimal)
    return as_table(data)
