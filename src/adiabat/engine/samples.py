# SPDX-License-Identifier: BSD-3-Clause
"""The samples now in the model and their kernel columns, shared by all machines.

A sample has a *position* for as long as it stays; when others are removed, samples from the end
move into the holes, and `remove` says which. Kernel columns exist only for the samples that carry
weight, and for a few that lately did (`Gram`); of a large model they have values for the samples
near the margin only (`LineGram`), and what is asked of others is computed from the data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from adiabat._core.among import Among
from adiabat._core.gram import Gram
from adiabat._core.judge import weigh, weigh_rows
from adiabat._core.kernel_values import Rows
from adiabat._core.line_gram import LineGram
from adiabat._core.linear_gram import LinearGram
from adiabat._core.places import owned
from adiabat._core.room import Room, moved
from adiabat._core.sparse_rows import SparseRows
from adiabat.engine.features import DenseFeatures, Features, LinearFeatures, make_features
from adiabat.engine.indefinite import refuse_indefinite, refuse_negative
from adiabat.engine.memory import has_room, regain, require_columns
from adiabat.engine.square import Square
from adiabat.kernels import Kernel
from adiabat.typing import FloatArray, IntArray

# Kernel values are computed for at most this many at a time (64 MB).
BLOCK_ENTRIES = 8_000_000
# Kernel values that are only read once, at a time: 8 MB, in the cache.
READ_ENTRIES = 1 << 20
# Samples of a fit from which on columns have values for some of them only.
LINED = 20_000
# Lines are dropped once they are more than one for so many samples, down to one for LEFT_LINES.
MOST_LINES, LEFT_LINES = 18, 24
# So many values read between two tidyings, for each that columns would hold, are read often.
OFTEN = 2
# Samples up to which a fit gives each a column, with weight or without.
WHOLE = 200
# Columns up to which dense rows are read as they are, though most of their entries are zero: where
# the column is zero they are not read either.
FEW_COLUMNS = 2

_NOBODY: IntArray = np.empty(0, dtype=np.int64)


class Samples:
    """Rows of features (dense or CSR), or rows of a given kernel matrix."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.gram, self.n = Gram(), 0
        self.diagonal = np.empty(0)
        self._largest, self._largest_of = 0.0, self.diagonal
        self._room = Room()
        self._held: Features | Any = None  # None until the first `add`
        self._norms: FloatArray | None = None
        self.group: IntArray | None = None  # by position, where some machines have other samples
        self.n_read = 0  # kernel values computed for samples without a line, and not kept
        self.in_lines = False  # columns may lack values of some samples, which `draw` gives them
        self.square: Square | None = None  # all kernel values, during a fit

    # -- what is there ---------------------------------------------------------------------------

    @property
    def precomputed(self) -> bool:
        """Whether the samples are rows of a given kernel matrix."""
        return self.kernel.name == "precomputed"

    @property
    def data(self) -> Any:
        """Feature rows by position (or the kernel matrix, if that was given)."""
        return None if self._held is None else self._held.data

    @property
    def n_features(self) -> int:
        """How many features a sample has (or samples, if the kernel was given)."""
        return int(self.rows(slice(0, 0)).shape[1])

    @property
    def _nonzeros(self) -> SparseRows | None:
        """The rows by their nonzero entries, if they are kept so."""
        nonzeros: SparseRows | None = self._held.nonzeros
        return nonzeros

    @property
    def viewed(self) -> bool:
        """Whether kernel values are made from the rows where they are kept."""
        kernel = self.kernel
        return kernel.name not in ("precomputed", "callable") and (
            kernel.origin is None or self.by_features
        )

    def view(self, positions: Any, against: int, copied: bool = False) -> Rows:
        """Rows at positions for the kernel's formula, to be read now; `against` so many others.

        They are read faster from a copy, in which they stand one after the other.
        """
        everyone = isinstance(positions, slice) and positions == slice(None)
        held = self._held
        if not self.viewed:
            rows = self.kernel.rows(self.rows(positions))
        elif isinstance(held, LinearFeatures) or (
            self._nonzeros is None or (against <= FEW_COLUMNS and isinstance(held, DenseFeatures))
        ):
            data = self.features if isinstance(held, LinearFeatures) else held.data
            if copied:
                data = data[positions]
            rows = Rows.dense(data, None if everyone or copied else positions)
        else:
            rows = self._nonzeros.view(positions)
        rows.norms = None if self._norms is None else self._norms[positions]
        return rows

    @property
    def largest(self) -> float:
        """The largest k(x, x), at least 0."""
        if self._largest_of is not self.diagonal:  # which is replaced when it has changed
            self._largest, self._largest_of = float(self.diagonal.max(initial=0.0)), self.diagonal
        return self._largest

    @property
    def by_features(self) -> bool:
        """Whether K = XX' is read from X itself, whose features are few."""
        return isinstance(self.gram, LinearGram)

    @property
    def features(self) -> FloatArray:
        """If by features: X such that K = XX', by position."""
        assert isinstance(self._held, LinearFeatures)
        return self._held.measured[: self.n]

    def rows(self, positions: Any) -> Any:
        """Feature rows at positions."""
        return self._held.rows(positions)

    def block(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Kernel values between samples, from the data themselves."""
        if self.precomputed:
            return np.ascontiguousarray(self.data[np.ix_(rows, columns)])
        if self.kernel.function is not None:
            return self.kernel.block(self.rows(rows), self.rows(columns))
        few = min(len(rows), len(columns))
        return self.kernel.formula.block(self.view(rows, few), self.view(columns, few))

    @property
    def is_small(self) -> bool:
        """Whether a fit gives all samples columns, and none is released.

        That costs less than to ask for some of them, and then for more.
        """
        return self.n <= WHOLE and not self.by_features and self.kernel.function is None

    def values_among(self, positions: IntArray) -> Any:
        """What `Pairs` asks for kernel values of some among positions with all of them."""
        if self.square is not None:
            return self.square.among(positions)
        known = len(positions) > 0 and self.gram.slot_of[positions].min() >= 0
        if self.viewed and (self.by_features or not known):
            return Among(self.kernel.formula, self.view(positions, 1, copied=True))

        def write(places: IntArray, out: FloatArray) -> None:
            values = self.between if known else self.block
            out[:, : len(positions)] = values(positions[places], positions)

        return write

    def regroup(self, positions: IntArray, by: int) -> None:
        """Add a number to the groups of samples: those of the same machines are one group."""
        if self.group is None:
            self.group = np.zeros(self.n, dtype=np.int64)
        if len(positions):
            self.group[positions] += by

    def _claim(self, positions: IntArray) -> None:
        """Give samples their kernel columns, computed against all samples that have a line."""
        kernel, data = self.kernel, self.data
        groups = None if self.group is None else self.group[positions]
        if self.square is not None:
            write = partial(self.square.among(slice(None)).write, positions)
            self.gram.claim_by(positions, write, groups)
        elif self.viewed:
            k, everyone = len(positions), self.gram.members(slice(self.gram.n_lines))
            everyone = slice(None) if isinstance(everyone, slice) else everyone
            self.gram.claim_by(
                positions,
                lambda tops, step: kernel.formula.write(
                    self.view(everyone, k), self.view(positions, k), tops, step
                ),
                groups,
            )
        elif self.precomputed:
            self.gram.claim(positions, lambda rows: data[rows, positions], groups)
        elif kernel.function is not None:
            whole = kernel.block(self.rows(positions), data)
            self.gram.claim(positions, lambda rows: whole[:, rows].T, groups)
        else:
            others = kernel.rows(self.rows(positions))
            self.gram.claim(positions, lambda rows: kernel.block(data[rows], others), groups)

    def slots(self, positions: IntArray) -> IntArray:
        """Slots of samples, their columns computed where there were none."""
        slots: IntArray = self.gram.slot_of[positions]
        if len(slots) and slots.min() < 0:
            lacking = np.zeros(self.n, dtype=bool)
            lacking[positions[slots < 0]] = True
            self._fill(lacking.nonzero()[0])
            slots = self.gram.slot_of[positions]
        return slots

    def _fill(self, positions: IntArray) -> None:
        self.draw(positions)
        for part in self._parts(positions):
            self._claim(positions[part])

    def keep(self, positions: IntArray, write: Callable[..., None]) -> None:
        """Keep columns that are known: write(some, samples, tops, step) are those of some of them.

        It puts that of the i-th of the samples and the j-th of some at tops[j] + i * step numbers.
        """
        self.draw(positions)
        for part in self._parts(positions):
            groups = None if self.group is None else self.group[positions[part]]
            everyone = np.arange(self.n)[self.gram.members(slice(self.gram.n_lines))]
            self.gram.claim_by(positions[part], partial(write, part, everyone), groups)

    def _parts(self, positions: IntArray) -> Iterator[slice]:
        """Positions whose columns have room, a part at a time."""
        require_columns(self.gram, self.gram.n_lines, len(positions))
        step = max(1, BLOCK_ENTRIES // max(1, self.gram.n_lines))
        for start in range(0, len(positions), step):
            yield slice(start, start + step)

    def between(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Kernel values K[rows, columns], read from slots of the columns."""
        slots = self.slots(columns)
        self.draw(rows)
        out = np.empty((len(rows), len(columns)))
        self.gram.gather(rows, slots, out)
        return out

    def among(self, positions: IntArray) -> FloatArray:
        """Kernel values among samples, without asking for columns that are not there."""
        has = self.gram.slot_of[positions] >= 0
        if has.all():
            return self.between(positions, positions)
        with_column, without = np.flatnonzero(has), np.flatnonzero(~has)
        lacking = positions[without]
        out = np.empty((len(positions), len(positions)))
        out[:, with_column] = self.between(positions, positions[with_column])
        out[np.ix_(with_column, without)] = out[np.ix_(without, with_column)].T
        out[np.ix_(without, without)] = self.block(lacking, lacking)
        return out

    # -- lines -----------------------------------------------------------------------------------

    def draw(self, positions: IntArray) -> None:
        """Let columns have values for these samples."""
        gram: Any = self.gram
        if not self.in_lines:
            return
        lacking = gram.lacking(positions)
        if len(lacking):
            self._draw(lacking)

    def _draw(self, lacking: IntArray) -> None:
        gram: Any = self.gram
        require_columns(gram, len(lacking), gram.n_slots)
        step = max(1, BLOCK_ENTRIES // max(1, gram.n_slots))
        for start in range(0, len(lacking), step):
            some = lacking[start : start + step]
            gram.draw(some, lambda slots, some=some: self.block(some, gram.owner[slots]))

    def complete(self) -> None:
        """Let columns have values for all samples, from now on."""
        if self.in_lines:
            self.draw(np.arange(self.n))
            self.in_lines = False

    def settle(self) -> None:
        """After an update: complete columns if values that they lack are read often; else trim."""
        if self.in_lines and self.n_read > OFTEN * self.n * np.count_nonzero(self.gram.owner >= 0):
            self.n_read = 0
            if has_room(self.gram, (self.n - self.gram.n_lines) * self.gram.n_slots):
                with suppress(OSError):  # a full disk: it goes on without
                    self.complete()
        self.trim()

    def trim(self) -> None:
        """Drop lines if they are many, but for those read last and those of owners of columns."""
        gram: Any = self.gram
        left = self.n // LEFT_LINES
        if not self.in_lines or gram.n_lines <= self.n // MOST_LINES:
            return
        read_at = gram.read_at[: gram.n_lines].copy()
        owned = gram.slot_of[gram.sample_of[: gram.n_lines]] >= 0
        read_at[owned] = np.iinfo(np.int64).max
        gone = np.argsort(read_at, kind="stable")[: max(0, gram.n_lines - left)]
        gram.drop(np.sort(gone[~owned[gone]]))

    def values(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Kernel values K[rows, columns]: from columns, or where these lack some, from the data."""
        return self.block(rows, columns) if self.in_lines else self.between(rows, columns)

    def weigh(self, weights: FloatArray, positions: IntArray) -> FloatArray:
        """Sums of kernel values times weights (by slot), at samples."""
        if self.in_lines:
            return self.judged(weights, positions)
        f = np.empty(len(positions))
        self.gram.multiply(weights, f, positions)
        return f

    def judged(self, weights: FloatArray, positions: IntArray) -> FloatArray:
        """The same by the judge's own product."""
        gram: Any = self.gram
        f = np.empty(len(positions))
        if not self.in_lines:
            weigh_rows(gram.panels, weights, gram.lines(positions), f)
            return f
        lines = gram.line_of[positions]
        order = np.argsort(lines, kind="stable")  # as they stand in memory
        far, near = np.split(order, [np.count_nonzero(lines < 0)])
        there = np.empty(len(near))
        weigh_rows(gram.panels, weights, lines[near], there)
        f[near] = there
        f[far] = self._read(weights, positions[far])
        return f

    def _read(self, weights: FloatArray, positions: IntArray) -> FloatArray:
        """The same from the data, of rows that are equal once."""
        slots = np.flatnonzero(weights)
        owners, used = self.gram.owner[slots], weights[slots][:, None]
        alike, which = self._alike(positions)
        out = np.empty((len(alike), 1))
        step = max(1, READ_ENTRIES // max(1, len(slots)))
        for start in range(0, len(alike), step):
            some = slice(start, start + step)
            weigh([self.block(alike[some], owners)], used, out[some])
        self.n_read += len(alike) * len(slots)
        return np.asarray(out[which, 0])

    def _alike(self, positions: IntArray) -> tuple[IntArray, IntArray]:
        """Samples of which all others are copies, and whose copy each is."""
        if self._norms is None or not isinstance(self._held, DenseFeatures):
            return positions, np.arange(len(positions))
        return self._held.alike(positions, self._norms[positions])

    def fork(self) -> Samples:
        """A read-only copy that shares kernel columns; new columns are its own."""
        regain(self)
        self.complete()
        other = Samples(self.kernel)
        other.gram, other.n, other.diagonal = self.gram.fork(), self.n, self.diagonal
        other._held, other._norms, other.group = self._held, self._norms, self.group
        other.in_lines = self.in_lines
        return other

    # -- change ----------------------------------------------------------------------------------

    def add(self, X: Any) -> IntArray:
        """Add rows at the end and return their positions.

        X is (k, features), or for a given kernel (k, n + k): against the samples by position,
        then among the new ones.
        """
        k = X.shape[0]
        self._store_rows(X)
        positions = np.arange(first := self.n - k, self.n)
        self.gram.append(k)
        self._check_diagonal(positions, self._own(first))
        is_lined = isinstance(self.gram, LineGram)
        if self.by_features or is_lined:
            if is_lined and not self.in_lines:
                self._draw(positions)
        else:
            occupied = owned(self.gram.owner)
            owners = self.gram.owner[occupied]
            step = max(1, BLOCK_ENTRIES // max(1, len(owners)))
            for start in range(0, k if len(owners) else 0, step):
                part = positions[start : start + step]
                self.gram.write(part, occupied, self.block(part, owners))
        refuse_indefinite(self.kernel, self.block, positions)
        return positions

    def _own(self, first: int) -> FloatArray:
        """k(x, x) of the samples from the first on."""
        if self.precomputed:
            return np.array(self.data.diagonal()[first:])
        return self.kernel.diagonal(self.rows(slice(first, self.n)))

    def _check_diagonal(self, positions: IntArray, own: FloatArray) -> None:
        refuse_negative(self.kernel, own)
        before = self.diagonal[: positions[0] if len(own) else None]
        self.diagonal = self._room.extended("diagonal", before, own)

    def _store_rows(self, X: Any) -> None:
        if self._held is None:
            self._held = make_features(self.kernel, X)
            is_large = X.shape[0] >= LINED and self.viewed
            if is_large and not isinstance(self._held, LinearFeatures):
                self.gram, self.in_lines = LineGram(self.gram.memory), True
        self._held.add(X)
        if isinstance(self._held, LinearFeatures):
            if not isinstance(self.gram, LinearGram):
                self.gram = LinearGram()
            self.gram.hold(self._held.measured)
        norms = self.kernel.norms(X)
        if norms is not None:
            before = norms[:0] if self._norms is None else self._norms
            self._norms = self._room.extended("norms", before, norms)
        self.n += X.shape[0]
        if self.group is not None:
            self.group = np.concatenate([self.group, np.zeros(X.shape[0], dtype=np.int64)])

    def remove(self, positions: IntArray) -> tuple[IntArray, IntArray]:
        """Remove samples; returns (from, to): where samples from the end moved."""
        if len(positions) == 0:
            return _NOBODY, _NOBODY
        tail, hole = self.gram.remove(positions)
        left = self.gram.n
        self._held.move(tail, hole, left)
        self._compact(tail, hole, left)
        self.n = left
        return tail, hole

    def _compact(self, tail: IntArray, hole: IntArray, left: int) -> None:
        """What is kept by position, once samples have moved and `left` of them stay."""
        self.diagonal = moved(self.diagonal, tail, hole, left)
        if self._norms is not None:
            self._norms = moved(self._norms, tail, hole, left)
        if self.group is not None:
            self.group = moved(self.group, tail, hole, left)

    def truncate(self, n: int) -> None:
        """Take back samples added after there were n, whatever of them had been stored."""
        if self.gram.n > n:
            self.gram.remove(np.arange(n, self.gram.n))
        if self._held is not None:
            self._held.truncate(n)
        self._compact(_NOBODY, _NOBODY, n)
        self.n = n
