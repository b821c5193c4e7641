# SPDX-License-Identifier: BSD-3-Clause
"""Lines of kernel columns for some samples, against a plain matrix of all kernel values."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from adiabat._core.gram import NO_SLOT, PANEL_WIDTH
from adiabat._core.line_gram import NO_LINE, LineGram
from adiabat.engine.mapped import LimitedMemory, in_memory, limit_columns

IntArray = npt.NDArray[np.int64]

# Kernel values between everyone who ever comes; none is zero, so that a trace of one is seen.
POOL = 900
VALUES = np.random.default_rng(0).uniform(1.0, 2.0, (POOL, POOL))
VALUES = 0.5 * (VALUES + VALUES.T)
PARTS = st.sampled_from([0.0, 0.05, 0.5, 1.0])


class Mirror:
    """A LineGram beside the list of who is where."""

    def __init__(self) -> None:
        self.gram = LineGram()
        self.who = np.empty(0, dtype=np.int64)
        self.came = 0

    def append(self, k: int) -> None:
        self.gram.append(k)
        self.who = np.concatenate([self.who, np.arange(self.came, self.came + k)])
        self.came += k

    def draw(self, samples: IntArray) -> None:
        lacking = self.gram.lacking(samples)
        owner = self.gram.owner
        self.gram.draw(
            lacking, lambda slots: VALUES[np.ix_(self.who[lacking], self.who[owner[slots]])]
        )

    def claim(self, samples: IntArray) -> None:
        bare = np.unique(samples[self.gram.slot_of[samples] == NO_SLOT])
        self.draw(bare)
        self.gram.claim(bare, lambda rows: VALUES[np.ix_(self.who[rows], self.who[bare])])

    def remove(self, samples: IntArray) -> None:
        tail, hole = self.gram.remove(samples)
        self.who[hole] = self.who[tail]
        self.who = self.who[: self.gram.n]

    def lined(self) -> IntArray:
        return np.flatnonzero(self.gram.line_of[: self.gram.n] != NO_LINE)

    def check(self) -> None:
        gram, n = self.gram, len(self.who)
        assert gram.n == n and gram.n_lines <= gram.capacity
        lined = self.lined()
        assert len(lined) == gram.n_lines
        np.testing.assert_array_equal(gram.sample_of[gram.line_of[lined]], lined)
        assert np.all(gram.line_of[n:] == NO_LINE) and np.all(gram.slot_of[n:] == NO_SLOT)
        slots = np.flatnonzero(gram.owner >= 0)
        np.testing.assert_array_equal(gram.slot_of[gram.owner[slots]], slots)
        assert np.all(gram.line_of[gram.owner[slots]] != NO_LINE)
        expected = np.zeros((gram.n_lines, gram.n_slots))
        names = self.who[gram.sample_of[: gram.n_lines]]
        expected[:, slots] = VALUES[np.ix_(names, self.who[gram.owner[slots]])]
        for p, panel in enumerate(gram.panels):
            part = slice(p * PANEL_WIDTH, (p + 1) * PANEL_WIDTH)
            np.testing.assert_array_equal(panel[: gram.n_lines], expected[:, part])
            assert not panel[gram.n_lines :].any()


class LineStory(RuleBasedStateMachine):
    """Samples come and go, get lines and slots, and lose them."""

    @initialize(n=st.sampled_from([1, 40, 200]))
    def start(self, n: int) -> None:
        self.mirror = Mirror()
        self.mirror.append(n)

    def some(self, of: IntArray, seed: int, part: float) -> IntArray:
        rng = np.random.default_rng(seed)
        return rng.permutation(of)[: int(np.ceil(part * len(of)))]

    @rule(k=st.sampled_from([1, 3, 70]))
    def append(self, k: int) -> None:
        if self.mirror.came + k <= POOL:
            self.mirror.append(k)

    @rule(seed=st.integers(0, 9), part=PARTS)
    def draw(self, seed: int, part: float) -> None:
        self.mirror.draw(self.some(np.arange(len(self.mirror.who)), seed, part))

    @rule(seed=st.integers(0, 9), part=PARTS)
    def claim(self, seed: int, part: float) -> None:
        self.mirror.claim(self.some(np.arange(len(self.mirror.who)), seed, part))

    @rule(seed=st.integers(0, 9), part=PARTS)
    def remove(self, seed: int, part: float) -> None:
        self.mirror.remove(self.some(np.arange(len(self.mirror.who)), seed, part))

    @rule(most=st.sampled_from([0.0, 3e5, np.inf]))
    def limit_memory(self, most: float) -> None:
        """Panels beyond so many bytes are in a file from now on."""
        limit_columns(self.mirror.gram, LimitedMemory(1.0, most))
        assert in_memory(self.mirror.gram.panels) <= most

    @rule(seed=st.integers(0, 9), part=PARTS)
    def drop(self, seed: int, part: float) -> None:
        gram = self.mirror.gram
        bare = np.flatnonzero(gram.slot_of[gram.sample_of[: gram.n_lines]] == NO_SLOT)
        gram.drop(np.sort(self.some(bare, seed, part)))

    @rule(seed=st.integers(0, 9), part=PARTS)
    def release(self, seed: int, part: float) -> None:
        n = len(self.mirror.who)
        keep = np.zeros(n, dtype=bool)
        keep[self.some(np.arange(n), seed, part)] = True
        self.mirror.gram.release(keep, 2)
        self.mirror.gram.gather_front(keep, 0, n)

    @rule(seed=st.integers(0, 9), part=PARTS)
    def read(self, seed: int, part: float) -> None:
        mirror, gram = self.mirror, self.mirror.gram
        rows = self.some(mirror.lined(), seed, part)
        slots = np.flatnonzero(gram.owner >= 0)
        expected = VALUES[np.ix_(mirror.who[rows], mirror.who[gram.owner[slots]])]
        out = np.full(expected.shape, np.nan)
        gram.gather(rows, slots, out)
        np.testing.assert_array_equal(out, expected)
        coef, f = np.zeros(gram.n_slots), np.full(len(rows), np.nan)
        coef[slots] = np.random.default_rng(seed).standard_normal(len(slots))
        gram.multiply(coef, f, rows)
        np.testing.assert_allclose(f, expected @ coef[slots], atol=1e-10)

    @invariant()
    def is_as_its_mirror(self) -> None:
        self.mirror.check()


LineStory.TestCase.settings = settings(max_examples=40, stateful_step_count=20)
TestLineStory = LineStory.TestCase


def filled(n: int, drawn: int, claimed: int) -> Mirror:
    mirror = Mirror()
    mirror.append(n)
    mirror.draw(np.arange(drawn))
    mirror.claim(np.arange(claimed))
    return mirror


def test_a_sample_without_a_line_has_no_kernel_values() -> None:
    gram = filled(50, 30, 10).gram
    coef = np.ones(gram.n_slots)
    with pytest.raises(RuntimeError, match="no line"):
        gram.multiply(coef, np.empty(2), np.array([3, 40]))
    with pytest.raises(RuntimeError, match="no line"):
        gram.gather(np.array([40]), np.arange(2), np.empty((1, 2)))


def test_removed_samples_leave_no_kernel_values_behind() -> None:
    mirror = filled(300, 250, 150)
    gone = np.arange(50, 300, 3)
    names = mirror.who[gone].copy()
    mirror.remove(gone)
    mirror.check()
    held = np.concatenate([panel.ravel() for panel in mirror.gram.panels])
    assert np.intersect1d(VALUES[names].ravel(), held[held != 0.0]).size == 0


def test_lines_that_fail_on_their_way_are_not_there() -> None:
    mirror = filled(100, 30, 10)

    def fail(slots: IntArray) -> npt.NDArray[np.float64]:
        raise MemoryError

    with pytest.raises(MemoryError):
        mirror.gram.draw(np.arange(40, 60), fail)
    mirror.check()
    mirror.draw(np.arange(40, 60))
    mirror.check()


def test_a_fork_reads_the_same_lines_and_has_columns_of_its_own() -> None:
    mirror = filled(100, 100, 10)
    fork = mirror.gram.fork()
    new = np.array([90, 91])
    fork.claim(new, lambda rows: VALUES[np.ix_(mirror.who[rows], mirror.who[new])])
    mirror.check()
    rows, out = np.arange(100), np.empty((100, 2))
    fork.gather(rows, fork.slot_of[new], out)
    np.testing.assert_array_equal(out, VALUES[:100][:, new])


def test_what_was_read_last_is_known() -> None:
    gram = filled(60, 40, 5).gram
    gram.lacking(np.array([7, 9]))
    latest = gram.sample_of[: gram.n_lines][gram.read_at[: gram.n_lines] == gram.read_at.max()]
    assert sorted(latest.tolist()) == [7, 9]
