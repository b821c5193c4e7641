# SPDX-License-Identifier: BSD-3-Clause
"""Durable models: a folder with rows, model and log, changed all or nothing.

Needs the ``cli`` extra; it is imported when a store is made or opened.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from adiabat.store.store import Store

__all__ = ["create_store", "open_store", "restore_store"]


def create_store(
    path: str | os.PathLike[str],
    task: str = "svc",
    *,
    id: str = "id",
    label: str | None = None,
    weight: str | None = None,
    ignore: Sequence[str] = (),
    categories: Mapping[str, Sequence[str] | None] | None = None,
    classes: Sequence[Any] | None = None,
    scale: str | bool | None = None,
    impute: str | None = None,
    signing_key: str | os.PathLike[str] | None = None,
    suppression_key: str | os.PathLike[str] | None = None,
    **parameters: Any,
) -> Store:
    """Make a store.

    Parameters
    ----------
    path : path-like
        A folder that is not there yet, or empty.
    task : str, default="svc"
        What to learn.
    id, label, weight : str
        Columns with the ids, labels and sample weights.
    ignore : sequence of str
        Columns that are neither these nor features.
    categories : mapping of str to (sequence of str or None), optional
        Columns of text, with their values; None has the first rows fix them.
    classes : sequence, optional
        Labels that are allowed; by default new ones are welcome at any time.
    scale : {"exact", "held"} or bool, optional
        Standardise the features. ``"exact"`` (or True) has the scaling follow the rows, as if it
        were fitted anew with every change; ``"held"`` keeps the scaling of the first rows, and is
        faster (not for ``"lssvc"`` and ``"lssvr"``, which scale exactly at little cost).
    impute : {"mean", "median", "most_frequent"}, optional
        What fills gaps in columns of numbers. Rows are then kept as they came, and encoders and
        imputers follow them: new categories are welcome at any time and go with their last row, a
        gap in a category is a category of its own, and columns can be added.
    signing_key : path-like, optional
        Ed25519 key in PEM; every entry of the log is then signed, and every change needs the key.
    suppression_key : path-like, optional
        A file with at least 32 random bytes, kept outside the folder, under which erased ids are
        marked. Without it the key is in the folder, and whoever has that can test guesses.
    **parameters
        Of the estimator: ``C``, ``kernel``, ...

    Returns
    -------
    Store

    Examples
    --------
    >>> import os, tempfile, adiabat
    >>> folder = os.path.join(tempfile.mkdtemp(), "credit")
    >>> store = adiabat.create_store(folder, "svc", label="good", C=10.0, kernel="linear")
    >>> done = store.learn([[0.0], [1.0], [3.0]], [0, 0, 1], ids=["ann", "bob", "eve"])
    >>> done.added, done.certificate["ok"]
    (3, True)
    >>> store.forget("bob", reference="DSR-118").removed, store.ids
    (1, ['ann', 'eve'])
    >>> adiabat.open_store(folder).verify(retrain=True).ok
    True
    """
    _require_extra()
    from adiabat.store.creation import create
    from adiabat.store.settings import Settings
    from adiabat.store.signing import Keys

    settings = Settings(
        task=task,
        parameters={
            name: value.item() if hasattr(value, "item") else value  # NumPy's numbers as Python's
            for name, value in parameters.items()
        },
        id_column=id,
        label_column=label,
        weight_column=weight,
        ignored=list(ignore),
        categories={
            name: None if values is None else list(values)
            for name, values in (categories or {}).items()
        },
        classes=None if classes is None else list(classes),
        scale="exact" if scale is True else scale or None,
        impute=impute,
    )
    create(os.fspath(path), settings, Keys.read(signing_key, None, suppression_key))
    return open_store(path, signing_key=signing_key, suppression_key=suppression_key)


def open_store(
    path: str | os.PathLike[str],
    *,
    wait: float = 10.0,
    signing_key: str | os.PathLike[str] | None = None,
    public_key: str | os.PathLike[str] | None = None,
    suppression_key: str | os.PathLike[str] | None = None,
    allow_unsigned: bool = False,
    announce: Callable[[str], None] | None = None,
) -> Store:
    """Open a store as of its last acknowledged operation.

    Parameters
    ----------
    path : path-like
        The folder.
    wait : float, default=10
        Seconds to wait for another process that is changing it.
    signing_key : path-like, optional
        Ed25519 key in PEM, to change a store that signs its log. The store must be signed under it.
    public_key : path-like, optional
        Ed25519 public key in PEM: the store must be signed under it, which nothing in the folder
        can say for itself.
    suppression_key : path-like, optional
        For a store that marks erased ids under a key outside of its folder.
    allow_unsigned : bool, default=False
        Whether a signing key may be given for a store that is not signed; it is then not used.
    announce : callable, optional
        Told in a few words what is being done, or who is being waited for.

    Returns
    -------
    Store

    Raises
    ------
    StoreError
        If there is no store, or a newer release wrote it.
    StoreDamagedError
        If it is not what its log vouches for.

    Examples
    --------
    >>> import os, tempfile
    >>> import adiabat
    >>> folder = os.path.join(tempfile.mkdtemp(), "model")
    >>> adiabat.create_store(folder, label="y", kernel="linear").close()
    >>> with adiabat.open_store(folder) as store:
    ...     _ = store.learn([[0.0], [1.0]], [0, 1], ids=["a", "b"])
    ...     len(store)
    2
    """
    _require_extra()
    from adiabat.store.store import Store

    return Store(
        path,
        wait=wait,
        signing_key=signing_key,
        public_key=public_key,
        suppression_key=suppression_key,
        allow_unsigned=allow_unsigned,
        announce=announce,
    )


def restore_store(
    backup: str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    erased_since: str | os.PathLike[str] | Sequence[str] | None = None,
    reference: str | None = None,
    signing_key: str | os.PathLike[str] | None = None,
    suppression_key: str | os.PathLike[str] | None = None,
) -> dict[str, Any]:
    """Make a store of a file that `Store.backup` wrote.

    The backup is verified first. Rows that were erased after it was made are in it, and are erased
    again before the store is in its place; for that a list of erasures must be kept elsewhere.

    Parameters
    ----------
    backup : path-like
        The file.
    path : path-like
        A folder that is not there yet, or empty.
    erased_since : path-like or sequence of str, optional
        Ids erased since, or a file of them: one id a line, or a CSV with the columns ``id``,
        ``reference`` and ``time``. Lines with a time not later than the backup are passed over. Ids
        that are not in the backup are marked as erased, too.
    reference : str, optional
        Of erasures that name none.
    signing_key, suppression_key
        As in `open_store`.

    Returns
    -------
    dict
        ``entry`` and ``time`` of the backup, ``entries`` and ``head`` of the store, and how many
        erasures were ``listed`` and rows ``erased_again``.

    Examples
    --------
    >>> import os, tempfile, adiabat
    >>> folder = tempfile.mkdtemp()
    >>> store = adiabat.create_store(os.path.join(folder, "a"), label="good", kernel="linear")
    >>> _ = store.learn([[0.0], [1.0], [3.0]], [0, 0, 1], ids=["ann", "bob", "eve"])
    >>> _ = store.backup(os.path.join(folder, "monday"))
    >>> _ = store.forget("bob", reference="DSR-118")
    >>> done = adiabat.restore_store(
    ...     os.path.join(folder, "monday"), os.path.join(folder, "b"), erased_since=["bob"]
    ... )
    >>> done["erased_again"], adiabat.open_store(os.path.join(folder, "b")).ids
    (1, ['ann', 'eve'])
    """
    _require_extra()
    from adiabat.store.backup import Erasure, read_erasures, restore
    from adiabat.store.signing import Keys

    if erased_since is None:
        erasures = []
    elif isinstance(erased_since, (str, os.PathLike)):
        erasures = read_erasures(os.fspath(erased_since))
    else:
        erasures = [Erasure(str(name)) for name in erased_since]
    keys = Keys.read(signing_key, None, suppression_key)
    return restore(os.fspath(backup), os.fspath(path), erasures, reference, keys)


def _require_extra() -> None:
    try:
        import pyarrow  # noqa: F401
        import sqlalchemy  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"a store needs {error.name}, which is not installed; pip install 'adiabat[cli]'"
        ) from error
