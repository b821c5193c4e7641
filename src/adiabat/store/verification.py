# SPDX-License-Identifier: BSD-3-Clause
"""Is a store what its log says, and is its model the optimum? Everything is read and recomputed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import numpy as np
import sqlalchemy as sa

from adiabat.errors import AdiabatError, StoreDamagedError
from adiabat.store import connection as database
from adiabat.store import log, records, schema
from adiabat.store.digests import SetDigest
from adiabat.store.frame import seconds_behind
from adiabat.store.session import Session
from adiabat.store.settings import Settings
from adiabat.store.signing import signature_holds
from adiabat.store.tasks import TASKS, certificate_fields, is_fitted, machine, new_model

# Decision values of a refit may differ by what two optima within `tol` may differ.
_AGREE: Final = 1e-6
_HASH_DIGITS: Final = 64


@dataclass
class Verification:
    """What `verify` found.

    Attributes
    ----------
    ok : bool
    problems : list of str
        A sentence each; empty if all is well.
    checks : list of str
        What was checked and holds.
    entries, rows : int
    head : str or None
        Hash of the last entry: keep it elsewhere to notice a log that was cut or written anew.
    certificate : dict or None
        Recomputed from the rows.
    retrained : dict or None
        With ``retrain=True``, the largest difference from a model fitted anew.
    signed : bool
        Whether the log is signed, so that ``"signatures"`` is among the checks.
    repairable : bool
        Whether only the model does not hold, so that `repair` can fit it again from the rows.
    """

    ok: bool = True
    problems: list[str] = field(default_factory=list)
    checks: list[str] = field(default_factory=list)
    entries: int = 0
    rows: int = 0
    head: str | None = None
    certificate: dict[str, Any] | None = None
    retrained: dict[str, Any] | None = None
    signed: bool = False
    repairable: bool = False

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain JSON."""
        return asdict(self)


def verify(
    session: Session, *, retrain: bool, public_key: bytes | None, expect_head: str | None = None
) -> Verification:
    """Check a store; what does not hold is listed, not raised."""
    session.require_open()
    expected_head = None if expect_head is None else _as_hash(expect_head)
    result = Verification()
    check = _Checks(result)
    try:
        with session.snapshot() as (connection, head, settings):
            result.head = head.hash
            sound = check("pages and indices of the database", lambda: _pages(connection))
            sound &= check("chain of the log", lambda: _chain(connection, result))
            sound &= check("rows against their digest", lambda: _rows(connection, head, result))
            sound &= check("erased ids", lambda: _suppressed(connection, head))
            expected = public_key or session.keys.expected(settings)
            result.signed = bool(expected or settings.public_key)
            if result.signed:
                sound &= check("signatures", lambda: _signatures(connection, settings, expected))
            else:
                sound &= check("", lambda: _no_signatures(connection))
            if expected_head is not None:
                sound &= check("the expected head", lambda: _contains(connection, expected_head))
            loaded: list[Any] = []
            if sound:
                said = "model against its digest"
                check(said, lambda: loaded.append(session.load(connection, head, settings)))
                held = list(records.read_all(connection))
    except AdiabatError as error:
        result.ok = False
        result.problems.append(str(error))
        return result
    if loaded:
        check("certificate", lambda: _certificate(loaded[0], result))
        # A model that keeps no rows can be held against them only by a refit.
        if retrain or not TASKS[settings.task].keeps_rows:
            check("refit", lambda: _refit(loaded[0], settings, held, result))
    result.repairable = sound and not result.ok
    return result


class _Checks:
    """Carries out checks, and notes how each ended."""

    def __init__(self, result: Verification) -> None:
        self._result = result

    def __call__(self, said: str, action: Callable[[], None]) -> bool:
        """Whether a check holds; any error that unsound content causes means that it does not."""
        try:
            action()
        except Exception as error:
            self._result.ok = False
            self._result.problems.append(f"{said}: {error}" if said else str(error))
            return False
        if said:
            self._result.checks.append(said)
        return True


def _pages(connection: sa.Connection) -> None:
    problems = database.integrity_problems(connection)
    if problems:
        raise StoreDamagedError("; ".join(problems))


def _chain(connection: sa.Connection, result: Verification) -> None:
    speaking = 0
    before: log.Entry | None = None
    for entry in log.read_chain(connection):
        speaking += bool(log.read_commitments(connection, entry))
        if before is not None:
            for part in ("dataset", "model", "certificate"):
                if entry.body[part]["before"] != before.body[part]["after"]:
                    raise StoreDamagedError(
                        f"entry {entry.seq} begins with another {part} than entry {before.seq} left"
                    )
            behind = seconds_behind(entry.body["time"], before.body["time"])
            if behind != entry.body.get("clock_back", 0.0):
                raise StoreDamagedError(
                    f"entry {entry.seq} is {behind:g} s earlier than entry {before.seq}, and does "
                    "not say so"
                )
        before = entry
        result.entries += 1
    count = sa.select(sa.func.count()).select_from(schema.commitments)
    if connection.execute(count).scalar_one() != speaking:
        raise StoreDamagedError("there are commitments that no entry speaks of")


