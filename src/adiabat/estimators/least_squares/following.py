# SPDX-License-Identifier: BSD-3-Clause
"""Scaling, filling and encoding that follow rows which a least-squares machine does not keep.

When a row comes or goes, mean and deviation change, and with them the features of all rows. The
moments of scaled rows follow from those of the rows as given, which are kept without any rounding
(`lssvm/exact_moments`): transformers of adiabat are linear in them (`preprocessing/basis`). So the
model after any changes is, to the last bit, the one fitted to the rows that are there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from adiabat.errors import NotLearnedError
from adiabat.estimators.arguments.validation import as_csr
from adiabat.estimators.least_squares.rows import Rows
from adiabat.feature_maps import spelled_out
from adiabat.lssvm.evidence import require_possible
from adiabat.lssvm.exact_moments import ExactMoments
from adiabat.lssvm.exact_products import BLOCK_ROWS
from adiabat.lssvm.linear_images import image_moments
from adiabat.lssvm.moments import Moments
from adiabat.preprocessing.basis import (
    BasisColumn,
    basis_of,
    basis_values,
    forms_of,
    holds_rows,
    settled,
    with_rows,
)
from adiabat.preprocessing.composition import fit_to
from adiabat.typing import FloatArray


@dataclass(frozen=True)
class Following:
    """A transformer fitted to rows, and their moments as given; it is replaced, never written to.

    Attributes
    ----------
    transformer : transformer
        As fitted to the rows that are there.
    basis : list of BasisColumn
        What the moments are of.
    sums : ExactMoments
        Moments of basis columns, constant and targets.
    """

    transformer: Any
    basis: list[BasisColumn]
    sums: ExactMoments

    @classmethod
    def of(cls, transformer: Any, rows: Rows, targets: FloatArray) -> Following:
        """A transformer, fitted or not, made to follow from its first rows on."""
        X = dense(rows.X)
        fitted = fit_to(clone(transformer), X, rows.weights)
        basis = basis_of(fitted)
        return cls(fitted, basis, _sums(basis, X, targets, rows.weights)).settled()

    def changed(
        self,
        added: tuple[Rows, FloatArray],
        removed: tuple[Rows, FloatArray],
        columns: Sequence[int | None],
        rho: float,
        emptied: Sequence[int],
    ) -> Following:
        """The same once rows, given with their targets, have come and gone.

        `columns` says where each target was before, `emptied` which no row will have.
        """
        (came, came_t), (gone, gone_t) = added, removed
        X, out = dense(came.X), dense(gone.X)
        transformer = with_rows(self.transformer, X, out)
        left = len(self) + len(came) - len(gone)
        if left > 0 and not holds_rows(transformer):
            raise NotLearnedError("remove_X has more rows than were learned")
        wanted = basis_of(transformer) if left > 0 else self.basis
        wider = [*self.basis, *(column for column in wanted if column not in set(self.basis))]
        before = self.sums.chosen(_places(wider, self.basis), columns)
        sums = before.copy()
        sums.join(_sums(wider, X, came_t, came.weights), 1)
        if len(gone):
            sums.join(_sums(wider, out, gone_t, gone.weights), -1)
            require_possible(before.rounded(rho), sums.rounded(rho), rho, emptied)
        vanished = [place for place, column in enumerate(wider) if column not in set(wanted)]
        if sums.digits[:, vanished].any():
            raise NotLearnedError(
                "remove_X has rows that were never learned: the last row of a category goes, and "
                "its moments do not vanish. Pass the rows as they were learned"
            )
        kept = sums.chosen(_places(wanted, wider), range(sums.n_targets))
        if not left:
            return replace(self, sums=kept)
        if not kept.n_heavy:
            raise ValueError(
                "sample_weight would be zero for all rows that remain, so that nothing could be "
                "scaled; forget them, too, or give one a positive weight"
            )
        return Following(transformer, wanted, kept).settled()

    def __len__(self) -> int:
        return self.sums.n

    def moments(self, rho: float) -> Moments:
        """Moments of the rows as transformed, as exact as `rho` asks for."""
        forms = forms_of(self.transformer, self.basis)
        if not len(self):
            return Moments(len(forms), self.sums.n_targets)
        return image_moments(self.sums, self.sums.whole(), forms, rho)

    def with_targets(self, stay: Sequence[int]) -> Following:
        """The same with some of the targets only."""
        return replace(self, sums=self.sums.arranged(stay))

    def settled(self) -> Following:
        """The same, each `StandardScaler` as fitted to rows of these moments."""
        try:
            entries, unit = self.sums.whole()
            fitted = settled(self.transformer, self.basis, entries, unit, len(self))
        except ArithmeticError as error:
            raise NotLearnedError(
                "remove_X has rows that were never learned: without them a feature would have a "
                "negative variance. Pass the rows as they were learned, with the same sample_weight"
            ) from error
        return replace(self, transformer=fitted)


def dense(X: Any) -> Any:
    """Rows as an array, of numbers or of objects."""
    return X if isinstance(X, np.ndarray) else spelled_out(as_csr(X))


def _places(wanted: Sequence[BasisColumn], known: Sequence[BasisColumn]) -> list[int | None]:
    place = {column: k for k, column in enumerate(known)}
    return [place.get(column) for column in wanted]


def _sums(
    basis: list[BasisColumn], X: Any, targets: FloatArray, weights: FloatArray | None
) -> ExactMoments:
    sums = ExactMoments(len(basis), targets.shape[1])
    for start in range(0, len(X), BLOCK_ROWS):
        part = slice(start, start + BLOCK_ROWS)
        s = None if weights is None else weights[part]
        sums.add(basis_values(basis, X[part]), targets[part], s)
    return sums
