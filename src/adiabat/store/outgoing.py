# SPDX-License-Identifier: BSD-3-Clause
"""What goes out of a store: files, each one in its log, and receipts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from adiabat.errors import StoreError
from adiabat.store import log
from adiabat.store.analysis import Progress, left_out, require_fitted, rows_and_log
from adiabat.store.backup import write_backup
from adiabat.store.encoding import as_id
from adiabat.store.exports import export, publish, require_outside
from adiabat.store.log import Entry
from adiabat.store.lookup import is_retry
from adiabat.store.receipt import receipt
from adiabat.store.report import report_page
from adiabat.store.session import Change, Session
from adiabat.store.signing import read_public_key, read_signature
from adiabat.store.tasks import certificate_fields

# Reports that were made in vain, since rows were erased meanwhile.
_ATTEMPTS: Final = 5


class _Outdated(Exception):
    """A page shows rows that were erased while it was being made."""


class Outgoing:
    """The part of `Store` that writes files for others."""

    path: str
    _session: Session

    def log(self) -> list[Entry]:
        """All entries of the log, the chain checked."""
        with self._session.reading() as (connection, _, _):
            return list(log.read_chain(connection))

    def head(self) -> dict[str, Any]:
        """The last entry's number, hash, time and, if the log is signed, signature and key."""
        with self._session.reading() as (connection, head, settings):
            signature = read_signature(connection, head)
        return {
            "entry": head.seq,
            "hash": head.hash,
            "time": head.body["time"],
            "signature": None if signature is None else signature.hex(),
            "public_key": settings.public_key,
        }

    def log_since(self, entry: int) -> list[Entry]:
        """The entries after one, each checked against its hash."""
        with self._session.reading() as (connection, _, _):
            return log.read_since(connection, entry)

    def is_retry(self, entry: Entry, ids: Sequence[Any], content: bytes) -> bool:
        """Whether a request for rows of these ids may be the one that an entry is of.

        Parameters
        ----------
        entry : Entry
            With the name of that request.
        ids : sequence of ids
        content : bytes
            As it was given to `on_behalf_of`.
        """
        names = [as_id(item) for item in ids]
        with self._session.reading() as (connection, _, settings):
            return is_retry(connection, settings, self._session.keys, entry, names, content)

    def require_outside(self, path: str | os.PathLike[str]) -> None:
        """Refuse to write into the folder of the store, whose files are all accounted for.

        Or to where nothing can be written at all.
        """
        require_outside(self.path, os.fspath(path))

    def export(
        self,
        path: str | os.PathLike[str],
        *,
        format: str = "adiabat",
        reference: str | None = None,
        with_ids: bool = True,
    ) -> dict[str, Any]:
        """Write the model to a file, and the fact to the log.

        Parameters
        ----------
        path : path-like
            The file; not inside the store.
        format : {"adiabat", "sklearn", "onnx"}
            A model file of `adiabat.load`; a joblib file of the plain scikit-learn estimator; or
            ONNX, which holds numbers in float32.
        reference : str, optional
            Kept in the log.
        with_ids : bool, default=True
            Whether a model file knows rows by their ids; else by their numbers in the store.

        Returns
        -------
        dict
            What the log says of it. Erasing does not reach the file, which `holds_rows` unless the
            task keeps none.
        """
        self.require_outside(path)
        return export(self._session, os.fspath(path), format, reference, with_ids)

    def receipt(
        self, reference: str, *, public_key: str | os.PathLike[str] | None = None
    ) -> dict[str, Any]:
        """The receipt of what was erased under a reference, after a verification.

        `public_key` is as in `verify`. `adiabat.store.receipt.receipt_page` makes a printable page
        of a receipt.
        """
        expected = None if public_key is None else read_public_key(public_key)
        return receipt(self._session, reference, expected)

    def report(
        self,
        path: str | os.PathLike[str],
        *,
        reference: str | None = None,
        hold_scaling: bool = False,
        n_jobs: int | None = None,
        progress: Progress | None = None,
    ) -> dict[str, Any]:
        """Write a page (HTML, nothing loaded) about the model, and the fact to the log.

        Parameters
        ----------
        path : path-like
            The file; not inside the store.
        reference : str, optional
            Kept in the log.
        hold_scaling, n_jobs, progress
            As in `leave_one_out`, which is part of the page.
        """
        self.require_outside(path)
        for _ in range(_ATTEMPTS):
            as_of, text = self._report(hold_scaling, n_jobs, progress)

            def write(beside: str, change: Change, as_of: int = as_of, text: str = text) -> None:
                since = log.read_since(change.connection, as_of)
                if any(entry.operation == "forget" for entry in since):
                    raise _Outdated
                change.body["details"]["as_of"] = as_of
                with open(beside, "w", encoding="utf-8") as file:
                    file.write(text)

            with suppress(_Outdated):
                return publish(self._session, "report", os.fspath(path), "html", reference, write)
        raise StoreError(
            f"{self.path!r} had rows erased whenever its report was ready, which would have shown "
            "them; nothing was written. Try again when fewer rows are being erased"
        )

    def _report(
        self, hold_scaling: bool, n_jobs: int | None, progress: Progress | None
    ) -> tuple[int, str]:
        """The page of a model as it is now, and of which entry; the store is free meanwhile."""
        with self._session.using(rows_and_log) as view:
            require_fitted(self.path, view.model)
            rows, entries = view.found
            certificate = certificate_fields(view.model.certificate())
            assert certificate is not None
            found = left_out(view.settings, view.model, rows, hold_scaling, n_jobs, progress)
            text = report_page(self.path, view.settings, entries, certificate, found)
            return view.head.seq, text

    def backup(
        self, path: str | os.PathLike[str], *, reference: str | None = None
    ) -> dict[str, Any]:
        """Write the whole store to one file, and the fact to the log.

        `adiabat.restore_store` makes a store of it again. Erasing does not reach the file: rows
        erased later are back when it is restored, unless they are erased again.

        Parameters
        ----------
        path : path-like
            The file; not inside the store.
        reference : str, optional
            Kept in the log.

        Returns
        -------
        dict
            What the log says of it. Keep `hash` elsewhere: ``verify(expect_head=hash)`` then tells
            this store from an older copy of it.
        """
        self.require_outside(path)
        return publish(
            self._session, "backup", os.fspath(path), "sqlite", reference, write_backup,
            empty_too=True,
        )  # fmt: skip