def _rows(connection: sa.Connection, head: log.Entry, result: Verification) -> None:
    digest = SetDigest()
    last = -1
    for record in records.read_all(connection):
        digest.add([record.leaf])
        result.rows += 1
        last = record.number
    state = connection.execute(sa.select(schema.state)).mappings().one()
    if digest.hexdigest() != head.body["dataset"]["after"]:
        raise StoreDamagedError("the training rows are not those that the log vouches for")
    if digest.to_bytes() != state["dataset"] or state["entry"] != head.seq:
        raise StoreDamagedError("the state is not that of the last entry")
    if state["next_number"] != head.body["next_number"] or state["next_number"] <= last:
        raise StoreDamagedError("the running number is not that of the last entry")


def _suppressed(connection: sa.Connection, head: log.Entry) -> None:
    digest = SetDigest()
    digest.add(connection.execute(sa.select(schema.suppressed.c.mark)).scalars())
    state = connection.execute(sa.select(schema.state)).mappings().one()
    if digest.hexdigest() != head.body["suppressed"] or digest.to_bytes() != state["suppressed"]:
        raise StoreDamagedError("the marks of erased ids are not those that the log vouches for")


def _no_signatures(connection: sa.Connection) -> None:
    if connection.execute(sa.select(schema.signatures.c.seq).limit(1)).first() is not None:
        raise StoreDamagedError("there are signatures, and the store does not sign")


def _as_hash(text: str) -> str:
    digest = text.strip().lower()
    if len(digest) != _HASH_DIGITS or set(digest) - set("0123456789abcdef"):
        raise ValueError(f"expect_head={text!r} must be the {_HASH_DIGITS} hex digits of a head")
    return digest


def _contains(connection: sa.Connection, head: str) -> None:
    if not any(entry.hash == head for entry in log.read_chain(connection)):
        raise StoreDamagedError(
            f"no entry of the log has the hash {head}: the folder is an older copy, or its log was "
            "cut or written anew"
        )


def _signatures(connection: sa.Connection, settings: Settings, expected: bytes | None) -> None:
    wanted = expected or bytes.fromhex(settings.public_key or "")
    signed = {row.seq: row for row in connection.execute(sa.select(schema.signatures))}
    for entry in log.read_chain(connection):
        row = signed.pop(entry.seq, None)
        if row is None or row.public_key != wanted:
            raise StoreDamagedError(f"entry {entry.seq} is not signed under the expected key")
        if not signature_holds(wanted, row.signature, entry.hash):
            raise StoreDamagedError(f"the signature of entry {entry.seq} is not valid")
    if signed:
        raise StoreDamagedError("there are signatures of entries that are not there")


def _certificate(model: Any, result: Verification) -> None:
    if not is_fitted(model):
        if result.rows:
            raise StoreDamagedError("there are rows, and the model has learned none")
        return
    certificate = model.certificate()
    result.certificate = certificate_fields(certificate)
    if not certificate.ok:
        raise StoreDamagedError(str(certificate))
    if certificate.n_samples != result.rows:
        raise StoreDamagedError(
            f"the model has {certificate.n_samples} rows, the table has {result.rows}"
        )


def _refit(
    model: Any, settings: Settings, held: list[records.Record], result: Verification
) -> None:
    """A model fitted from nothing on the stored rows decides as this one does."""
    if not is_fitted(model):
        return
    task = TASKS[settings.task]
    rows = records.as_rows(held, settings.n_features)
    X, parameters = rows.X, {**settings.parameters, **task.held(model)}
    if settings.scale == "held":
        # The scaling is held as gamma is: the refit is of the machine, on the rows so scaled.
        X, model = model.scaler_.transform(X), machine(model)
        fresh = task.create(parameters)
    else:
        fresh = new_model(settings, parameters)
    numbers = np.array([record.number for record in held], dtype=np.int64)
    task.learn(fresh, numbers, X, rows.labels, rows.weights)
    decide = "decision_function" if hasattr(model, "decision_function") else "predict"
    ours = np.asarray(getattr(model, decide)(X), dtype=np.float64)
    theirs = np.asarray(getattr(fresh, decide)(X), dtype=np.float64)
    largest = float(np.max(np.abs(ours - theirs)))
    allowed = _AGREE * max(1.0, float(np.max(np.abs(theirs))))
    result.retrained = {"largest_difference": largest, "allowed": allowed, "rows": len(held)}
    if not largest <= allowed:
        raise StoreDamagedError(
            f"decision values differ by {largest:.1e} from a model fitted anew ({allowed:.1e} "
            "allowed)"
        )
