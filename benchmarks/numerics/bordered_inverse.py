# SPDX-License-Identifier: BSD-3-Clause
"""The alternative to the margin factor: CP01's explicit inverse, kept by rank-one updates.

    R = [[0, 1'], [1, K_MM]]^-1

grows by CP01 (13), R += [beta; 1][beta; 1]' / gamma, and shrinks by (14),
R_ij -= R_ik R_kj / R_kk. Only the lower triangle is kept, by SYMV and SYR, which is as cheap as it
gets. Rows that are not in the margin have zeros in R, so that nothing is ever moved.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.linalg.blas import dsymm, dsymv, dsyr, dsyrk, dtrsm
from scipy.linalg.lapack import dsytrf, dsytri

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


class BorderedInverse:
    """R over the margin rows of a kernel matrix; place 0 is the border's."""

    def __init__(self, room: int) -> None:
        self.inverse = np.zeros((room + 1, room + 1), order="F")
        self.row_at = np.full(room + 1, -1, dtype=np.int64)
        self.row_at[0] = np.iinfo(np.int64).max

    @property
    def places(self) -> IntArray:
        """Where the margin rows are."""
        return 1 + np.flatnonzero(self.row_at[1:] >= 0)

    @property
    def rows(self) -> IntArray:
        """The margin rows."""
        return self.row_at[self.places]

    def rebuild(self, K: FloatArray, rows: IntArray) -> None:
        """Invert afresh (LDL' with pivoting)."""
        size = len(rows)
        bordered = np.zeros((size + 1, size + 1), order="F")
        bordered[0, 1:] = bordered[1:, 0] = 1.0
        bordered[1:, 1:] = K
        factored, pivots, info = dsytrf(bordered, lower=1, overwrite_a=1)
        inverse, info = dsytri(factored, pivots, lower=1, overwrite_a=1)
        if info:
            raise np.linalg.LinAlgError("the bordered matrix is singular")
        self.inverse[:] = 0.0
        self.inverse[: size + 1, : size + 1] = np.tril(inverse)
        self.row_at[1:] = -1
        self.row_at[1 : size + 1] = rows

    def grow(self, row: int, cross: FloatArray, own: float) -> None:
        """A row joins: CP01 (10), (12), (13). cross = K[row, rows]."""
        place = 1 + int(np.argmax(self.row_at[1:] < 0))
        column = np.zeros(len(self.row_at))
        column[0] = 1.0
        column[self.places] = cross
        beta = dsymv(-1.0, self.inverse, column, lower=1)
        gamma = own + float(column @ beta)
        beta[place] = 1.0
        self.inverse = dsyr(1.0 / gamma, beta, lower=1, a=self.inverse, overwrite_a=1)
        self.row_at[place] = row

    def grow_block(self, rows: IntArray, cross: FloatArray, own: FloatArray) -> None:
        """Rows join together: the same with blocks. cross = K[rows, margin rows]."""
        k = len(rows)
        places = 1 + np.flatnonzero(self.row_at[1:] < 0)[:k]
        columns = np.zeros((len(self.row_at), k), order="F")
        columns[0] = 1.0
        columns[self.places] = cross.T
        beta = dsymm(-1.0, self.inverse, columns, lower=1)
        gamma = np.linalg.cholesky(own + columns.T @ beta)
        beta[places, np.arange(k)] = 1.0
        half = dtrsm(1.0, gamma, beta, side=1, lower=1, trans_a=1)  # beta gamma^-T
        self.inverse = dsyrk(1.0, half, beta=1.0, c=self.inverse, lower=1, overwrite_c=1)
        self.row_at[places] = rows

    def drop(self, row: int) -> None:
        """A row leaves: CP01 (14)."""
        place = int(np.flatnonzero(self.row_at == row)[0])
        column = np.concatenate([self.inverse[place, :place], self.inverse[place:, place]])
        self.inverse = dsyr(-1.0 / column[place], column, lower=1, a=self.inverse, overwrite_a=1)
        self.inverse[place, :] = 0.0
        self.inverse[:, place] = 0.0
        self.row_at[place] = -1

    def solve(self, q: FloatArray, total: float) -> tuple[FloatArray, float]:
        """(du, db) with K_MM du + db 1 = q and 1'du = total, in the order of `rows`."""
        right = np.zeros(len(self.row_at))
        right[0] = total
        right[self.places] = q
        answer = dsymv(1.0, self.inverse, right, lower=1)
        return answer[self.places], float(answer[0])
