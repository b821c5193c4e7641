# SPDX-License-Identifier: BSD-3-Clause
"""Models out of a store, each one in the log: an export is a copy that erasing does not reach."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from adiabat.archive import write_archive
from adiabat.errors import StoreError
from adiabat.estimators.files.content import content_of
from adiabat.estimators.ledger import Ledger
from adiabat.store import records
from adiabat.store.digests import sha256
from adiabat.store.session import Change, Session
from adiabat.store.tasks import TASKS, is_fitted, machine
from adiabat.store.words import printable


def export(
    session: Session, path: str, form: str, reference: str | None, with_ids: bool
) -> dict[str, Any]:
    """Write the model to a file and the fact to the log; what the log says of it."""
    if form not in FORMATS:
        raise ValueError(f"format={form!r} is none of {', '.join(FORMATS)}")

    def write(beside: str, change: Change) -> None:
        if form == "adiabat" and with_ids:
            _adiabat_with_ids(change, beside)
        else:
            FORMATS[form](change.model, beside)

    return publish(session, "export", path, form, reference, write)


def publish(
    session: Session,
    operation: str,
    path: str,
    form: str,
    reference: str | None,
    write: Callable[[str, Change], None],
    empty_too: bool = False,
) -> dict[str, Any]:
    """Write a file that shows training rows or their ids, and log it.

    The file is moved into place once the entry is durable: the log misses no such file.
    """
    change: Change | None = None
    try:
        with session.changing(operation, reference, publishes=os.path.abspath(path)) as change:
            if not empty_too and not is_fitted(change.model):
                raise StoreError(f"{session.folder!r} has learned nothing yet; learn some rows")
            _draft(change, path, form, write)
    except StoreError:  # one kind of it is a TimeoutError, and so an OSError
        raise
    except OSError as error:
        named = change is not None and change.entry is not None
        said = "the log names it all the same" if named else "nothing was changed"
        raise StoreError(f"{path!r} could not be written ({error}); {said}") from error
    assert change.entry is not None
    return {
        "entry": change.entry.seq,
        "hash": change.entry.hash,
        "holds_rows": TASKS[change.settings.task].keeps_rows,
        **change.entry.body["details"],
    }


def _draft(change: Change, path: str, form: str, write: Callable[[str, Change], None]) -> None:
    """Write the draft of a file, and what the log says of it."""
    assert change.draft is not None
    write(change.draft.path, change)
    change.draft.sync()
    with open(change.draft.path, "rb") as file:
        digest = sha256(file.read())
    change.model_changed = False
    name = printable(os.path.basename(os.path.abspath(path)))
    change.body["details"] |= {"format": form, "file": name, "sha256": digest}


def _adiabat(model: Any, path: str) -> None:
    model.save(path)


def _adiabat_with_ids(change: Change, path: str) -> None:
    """A model file in which rows have the ids of the store, and not its numbers for them."""
    manifest, arrays = content_of(change.model)
    for prefix in ("", "machine."):  # of an estimator, or of one behind a scaler
        if prefix + "ledger_ids" not in arrays:
            continue
        of_number = records.ids_by_number(change.connection)
        ledger = Ledger()
        ledger.append([of_number[number] for number in change.model.ids_.tolist()])
        named = {**ledger.to_arrays(), "ledger_seen": arrays[prefix + "ledger_seen"]}
        arrays.update({prefix + name: array for name, array in named.items()})
    write_archive(path, manifest, arrays)


def _sklearn(model: Any, path: str) -> None:
    import joblib

    joblib.dump(_plain(model), path)


def _onnx(model: Any, path: str) -> None:
    try:
        from skl2onnx import to_onnx
        from skl2onnx.common.data_types import FloatTensorType
    except ImportError as error:
        raise ImportError(
            "export to ONNX needs skl2onnx, which is not installed; pip install 'adiabat[onnx]'"
        ) from error
    rows = [("X", FloatTensorType([None, int(model.n_features_in_)]))]
    with open(path, "wb") as file, warnings.catch_warnings():
        # skl2onnx reads attributes that scikit-learn has deprecated
        warnings.simplefilter("ignore", FutureWarning)
        file.write(to_onnx(_plain(model), initial_types=rows).SerializeToString())


def _plain(model: Any) -> Any:
    from sklearn.pipeline import Pipeline

    from adiabat.preprocessing.basis import is_linear

    if machine(model) is not model:
        return _scaled(model)
    by_features = hasattr(model, "feature_map")  # least squares in closed form
    if by_features and model.feature_map is None:
        return _ridge(model, model.n_features_in_)
    if by_features and is_linear(model.feature_map):
        scaler = _plain_scaler(model._map, model.n_features_in_)
        return Pipeline([("scale", scaler), ("machine", _ridge(model, model.coef_.shape[-1]))])
    if not hasattr(model, "to_sklearn"):
        kind = "with this kernel " if by_features else ""
        raise ValueError(
            f"{type(model).__name__} {kind}has no counterpart in scikit-learn; use format='adiabat'"
        )
    return model.to_sklearn()


def _ridge(model: Any, n_features: int) -> Any:
    """A least-squares machine on plain features: scikit-learn's ridge with the same plane.

    It is fitted to the classes alone, so that it is whole in every version of scikit-learn.
    """
    from sklearn.linear_model import Ridge, RidgeClassifier

    if not hasattr(model, "classes_"):
        plain: Any = Ridge(alpha=model.rho, fit_intercept=model.fit_intercept)
        targets = np.zeros(1)
    else:
        plain = RidgeClassifier(alpha=model.rho, fit_intercept=model.fit_intercept)
        targets = model.classes_
        if len(targets) < 2:
            raise ValueError(f"the model knows one class, {targets.tolist()[0]!r}; learn another")
    plain.fit(np.zeros((len(targets), n_features)), targets)
    plain.coef_ = np.reshape(model.coef_, np.shape(plain.coef_))
    plain.intercept_ = np.reshape(model.intercept_, np.shape(plain.intercept_))
    return plain


def _scaled(model: Any) -> Any:
    """A plain pipeline: the scaling in force as a StandardScaler, then the machine."""
    from sklearn.pipeline import Pipeline

    scaler = _plain_scaler(model.scaler_, model.n_features_in_)
    return Pipeline([("scale", scaler), ("machine", machine(model).to_sklearn())])


def _plain_scaler(scaler: Any, n_features: int) -> Any:
    """A scaler as scikit-learn's own."""
    from sklearn.preprocessing import StandardScaler

    if not hasattr(scaler, "mean_"):
        raise ValueError(
            "a model that fills gaps and encodes categories has no plain export yet; use "
            "format='adiabat'"
        )
    plain = StandardScaler(with_mean=True, with_std=True)
    plain.mean_, plain.scale_, plain.var_ = scaler.mean_, scaler.scale_, scaler.var_
    plain.n_features_in_, plain.n_samples_seen_ = n_features, scaler.n_samples_seen_
    return plain


#: Format to the function that writes it.
FORMATS: Final[dict[str, Callable[[Any, str], None]]] = {
    "adiabat": _adiabat,
    "sklearn": _sklearn,
    "onnx": _onnx,
}


def require_outside(folder: str, path: str) -> None:
    """Refuse a file inside the folder of a store, or where nothing can be written at all."""
    folder = os.path.realpath(folder)
    if os.path.commonpath([folder, os.path.realpath(path)]) == folder:
        raise StoreError(
            f"{path!r} is inside the store, where erasing could not reach it; choose a place "
            "outside"
        )
    parent = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(parent):
        raise StoreError(f"{path!r} cannot be written: there is no folder {parent!r}; make it")
    if os.path.isdir(path):
        raise StoreError(f"{path!r} is a folder; give the name of a file")
