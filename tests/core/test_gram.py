# SPDX-License-Identifier: BSD-3-Clause
"""Slots of kernel columns against a plain matrix of all kernel values."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from adiabat._core import thread_pool
from adiabat._core.gram import NO_SLOT, PANEL_WIDTH, Gram
from adiabat.engine.mapped import LimitedMemory, in_memory, limit_columns

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

# Kernel values between everyone who ever comes; none is zero, so that a trace of one is seen.
POOL = 1200
VALUES = np.random.default_rng(0).uniform(1.0, 2.0, (POOL, POOL))
VALUES = 0.5 * (VALUES + VALUES.T)


PARTS = st.sampled_from([0.0, 0.02, 0.1, 0.5, 0.9, 1.0])


class Mirror:
    """A Gram beside the list of who is where."""

    def __init__(self) -> None:
        self.gram = Gram()
        self.who = np.empty(0, dtype=np.int64)
        self.came = 0

    @property
    def occupied(self) -> IntArray:
        return np.flatnonzero(self.gram.owner >= 0)

    @property
    def K(self) -> FloatArray:
        """K[all samples, slots]: zero where a slot is free."""
        out = np.zeros((len(self.who), self.gram.n_slots))
        slots = self.occupied
        out[:, slots] = VALUES[np.ix_(self.who, self.who[self.gram.owner[slots]])]
        return out

    def append(self, k: int) -> None:
        new = np.arange(self.came, self.came + k)
        self.came += k
        slots = self.occupied
        block = VALUES[np.ix_(new, self.who[self.gram.owner[slots]])]
        self.gram.append(k, slots, np.ascontiguousarray(block))
        self.who = np.concatenate([self.who, new])

    def claim(self, samples: IntArray, by_group: bool = False) -> None:
        columns = VALUES[np.ix_(self.who, self.who[samples])]
        groups = self.who[samples] % 3 if by_group else None
        self.gram.claim(samples, lambda rows: columns[rows], groups)

    def remove(self, samples: IntArray) -> None:
        left = len(self.who) - len(np.unique(samples))
        tail, hole = self.gram.remove(samples)
        assert len(tail) == len(hole) <= len(samples)
        assert np.all(tail >= left) and np.all(hole < left)
        self.who[hole] = self.who[tail]
        self.who = self.who[:left]

    def without_slot(self) -> IntArray:
        return np.flatnonzero(self.gram.slot_of[: self.gram.n] == NO_SLOT)

    def check(self) -> None:
        gram, n = self.gram, len(self.who)
        assert gram.n == n <= gram.capacity
        assert gram.n_slots == PANEL_WIDTH * len(gram.panels) == len(gram.owner) == len(gram.stamp)
        assert gram.nbytes == sum(panel.nbytes for panel in gram.panels)
        # slot_of and owner are each other's inverse
        slots = self.occupied
        np.testing.assert_array_equal(gram.slot_of[gram.owner[slots]], slots)
        assert np.sum(gram.slot_of[:n] != NO_SLOT) == len(slots)
        assert np.all(gram.slot_of[n:] == NO_SLOT)
        # occupied slots are right, and nothing else is anywhere
        for p, panel in enumerate(gram.panels):
            assert panel.shape == (gram.capacity, PANEL_WIDTH)
            expected = self.K[:, PANEL_WIDTH * p : PANEL_WIDTH * (p + 1)]
            np.testing.assert_array_equal(panel[:n], expected)
            assert not panel[n:].any()


class GramStory(RuleBasedStateMachine):
    """Samples come, claim slots, lose them and go, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.mirror = Mirror()

    @initialize(n=st.sampled_from([0, 1, 64, 65, 200]), part=PARTS)
    def begin(self, n: int, part: float) -> None:
        self.mirror.append(n)
        self.claim(0, part)

    def some(self, of: IntArray, seed: int, part: float) -> IntArray:
        count = round(part * len(of))
        return np.random.default_rng(seed).permutation(of)[:count]

    @precondition(lambda self: self.mirror.came < POOL - 100)
    @rule(k=st.sampled_from([0, 1, 5, 40, 90]))
    def append(self, k: int) -> None:
        self.mirror.append(k)

    @rule(seed=st.integers(0, 9), part=PARTS)
    def claim_slots(self, seed: int, part: float) -> None:
        self.claim(seed, part)

    @rule(seed=st.integers(0, 9), part=PARTS)
    def claim_slots_by_group(self, seed: int, part: float) -> None:
        self.mirror.claim(self.some(self.mirror.without_slot(), seed, part), by_group=True)

    def claim(self, seed: int, part: float) -> None:
        self.mirror.claim(self.some(self.mirror.without_slot(), seed, part))

    @rule(seed=st.integers(0, 9), part=PARTS)
    def remove(self, seed: int, part: float) -> None:
        self.mirror.remove(self.some(np.arange(len(self.mirror.who)), seed, part))

    @rule(seed=st.integers(0, 9), part=PARTS, spare=st.integers(0, 40))
    def release(self, seed: int, part: float, spare: int) -> None:
        gram, n = self.mirror.gram, len(self.mirror.who)
        keep = np.zeros(n, dtype=bool)
        keep[self.some(np.arange(n), seed, part)] = True
        slot_before, stamp_before = gram.slot_of[:n].copy(), gram.stamp.copy()
        gram.release(keep, spare)
        had, has = slot_before != NO_SLOT, gram.slot_of[:n] != NO_SLOT
        assert np.all(has[had & keep]) and not np.any(has & ~had)
        np.testing.assert_array_equal(gram.slot_of[:n][has], slot_before[has])
        idle = np.flatnonzero(had & ~keep)
        stays, goes = idle[has[idle]], idle[~has[idle]]
        assert len(stays) == min(spare, len(idle))
        if len(stays) and len(goes):
            stamps = stamp_before[slot_before]
            assert stamps[goes].max() <= stamps[stays].min()

    @rule(most=st.sampled_from([0.0, 3e5, np.inf]))
    def limit_memory(self, most: float) -> None:
        """Panels beyond so many bytes are in a file from now on."""
        limit_columns(self.mirror.gram, LimitedMemory(1.0, most))
        assert in_memory(self.mirror.gram.panels) <= most

    @rule(
        seed=st.integers(0, 9),
        part=PARTS,
        tolerated=st.sampled_from([0, 5, 1000]),
        most=st.sampled_from([1, 5, 1000]),
    )
    def gather_front(self, seed: int, part: float, tolerated: int, most: int) -> None:
        gram, n = self.mirror.gram, len(self.mirror.who)
        keep = np.zeros(n, dtype=bool)
        keep[self.some(np.arange(n), seed, part)] = True
        before = self.misplaced(keep)
        slotted = gram.slot_of[:n] != NO_SLOT
        gram.gather_front(keep, tolerated, most)
        np.testing.assert_array_equal(gram.slot_of[:n] != NO_SLOT, slotted)
        assert self.misplaced(keep) == (before if before <= tolerated else max(0, before - most))

    def misplaced(self, keep: npt.NDArray[np.bool_]) -> int:
        """Columns to keep that are not in the first panels, as few as would hold them."""
        gram = self.mirror.gram
        slots = gram.slot_of[: gram.n][keep]
        used = slots[slots != NO_SLOT]
        return int(np.sum(used // PANEL_WIDTH >= -(-len(used) // PANEL_WIDTH)))

    @rule(seed=st.integers(0, 9), part=PARTS)
    def multiply(self, seed: int, part: float) -> None:
        gram, n = self.mirror.gram, len(self.mirror.who)
        rng = np.random.default_rng(seed)
        coef = rng.standard_normal(gram.n_slots) * (rng.random(gram.n_slots) < 0.02)
        exact = self.mirror.K @ coef
        out = np.full(n, np.nan)
        gram.multiply(coef, out)
        np.testing.assert_allclose(out, exact, atol=1e-12)
        rows = self.some(np.arange(n), seed, part)
        out = np.full(len(rows), np.nan)
        gram.multiply(coef, out, rows)
        np.testing.assert_allclose(out, exact[rows], atol=1e-12)

    @rule(seed=st.integers(0, 9), part=PARTS)
    def gather(self, seed: int, part: float) -> None:
        rows = self.some(np.arange(len(self.mirror.who)), seed, part)
        slots = self.some(self.mirror.occupied, seed + 1, part)
        out = np.full((len(rows), len(slots)), np.nan)
        self.mirror.gram.gather(rows, slots, out)
        np.testing.assert_array_equal(out, self.mirror.K[np.ix_(rows, slots)])

    @invariant()
    def is_as_its_mirror(self) -> None:
        self.mirror.check()


GramStory.TestCase.settings = settings(max_examples=60, stateful_step_count=25)
TestGramStory = GramStory.TestCase


# ---------------------------------------------------------------------------------------------
# Corners that a story may miss


def filled(n: int, claimed: int) -> Mirror:
    mirror = Mirror()
    mirror.append(n)
    mirror.claim(np.arange(claimed))
    return mirror


@pytest.mark.parametrize("claimed", [0, 1, 127, 128, 129, 300, 512, 513])
def test_panel_boundaries(claimed: int) -> None:
    mirror = filled(600, claimed)
    mirror.check()
    assert len(mirror.gram.panels) == -(-claimed // PANEL_WIDTH)
    rng = np.random.default_rng(1)
    coef = rng.standard_normal(mirror.gram.n_slots)
    out = np.empty(600)
    mirror.gram.multiply(coef, out)
    np.testing.assert_allclose(out, mirror.K @ coef, atol=1e-10)
    rows = np.array([599, 0, 17, 17])
    part = np.empty(4)
    mirror.gram.multiply(coef, part, rows)
    np.testing.assert_allclose(part, out[rows], atol=1e-10)


def test_unused_panels_are_skipped_but_not_forgotten() -> None:
    mirror = filled(600, 600)
    for slot in (0, 127, 128, 300, 599):
        coef = np.zeros(mirror.gram.n_slots)
        coef[slot] = 2.0
        out = np.empty(600)
        mirror.gram.multiply(coef, out)
        np.testing.assert_allclose(out, 2.0 * mirror.K[:, slot], rtol=1e-15)


def test_growth_keeps_contents_and_old_slots() -> None:
    mirror = filled(10, 10)
    for k in (1, 60, 1, 200, 300):
        slots = mirror.gram.slot_of[:10].copy()
        mirror.append(k)
        mirror.check()
        np.testing.assert_array_equal(mirror.gram.slot_of[:10], slots)
    assert mirror.gram.capacity <= 1.5 * mirror.gram.n + 64


def test_removed_samples_leave_no_kernel_values_behind() -> None:
    """Rows and columns of the removed are overwritten, in the room to spare as well."""
    mirror = filled(300, 200)
    gone = np.arange(50, 300, 3)
    names = mirror.who[gone].copy()
    mirror.remove(gone)
    mirror.check()
    traces = VALUES[names].ravel()
    held = np.concatenate([panel.ravel() for panel in mirror.gram.panels])
    assert np.intersect1d(traces, held[held != 0.0]).size == 0


def test_all_samples_go_and_others_come() -> None:
    mirror = filled(150, 140)
    mirror.remove(np.arange(150))
    mirror.check()
    assert mirror.gram.n == 0 and len(mirror.occupied) == 0
    mirror.append(5)
    mirror.claim(np.array([4, 2]))
    mirror.check()
    assert len(mirror.gram.panels) == 2


def test_removing_nobody_moves_nobody() -> None:
    mirror = filled(20, 5)
    tail, hole = mirror.gram.remove(np.empty(0, dtype=np.int64))
    assert len(tail) == len(hole) == 0
    mirror.check()


def test_a_sample_named_twice_is_removed_once() -> None:
    mirror = filled(20, 5)
    mirror.remove(np.array([3, 3, 19, 3]))
    assert mirror.gram.n == 18
    mirror.check()


def test_spare_columns_are_the_latest() -> None:
    mirror = filled(30, 0)
    for sample in range(6):
        mirror.claim(np.array([sample]))
    keep = np.zeros(30, dtype=bool)
    keep[0] = True
    mirror.gram.release(keep, 2)
    assert mirror.gram.owner[mirror.occupied].tolist() == [0, 4, 5]
    # what was kept for use is younger than what was kept to spare
    mirror.gram.release(np.zeros(30, dtype=bool), 1)
    assert mirror.gram.owner[mirror.occupied].tolist() == [0]
    mirror.check()


def test_a_claim_that_fails_leaves_nothing() -> None:
    mirror = filled(1000, 5)

    def columns(rows: slice) -> FloatArray:
        if rows.start > 0:
            raise KeyboardInterrupt
        return np.ones((rows.stop, 200))

    with pytest.raises(KeyboardInterrupt):
        mirror.gram.claim(np.arange(5, 205), columns)
    mirror.check()


def test_rows_shared_by_threads_give_the_same() -> None:
    for threads in (1, 2):
        thread_pool.resize(threads)
        try:
            mirror = filled(300, 200)
            mirror.remove(np.arange(0, 300, 4))
            keep = np.arange(225) % 3 == 0
            mirror.gram.release(keep, 10)
            mirror.gram.gather_front(keep, 0, 1000)
            mirror.check()
        finally:
            thread_pool.resize(1)


def test_write_overwrites_given_rows_and_slots_only() -> None:
    mirror = filled(200, 150)
    rows, slots = np.array([3, 199]), np.array([0, 127, 128])
    mirror.gram.write(rows, slots, np.full((2, 3), 9.0))
    out = np.empty((200, 150))
    mirror.gram.gather(np.arange(200), np.arange(150), out)
    expected = mirror.K[:, :150]
    expected[np.ix_(rows, slots)] = 9.0
    np.testing.assert_array_equal(out, expected)


def test_nothing_there() -> None:
    gram = Gram()
    assert (gram.n, gram.n_slots, gram.nbytes, gram.panels) == (0, 0, 0, [])
    gram.append(3, np.empty(0, dtype=np.int64), np.empty((3, 0)))
    out = np.full(3, np.nan)
    gram.multiply(np.empty(0), out)
    np.testing.assert_array_equal(out, np.zeros(3))
    gram.multiply(np.empty(0), out[:1], np.array([2]))
    gram.claim(np.empty(0, dtype=np.int64), np.empty((0, 3)))
    gram.gather(np.arange(3), np.empty(0, dtype=np.int64), np.empty((3, 0)))
    gram.release(np.ones(3, dtype=bool), 0)
    assert gram.n_slots == 0


def test_columns_of_a_group_share_no_line_of_the_cache_with_others() -> None:
    mirror = Mirror()
    mirror.append(90)
    rng = np.random.default_rng(0)
    for part in np.array_split(rng.permutation(90), 7):
        mirror.claim(part, by_group=True)
        mirror.check()
    mirror.remove(rng.permutation(90)[:40])
    mirror.claim(mirror.without_slot(), by_group=True)
    mirror.check()
    strips = [
        {int(who) % 3 for who in mirror.who[owners[owners >= 0]]}
        for owners in mirror.gram.owner.reshape(-1, 8)
    ]
    assert max(len(groups) for groups in strips) == 1
    assert sum(bool(groups) for groups in strips) <= 90 // 8 + 3
