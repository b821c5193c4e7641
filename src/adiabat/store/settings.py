# SPDX-License-Identifier: BSD-3-Clause
"""What a store was set up to be, as plain JSON. Written at `init`, completed by the first rows."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
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
        How labels are taken; the first rows settle it.
    public_key : str or None
        Ed25519 key (hexadecimal) under which every entry of the log is signed.
    pepper : str
        Key of the marks of erased ids.
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

    def to_json(self) -> str:
        """The one JSON text of these settings."""
        fields = asdict(self)
        fields["parameters"] = {name: _listed(value) for name, value in self.parameters.items()}
        fields["ignored"] = list(self.ignored)
        fields["classes"] = None if self.classes is None else list(self.classes)
        return canonical(fields)

    @classmethod
    def from_json(cls, text: str) -> Settings:
        """Settings back from their text."""
        try:
            fields = json.loads(text)
            given = fields["parameters"]
            fields["parameters"] = {name: _unlisted(given[name]) for name in given}
            return cls(**fields)
        except (KeyError, ValueError, TypeError) as error:
            raise StoreDamagedError(
                "the settings of the store are damaged; restore it from a copy"
            ) from error

    def settled(self, features: Any, label_kind: str | None) -> Settings:
        """These settings with what the first rows say about columns and labels."""
        return replace(self, features=features, label_kind=label_kind)

    @property
    def n_features(self) -> int:
        """Width of an encoded row."""
        if isinstance(self.features, dict):
            return int(self.features["sparse"])
        return sum(len(column.get("values", (0,))) for column in self.features or ())


def _listed(value: Any) -> Any:
    """A parameter as JSON; a dictionary as a list of pairs, since JSON has no keys but text."""
    return {"pairs": [list(item) for item in value.items()]} if isinstance(value, dict) else value


def _unlisted(value: Any) -> Any:
    return dict(value["pairs"]) if isinstance(value, dict) else value
