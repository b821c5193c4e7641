# SPDX-License-Identifier: BSD-3-Clause
"""Transformers of ours as linear forms: what they make of a row is linear in its basis columns.

Basis columns of a row are, for a column of numbers, the number (0 in a gap) and whether there is a
gap; for a column of categories, whether it is this one, for each of them. Imputers, scalers and
encoders of single columns are then linear maps with a constant:

    (x - mean) / scale,    x + fill gap,    is_red

So second moments of transformed rows follow from those of the basis columns, and so do mean and
deviation of a `StandardScaler`: rows need not be there when they change. The other transformers
follow rows by counting values (`tally.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from adiabat.preprocessing.columns import ColumnTransformer
from adiabat.preprocessing.composition import followed
from adiabat.preprocessing.encoder import OneHotEncoder
from adiabat.preprocessing.imputer import SimpleImputer
from adiabat.preprocessing.moments import Moments
from adiabat.preprocessing.scaler import StandardScaler
from adiabat.preprocessing.scalers import MinMaxScaler, RobustScaler
from adiabat.preprocessing.tally import key_of
from adiabat.preprocessing.unlearning import Unlearning
from adiabat.typing import FloatArray

#: A basis column: number of the column, "value", "gap" or "category", and which category.
BasisColumn = tuple[int, str, Any]
#: A linear form: (place of a basis column, factor), the constant last in the place after all.
Form = list[tuple[int, Fraction]]

#: What to do about gaps that nothing fills.
FILL_GAPS: Final = "give the model a SimpleImputer, as in make_pipeline(SimpleImputer(), scaler)"
_SCALERS: Final = (StandardScaler, MinMaxScaler, RobustScaler)
_OURS: Final = (*_SCALERS, SimpleImputer, OneHotEncoder)


def is_linear(transformer: Any) -> bool:
    """Whether it is one of ours, or made of ours, so that its moments can follow rows."""
    if isinstance(transformer, Pipeline):
        return any(is_linear(step) for _, step in transformer.steps)
    return isinstance(transformer, (*_OURS, ColumnTransformer))


def require_linear(transformer: Any, name: str = "feature_map") -> None:
    """Refuse a transformer that is not linear in the basis columns, or would need all rows."""
    kind = type(transformer).__name__
    if isinstance(transformer, ColumnTransformer):
        if transformer.transformer_weights is not None:
            raise ValueError(f"{name} has transformer_weights; leave them out, and change rho")
        for key, part, _ in transformer.transformers:
            require_linear(part, key)
        require_linear(transformer.remainder, "remainder")
    elif isinstance(transformer, Pipeline):
        first, *others = _steps(transformer) or [None]
        require_linear(first, name)
        if others and not (
            isinstance(first, SimpleImputer)
            and len(others) == 1
            and isinstance(others[0], StandardScaler)
        ):
            raise ValueError(
                f"{name} is a Pipeline whose steps follow from all rows, and this model keeps "
                "none; use one step, or SimpleImputer and then StandardScaler, or an "
                "IncrementalPipeline, which keeps rows"
            )
    elif not (_is_empty(transformer) or isinstance(transformer, _OURS)):
        raise TypeError(
            f"{name}={kind}(...) is not linear in the columns, and this model keeps no rows to "
            "apply it to anew; use StandardScaler, MinMaxScaler, RobustScaler, SimpleImputer, "
            "OneHotEncoder or ColumnTransformer of adiabat, or an IncrementalPipeline, which keeps "
            "rows"
        )
    elif isinstance(transformer, MinMaxScaler) and transformer.clip:
        raise ValueError(f"{name}={kind}(clip=True) is not linear; use clip=False")
    elif isinstance(transformer, SimpleImputer):
        missing = transformer.missing_values
        if transformer.add_indicator or not (isinstance(missing, float) and missing != missing):
            raise ValueError(
                f"{name}={kind}(...) fills NaN and nothing else here; leave missing_values and "
                "add_indicator as they are by default"
            )
    elif isinstance(transformer, OneHotEncoder):
        if transformer.min_frequency is not None or transformer.max_categories is not None:
            raise ValueError(
                f"{name}={kind}(...) takes rare categories together, and which are rare changes; "
                "leave min_frequency and max_categories out"
            )


def same_settings(one: Any, other: Any) -> bool:
    """Whether two transformers are of the same kinds, with the same parameters."""
    if type(one) is not type(other):
        return False
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same_settings, one, other))
    if hasattr(one, "get_params"):
        mine, theirs = one.get_params(deep=False), other.get_params(deep=False)
        return mine.keys() == theirs.keys() and all(
            same_settings(mine[key], theirs[key]) for key in mine
        )
    return bool(np.array_equal(one, other)) or bool(one != one and other != other)


def with_rows(transformer: Any, came: Any, gone: Any) -> Any:
    """A fitted transformer whose counts of values are those after rows have come and gone.

    It stays as it is itself. A `StandardScaler` counts no values: `settled` sees to it.
    """
    if isinstance(transformer, Pipeline):
        (name, first), *others = transformer.steps
        return Pipeline([(name, with_rows(first, came, gone)), *others])
    if isinstance(transformer, ColumnTransformer):
        twin = transformer._copy()
        twin.transformers_ = [
            (name, with_rows(part, came[:, columns], gone[:, columns]), columns)
            if len(np.arange(transformer.n_features_in_)[columns])
            else (name, part, columns)
            for name, part, columns in transformer.transformers_
        ]
        return twin
    if isinstance(transformer, Unlearning):
        return followed(transformer, came, None, gone, None)
    return transformer


def holds_rows(transformer: Any) -> bool:
    """Whether those that count values have any."""
    return all(
        leaf.__sklearn_is_fitted__()
        for leaf, _, _ in _leaves(transformer, range(transformer.n_features_in_))
        if isinstance(leaf, Unlearning)
    )


def basis_of(transformer: Any) -> list[BasisColumn]:
    """The basis columns that a fitted transformer needs, in an order of their own."""
    found: set[BasisColumn] = set()
    for leaf, _, columns in _leaves(transformer, range(transformer.n_features_in_)):
        for j, column in enumerate(columns):
            if isinstance(leaf, OneHotEncoder):
                found.update((column, "category", _key(v)) for v in leaf.categories_[j].tolist())
                continue
            found.add((column, "value", None))
            if isinstance(leaf, SimpleImputer):
                found.add((column, "gap", None))
    return sorted(found, key=lambda atom: (atom[0], atom[1], atom[2] or ()))


def basis_values(basis: Sequence[BasisColumn], X: Any) -> FloatArray:
    """Basis columns of rows as they were given."""
    out = np.empty((X.shape[0], len(basis)))
    keys: dict[int, list[Any]] = {}
    for place, (column, kind, key) in enumerate(basis):
        given = X[:, column]
        if kind == "category":
            if given.dtype != object:
                gap = key[0] == _GAP
                out[:, place] = np.isnan(given) if gap else given == _number(key)
                continue
            if column not in keys:
                keys[column] = [_key(value) for value in given.tolist()]
            out[:, place] = [found == key for found in keys[column]]
            continue
        numbers = given.astype(np.float64)
        gaps = np.isnan(numbers)
        if gaps.any() and (column, "gap", None) not in basis:
            raise ValueError(f"X has gaps in column {column}; {FILL_GAPS}")
        out[:, place] = gaps if kind == "gap" else np.where(gaps, 0.0, numbers)
    return out


def some_row(transformer: Any) -> list[Any]:
    """A row that a fitted transformer could have learned: its first categories, else zeros."""
    row: list[Any] = [0.0] * transformer.n_features_in_
    for leaf, _, columns in _leaves(transformer, range(transformer.n_features_in_)):
        if isinstance(leaf, OneHotEncoder):
            for j, column in enumerate(columns):
                row[column] = leaf.categories_[j].tolist()[0]
    return row


def settled(transformer: Any, basis: Sequence[BasisColumn], sums: Any, unit: int, n: int) -> Any:
    """A transformer with each `StandardScaler` as fitted to rows of these second moments.

    `sums` has whole numbers in units of 2^unit for all basis columns and the constant; n is how
    many rows there are. Others are as they are.
    """
    place = {atom: k for k, atom in enumerate(basis)}
    return _settled(transformer, range(transformer.n_features_in_), place, sums, unit, n)


def forms_of(transformer: Any, basis: Sequence[BasisColumn]) -> list[Form]:
    """The linear form of each column that a fitted transformer gives."""
    place = {atom: k for k, atom in enumerate(basis)}
    constant = len(basis)
    return [
        form
        for leaf, scaler, columns in _leaves(transformer, range(transformer.n_features_in_))
        for form in _leaf_forms(leaf, scaler, columns, place, constant)
    ]


# -- within --------------------------------------------------------------------------------------

_GAP: Final = 3  # of `key_of`: NaN


def _is_empty(transformer: Any) -> bool:
    """Whether it does nothing to columns, or leaves them out."""
    if isinstance(transformer, FunctionTransformer):  # what scikit-learn puts for "passthrough"
        return transformer.func is None
    return transformer is None or isinstance(transformer, str)


def _steps(pipeline: Pipeline) -> list[Any]:
    return [step for _, step in pipeline.steps if not _is_empty(step)]


def _key(value: Any) -> Any:
    """What a category is compared by; NaN, which is not equal to itself, without its value."""
    order, kind, what = key_of(value)
    return (order, kind) if order == _GAP else (order, kind, what)


def _number(key: Any) -> Any:
    return key[2] if len(key) == 3 and key[0] == 0 else np.nan


def _leaves(transformer: Any, columns: Any) -> list[tuple[Any, Any, list[int]]]:
    """(transformer, StandardScaler after it or None, columns) in the order of what they give."""
    columns = list(columns)
    if isinstance(transformer, ColumnTransformer):
        return [
            leaf
            for _, part, chosen in transformer.transformers_
            for leaf in _leaves(part, np.asarray(columns)[chosen].tolist())
        ]
    if isinstance(transformer, Pipeline):
        steps = _steps(transformer)
        if len(steps) == 2:
            return [(steps[0], steps[1], columns)]
        return _leaves(steps[0] if steps else None, columns)
    if not columns or (isinstance(transformer, str) and transformer == "drop"):
        return []
    return [(None if _is_empty(transformer) else transformer, None, columns)]


def _settled(
    transformer: Any, columns: Any, place: dict[BasisColumn, int], sums: Any, unit: int, n: int
) -> Any:
    columns = list(columns)
    if not columns:
        return transformer
    if isinstance(transformer, ColumnTransformer):
        twin, start = transformer._copy(), 0
        parts, outputs = [], {}
        for name, part, chosen in transformer.transformers_:
            own = np.asarray(columns)[chosen].tolist()
            parts.append((name, _settled(part, own, place, sums, unit, n), chosen))
            width = sum(
                len(_leaf_forms(*leaf, place, len(place))) for leaf in _leaves(parts[-1][1], own)
            )
            outputs[name] = slice(start, start + width)
            start += width
        twin.transformers_ = parts
        twin.output_indices_ = {**dict.fromkeys(twin.output_indices_, slice(0, 0)), **outputs}
        return twin
    if isinstance(transformer, Pipeline):
        steps = list(transformer.steps)
        imputer = next((s for _, s in steps if isinstance(s, SimpleImputer)), None)
        for k, (name, step) in enumerate(steps):
            if isinstance(step, StandardScaler):
                steps[k] = name, _fitted_scaler(step, imputer, columns, place, sums, unit, n)
            elif not _is_empty(step):
                steps[k] = name, _settled(step, columns, place, sums, unit, n)
        return Pipeline(steps)
    if isinstance(transformer, StandardScaler):
        return _fitted_scaler(transformer, None, columns, place, sums, unit, n)
    return transformer


def _fitted_scaler(
    like: StandardScaler, imputer: SimpleImputer | None, columns: list[int],
    place: dict[BasisColumn, int], sums: Any, unit: int, n: int,
) -> StandardScaler:  # fmt: skip
    """A scaler of columns, behind an imputer or not, as fitted to rows of these moments."""
    constant = len(place)
    total = sums[constant, constant]
    kept = _filled(imputer, columns)
    # fills are whole numbers in units of 2^-bits
    bits = max((fill.denominator.bit_length() - 1 for _, fill in kept), default=0)
    moments = Moments(len(kept))
    moments.weights.unit, moments.values.unit, moments.squares.unit = unit, unit - bits, unit
    moments.squares.unit -= 2 * bits
    moments.weights.totals = [total] * len(kept)
    for j, (column, fill) in enumerate(kept):
        value = place[column, "value", None]
        first, second = sums[value, constant] << bits, sums[value, value] << (2 * bits)
        if imputer is not None:
            gap, whole = place[column, "gap", None], int(fill * (1 << bits))
            first += whole * sums[gap, constant]
            second += whole * whole * sums[gap, gap]
        moments.values.totals[j], moments.squares.totals[j] = first, second
    if moments.fault() is not None:
        raise ArithmeticError("moments that no rows can have")
    twin: StandardScaler = clone(like)
    twin.n_features_in_ = len(kept)
    counted = total << unit == n if unit >= 0 else total == n << -unit
    twin._hold(moments, not counted)
    return twin


def _filled(imputer: SimpleImputer | None, columns: list[int]) -> list[tuple[int, Fraction]]:
    """Columns that come out of an imputer, or as they are, and what their gaps are filled with."""
    if imputer is None:
        return [(column, Fraction(0)) for column in columns]
    found = zip(columns, np.asarray(imputer.statistics_, dtype=np.float64).tolist(), strict=True)
    return [(column, Fraction(fill)) for column, fill in found if fill == fill]


def _leaf_forms(
    leaf: Any, scaler: StandardScaler | None, columns: list[int], place: dict[BasisColumn, int],
    constant: int,
) -> list[Form]:  # fmt: skip
    if isinstance(leaf, OneHotEncoder):
        dropped = leaf.drop_idx_ if leaf.drop_idx_ is not None else [None] * len(columns)
        return [
            [(place[column, "category", _key(value)], Fraction(1))]
            for j, column in enumerate(columns)
            for k, value in enumerate(leaf.categories_[j].tolist())
            if k != dropped[j]
        ]
    imputer = leaf if isinstance(leaf, SimpleImputer) else None
    scaler = leaf if isinstance(leaf, _SCALERS) else scaler
    forms = []
    for j, (column, fill) in enumerate(_filled(imputer, columns)):
        factor, shift = _scaling(scaler, j)
        form = [(place[column, "value", None], factor)]
        if imputer is not None:
            form.append((place[column, "gap", None], factor * fill))
        forms.append([*form, (constant, shift)])
    return forms


def _scaling(scaler: Any, j: int) -> tuple[Fraction, Fraction]:
    """Factor and shift of one column."""
    if scaler is None:
        return Fraction(1), Fraction(0)
    scale = Fraction(1) if scaler.scale_ is None else Fraction(float(scaler.scale_[j]))
    if isinstance(scaler, MinMaxScaler):
        return scale, Fraction(float(scaler.min_[j]))
    centre: npt.NDArray[Any] | None = None
    if isinstance(scaler, RobustScaler):
        centre = scaler.center_
    elif scaler.with_mean:
        centre = scaler.mean_
    return 1 / scale, Fraction(0) if centre is None else -Fraction(float(centre[j])) / scale
