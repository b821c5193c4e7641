# SPDX-License-Identifier: BSD-3-Clause
"""What a store was set up to be, as plain JSON. Written at `init`, completed by the first rows."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from adiabat.errors import StoreDamagedError
from adiabat.store.digests import KEY_BYTES, canonical


@dataclass(frozen=True)
class Settings:
    """The settings of a store.

    Attributes
    ----------
    task : str
        A name of `tasks.TASKS`.
    parameters : dict
        Parameters of the estimator that differ from its defaults.
    id_column, label_column, weight_column : str or None
        Columns of the files that are not features.
    ignored : list of str
        Columns that are left out.
    categories : dict of str to (list of str or None)
        Columns of text; None until the first rows fix their values.
    classes : list or None
        If given, labels outside it are refused.
    scale : {"exact", "held"} or None
        Whether and how features are standardised in front of the model.
    features : list, dict or None
        None until the first rows; then the columns in order, each with ``name`` and ``kind``, or
        ``{"sparse": number of features}``.
    label_kind : {"integer", "text", "number"} or None
        The type of labels, resolved from the first rows.
    public_key : str or None
        Ed25519 key (hexadecimal) under which every entry of the log is signed.
    pepper : str
        Key of the marks of erased ids; empty if that is kept outside of the store.
    suppression_key : str or None
        Fingerprint of the key of these marks, if that is kept outside.
    impute : {"mean", "median", "most_frequent"} or None
        What fills gaps in columns of numbers. If it is given, rows are kept as they came: numbers,
        or none, and of categories the place of the value in its column's ``values``. New values are
        then welcome, and those of which no row is left are None. Else rows are kept encoded.
    """

    task: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    id_column: str = "id"
    label_column: str | None = None
    weight_column: str | None = None
    ignored: Sequence[str] = ()
    categories: Mapping[str, Any] = field(default_factory=dict)
    classes: Sequence[Any] | None = None
    scale: str | None = None
    features: Any = None
    label_kind: str | None = None
    public_key: str | None = None
    pepper: str = field(default_factory=lambda: secrets.token_hex(KEY_BYTES))
    suppression_key: str | None = None
    impute: str | None = None

    def to_json(self) -> str:
        """The one JSON text of these settings."""
        fields = dict(vars(self))
        fields["parameters"] = {name: _listed(value) for name, value in self.parameters.items()}
        fields["ignored"] = list(self.ignored)
        fields["classes"] = None if self.classes is None else list(self.classes)
        if self.suppression_key is None:
            del fields["suppression_key"]  # as in stores that do not know of it
        if self.impute is None:
            del fields["impute"]
        return canonical(fields)

    @classmethod
    def from_json(cls, text: str) -> Settings:
        """Settings back from their text."""
        try:
            fields = json.loads(text)
            given = fields["parameters"]
            fields["parameters"] = {name: _unlisted(given[name]) for name in given}
            settings = cls(**fields)
            settings._require_sound()
            return settings
        except (KeyError, ValueError, TypeError, AttributeError, RecursionError) as error:
            raise StoreDamagedError(
                "the settings of the store are damaged; restore it from a copy"
            ) from error

    def resolved(self, features: Any, label_kind: str | None) -> Settings:
        """These settings with what the first rows say about columns and labels."""
        return replace(self, features=features, label_kind=label_kind)

    def _require_sound(self) -> None:
        """Raise ValueError if fields that were read are not of their types."""
        text = str | None
        kinds: dict[str, Any] = {
            "task": str, "id_column": str, "label_column": text, "weight_column": text,
            "ignored": list, "categories": dict, "classes": list | None, "scale": text,
            "features": list | dict | None, "label_kind": text, "public_key": text, "pepper": str,
            "suppression_key": text, "impute": text,
        }  # fmt: skip
        for name, kind in kinds.items():
            if not isinstance(getattr(self, name), kind):
                raise ValueError(name)
        keys = (self.public_key, self.pepper or None)
        if any(key is not None and len(bytes.fromhex(key)) != KEY_BYTES for key in keys):
            raise ValueError("a key has the wrong length")
        if not (self.pepper or self.suppression_key) or self.label_kind not in _LABEL_KINDS:
            raise ValueError("a field is missing")
        if self.scale not in (None, "exact", "held") or not all(map(_is_name, self.ignored)):
            raise ValueError("scale or ignored")
        for name, values in self.categories.items():
            if not _is_name(name) or not (values is None or all(map(_is_name, values))):
                raise ValueError("categories")
        if self.impute not in (None, *IMPUTING):
            raise ValueError("impute")
        _require_features(self.features, self.impute is not None)

    @property
    def n_features(self) -> int:
        """Width of an encoded row."""
        if isinstance(self.features, dict):
            return int(self.features["sparse"])
        if self.impute is not None:
            return len(self.features or ())
        return sum(len(column.get("values", (0,))) for column in self.features or ())


#: What can fill gaps.
IMPUTING = ("mean", "median", "most_frequent")
_LABEL_KINDS = (None, "integer", "text", "number")
_MOST_FEATURES = (1 << 31) - 1


def _is_name(value: Any) -> bool:
    return isinstance(value, str)


def _require_features(features: Any, with_gaps: bool = False) -> None:
    """Raise ValueError unless these are columns, or a number of them."""
    if isinstance(features, dict):
        if set(features) != {"sparse"} or type(features["sparse"]) is not int:
            raise ValueError("features")
        if not 0 <= features["sparse"] <= _MOST_FEATURES:
            raise ValueError("features")
        return
    for column in features or ():
        values = column.get("values", [""])
        kind = {"number": {"name", "kind"}, "category": {"name", "kind", "values"}}
        if set(column) != kind[column["kind"]] or not _is_name(column["name"]):
            raise ValueError("features")
        if not isinstance(values, list):
            raise ValueError("features")
        if not all(_is_name(value) or (with_gaps and value is None) for value in values):
            raise ValueError("features")


def _listed(value: Any) -> Any:
    """A parameter as JSON; a dictionary as a list of pairs, since JSON has no keys but text."""
    return {"pairs": [list(item) for item in value.items()]} if isinstance(value, dict) else value


def _unlisted(value: Any) -> Any:
    return dict(value["pairs"]) if isinstance(value, dict) else value
