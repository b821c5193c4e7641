# SPDX-License-Identifier: BSD-3-Clause
"""The ledger: ids in learning order, and nothing moves when something is wrong."""

import copy
import enum
import pickle
import time
import uuid

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from adiabat.archive import read_archive, write_archive
from adiabat.errors import IdError, ModelFileError
from adiabat.estimators.ledger import Ledger

UUIDS = [uuid.UUID(int=k) for k in (5, 1, 3)]


def ledger_of(ids):
    ledger = Ledger()
    ledger.append(ids)
    return ledger


def state(ledger):
    return (
        list(ledger._ids),
        ledger._serials.tolist(),
        dict(ledger._serial_of),
        ledger._kind,
        ledger._next_serial,
        ledger._next_number,
    )


def test_a_new_ledger_is_empty():
    ledger = Ledger()
    assert len(ledger) == 0
    assert ledger.ids.shape == (0,)
    assert ledger.ids.dtype == np.int64
    assert ledger.next_number == 0
    assert 3 not in ledger
    assert ledger.locate([]).shape == (0,)


def test_ids_are_in_learning_order():
    ledger = ledger_of([30, 10])
    ledger.append([20])
    ledger.delete([0])
    ledger.append([30])
    assert ledger.ids.tolist() == [10, 20, 30]
    assert ledger.ids.dtype == np.int64
    assert ledger.locate([30, 10]).tolist() == [2, 0]
    assert not ledger.ids.flags.writeable


@pytest.mark.parametrize("ids", [["b", "a\0", "c"], [b"b", b"a\0", b""], UUIDS, [1 << 90, 2, -5]])
def test_ids_that_are_not_int64_come_as_they_are(ids):
    ledger = ledger_of(ids)
    assert ledger.ids.dtype == object
    assert ledger.ids.tolist() == ids
    assert ledger.locate(ids[1]).tolist() == [1]


def test_membership_is_by_kind_and_value():
    ledger = ledger_of([1, 2])
    assert 1 in ledger
    assert np.int32(2) in ledger
    for other in (3, "1", 1.0, True, None, [1], b"1", float("nan")):
        assert other not in ledger


def test_the_repr_keeps_ids_to_itself():
    assert repr(ledger_of(["secret"])) == "<Ledger of 1 str ids>"
    assert repr(Ledger()) == "<Ledger of 0 ids>"


# where new ids come from


def test_given_ids_come_first_then_the_index_then_numbers():
    X = pd.DataFrame({"a": [1, 2]}, index=["r", "s"])
    ledger = Ledger()
    assert ledger.validate_new(["x", "y"], X, 2) == ["x", "y"]
    assert ledger.validate_new(None, X, 2) == ["r", "s"]
    assert ledger.validate_new(None, X.to_numpy(), 2) == [0, 1]
    assert ledger.validate_new(None, [[1], [2]], 2) == [0, 1]
    assert ledger.validate_new(None, pl.DataFrame({"a": [1, 2]}), 2) == [0, 1]
    assert len(ledger) == 0


def test_the_default_index_is_no_id_but_any_other_is():
    X = pd.DataFrame({"a": range(10)})
    ledger = ledger_of(range(100))
    assert ledger.validate_new(None, X, 10)[0] == 100
    assert ledger.validate_new(None, X.set_index(X.index + 500), 10)[0] == 500
    shuffled = X.set_index(X.index + 500).sample(frac=1.0, random_state=0)
    assert ledger.validate_new(None, shuffled, 10) == shuffled.index.tolist()


def test_rows_of_an_index_that_cannot_be_ids_are_counted():
    frame = pd.DataFrame({"a": [1, 2]}, index=[1.5, 2.5])
    with pytest.warns(UserWarning, match="index of X cannot be ids"):
        assert Ledger().validate_new(None, frame, 2) == [0, 1]


def test_running_numbers_are_never_used_again():
    ledger = Ledger()
    ledger.append(ledger.validate_new(None, None, 3))
    ledger.delete([2, 0])
    assert ledger.validate_new(None, None, 2) == [3, 4]
    ledger.append([50])
    ledger.delete([0, 1])
    assert len(ledger) == 0
    assert ledger.validate_new(None, None, 1) == [51]
    ledger.append(["a"])
    ledger.delete([0])
    assert ledger.next_number == 51
    ledger.append([-10])
    assert ledger.next_number == 51


def test_running_numbers_do_not_mix_with_names():
    with pytest.raises(IdError, match=r"running numbers.*these are int.*are str"):
        ledger_of(["a"]).validate_new(None, None, 1)


class Colour(enum.StrEnum):
    RED = "red"


@pytest.mark.parametrize(
    ("given_ids", "expected"),
    [
        (np.array([3, 4], np.uint8), [3, 4]),
        (np.array(["a", "b"]), ["a", "b"]),
        (np.array([b"a", b"b"]), [b"a", b"b"]),
        (np.array(["a", "b"], object), ["a", "b"]),
        (np.array([1, np.int64(2)], object), [1, 2]),
        ((np.str_("a"), "b"), ["a", "b"]),
        ([np.int64(3), 4], [3, 4]),
        ([np.bytes_(b"a"), b"b"], [b"a", b"b"]),
        (pd.Series([3, 4], index=[9, 8]), [3, 4]),
        (pd.Index(["a", "b"]), ["a", "b"]),
        (pd.array([3, 4], "Int64"), [3, 4]),
        (pl.Series(["a", "b"]), ["a", "b"]),
        (range(5, 7), [5, 6]),
        ((k for k in "ab"), ["a", "b"]),
        ({3: "x", 4: "y"}.keys(), [3, 4]),
        ([Colour.RED, "blue"], ["red", "blue"]),
        (UUIDS[:2], UUIDS[:2]),
    ],
)
def test_ids_come_in_many_containers_and_leave_as_plain_values(given_ids, expected):
    got = Ledger().validate_new(given_ids, None, 2)
    assert got == expected
    assert {type(value) for value in got} <= {int, str, bytes, uuid.UUID}


def test_one_id_need_not_be_in_a_list():
    assert Ledger().validate_new(7, None, 1) == [7]
    assert Ledger().validate_new("ann", None, 1) == ["ann"]
    assert Ledger().validate_new(np.array(7), None, 1) == [7]
    with pytest.raises(IdError, match="length 1"):
        Ledger().validate_new("ann", None, 3)


@pytest.mark.parametrize(
    "bad",
    [
        1.0,
        float("nan"),
        None,
        True,
        np.bool_(False),
        pd.NA,
        pd.NaT,
        pd.Timestamp("2020"),
        (1, 2),
        [1],
        object(),
        np.float64(3),
        np.datetime64("2020"),
        1 << 128,
        -(1 << 128),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("alone", [True, False])
def test_what_cannot_be_an_id_is_refused(bad, alone):
    ids = np.empty(1 if alone else 2, object)
    ids[0] = bad
    if not alone:
        ids[1] = 5
    ledger = ledger_of([1])
    before = state(ledger)
    for use in (
        lambda: ledger.validate_new(ids, None, len(ids)),
        lambda: ledger.append(ids),
        lambda: ledger.locate(ids),
        lambda: ledger.locate(ids, missing="ignore"),
    ):
        with pytest.raises(IdError, match="ids"):
            use()
    assert state(ledger) == before


@pytest.mark.parametrize(
    ("ids", "n", "message"),
    [
        ([1, 2, 3], 2, "length 3.*2 samples"),
        ([], 1, "length 0"),
        ([5, 6, 5, 6], 4, r"2 ids \(5, 6\) are repeated"),
        ([5, 0, 1], 3, r"2 ids \(0, 1\) are already known"),
        ([5, "a"], 2, "mixes int and str"),
        (["a", "b"], 2, "these are str, the ids of this model are int"),
        (np.ones((2, 1), int), 2, "shape"),
        ({5, 6}, 2, "no order"),
        ({5: 1, 6: 1}, 2, "no order"),
        (object(), 2, "sequence"),
    ],
)
def test_new_ids_that_are_wrong_are_refused(ids, n, message):
    ledger = ledger_of(range(5))
    before = state(ledger)
    with pytest.raises(IdError, match=message):
        ledger.validate_new(ids, None, n)
    assert state(ledger) == before


def test_at_most_ten_are_listed_with_their_count():
    ledger = ledger_of(range(100))
    listed = "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ..."
    with pytest.raises(IdError) as known:
        ledger.validate_new(range(50), None, 50)
    assert f"ids: 50 ids ({listed}) are already known" in str(known.value)
    with pytest.raises(IdError) as unknown:
        ledger.locate(range(100, 112))
    assert "ids: 12 ids (100, " in str(unknown.value)
    assert "111" not in str(unknown.value)
    with pytest.raises(IdError, match=r"1 id \(5\) is repeated"):
        ledger.locate([5, 5])


def test_ids_that_leave_in_the_same_step_are_free():
    ledger = ledger_of([1, 2, 3])
    leaving = ledger.locate([2, 3])
    assert ledger.validate_new([3, 4], None, 2, leaving=leaving) == [3, 4]
    with pytest.raises(IdError, match="already known"):
        ledger.validate_new([1], None, 1, leaving=leaving)
    with pytest.raises(IdError, match="these are str"):
        ledger.validate_new(["a"], None, 1, leaving=leaving)
    assert ledger.validate_new(["a"], None, 1, leaving=range(3)) == ["a"]
    assert ledger.ids.tolist() == [1, 2, 3]


# finding and dropping


def test_locate_keeps_the_order_given():
    ledger = ledger_of(list("abcdef"))
    ledger.delete([1])
    assert ledger.locate(["f", "a", "c"]).tolist() == [4, 0, 1]
    assert ledger.locate("c").dtype == np.int64
    assert sorted(ledger.locate({"f", "a"})) == [0, 4]


def test_unknown_ids_raise_or_are_passed_over():
    ledger = ledger_of([1, 2, 3])
    with pytest.raises(IdError, match=r"1 id \(9\) is not known.*missing='ignore'"):
        ledger.locate([3, 9])
    assert ledger.locate([3, 9, 1], missing="ignore").tolist() == [2, 0]
    assert ledger.locate(9, missing="ignore").tolist() == []
    with pytest.raises(ValueError, match="missing='drop'"):
        ledger.locate(9, missing="drop")


@pytest.mark.parametrize("missing", ["raise", "ignore"])
def test_repeated_ids_and_other_kinds_always_raise(missing):
    ledger = ledger_of([1, 2, 3])
    with pytest.raises(IdError, match="repeated"):
        ledger.locate([1, 1], missing=missing)
    with pytest.raises(IdError, match="these are str, the ids of this model are int"):
        ledger.locate(["1"], missing=missing)


def test_an_empty_ledger_knows_nothing():
    with pytest.raises(IdError, match="not known"):
        Ledger().locate("a")
    assert Ledger().locate("a", missing="ignore").tolist() == []


@pytest.mark.parametrize(
    ("order", "error"),
    [([-1], IndexError), ([3], IndexError), ([1, 1], ValueError), ([0.5], TypeError)],
)
def test_wrong_order_indices_change_nothing(order, error):
    ledger = ledger_of([1, 2, 3])
    before = state(ledger)
    with pytest.raises(error, match="order indices"):
        ledger.delete(order)
    assert state(ledger) == before


def test_after_the_last_has_gone_another_kind_may_come():
    ledger = ledger_of([1, 2])
    ledger.delete(np.array([0, 1]))
    ledger.append(["a"])
    assert ledger.ids.tolist() == ["a"]


def test_a_copy_is_independent():
    ledger = ledger_of([1, 2, 3])
    twin = ledger.copy()
    before = state(ledger)
    assert state(twin) == before
    twin.delete([0])
    twin.append([9])
    assert state(ledger) == before


# keeping a ledger


@pytest.mark.parametrize(
    "ids",
    [
        [],
        [3, -1, 2],
        [1 << 63, -(1 << 127), 0],
        ["b", "a\0", "", "\ud800", "ü"],
        [b"b\0", b"", b"\0"],
        UUIDS,
    ],
)
@pytest.mark.parametrize("way", ["arrays", "file", "pickle", "deepcopy"])
def test_a_ledger_comes_back_as_it_was(ids, way, tmp_path):
    ledger = ledger_of([*range(7)])
    ledger.delete(range(7))
    ledger.append(ids)
    if way == "arrays":
        again = Ledger.from_arrays(ledger.to_arrays())
    elif way == "file":
        write_archive(tmp_path / "m", {}, ledger.to_arrays())
        again = Ledger.from_arrays(read_archive(tmp_path / "m")[1])
    elif way == "pickle":
        again = pickle.loads(pickle.dumps(ledger))
    else:
        again = copy.deepcopy(ledger)
    assert again.ids.tolist() == ledger.ids.tolist() == ids
    assert again.ids.dtype == ledger.ids.dtype
    assert again.next_number == ledger.next_number >= 7
    assert again.locate(ids[::-1]).tolist() == list(range(len(ids)))[::-1]


def test_arrays_hold_nothing_of_what_was_deleted():
    ledger = ledger_of(["secret", "open"])
    ledger.delete([0])
    assert b"secret" not in b"".join(array.tobytes() for array in ledger.to_arrays().values())
    assert b"secret" not in pickle.dumps(ledger)


@pytest.mark.parametrize(
    "change",
    [
        {"ledger_kind": np.array("float")},
        {"ledger_kind": np.array("int64")},
        {"ledger_kind": np.array("UUID")},
        {"ledger_kind": np.array("int")},
        {"ledger_ids": np.array([97, 98, 97], np.uint8), "ledger_ends": np.array([1, 2, 3])},
        {"ledger_ids": np.array([97, 255, 99], np.uint8)},
        {"ledger_ids": np.array(["a", "b"])},
        {"ledger_ends": np.array([2, 1, 3])},
        {"ledger_ends": np.array([-1, 2, 3])},
        {"ledger_ends": np.array([1, 2])},
        {"ledger_ends": np.array([1, 2, 9])},
        {"ledger_ends": np.empty(0, np.int64)},
        {"ledger_next": np.array("-1")},
        {"ledger_next": np.array("x")},
        {"ledger_next": np.array(str(1 << 200))},
    ],
    ids=str,
)
def test_arrays_that_are_not_sound_are_refused(change):
    arrays = ledger_of(["a", "b", "c"]).to_arrays()
    assert Ledger.from_arrays(arrays).ids.tolist() == ["a", "b", "c"]
    with pytest.raises(ModelFileError, match="not sound"):
        Ledger.from_arrays(arrays | change)
    for name in arrays:
        with pytest.raises(ModelFileError, match="not sound"):
            Ledger.from_arrays({k: v for k, v in arrays.items() if k != name})


def test_a_running_number_that_was_used_is_refused():
    arrays = ledger_of([3, 4]).to_arrays()
    with pytest.raises(ModelFileError, match="running number"):
        Ledger.from_arrays(arrays | {"ledger_next": np.array("4")})


# the whole, against a plain list


class LedgerMachine(RuleBasedStateMachine):
    """Any sequence of calls leaves the ledger equal to a plain list of ids."""

    def __init__(self):
        super().__init__()
        self.ledger = Ledger()
        self.model: list[int] = []
        self.used = -1

    @rule(ids=st.lists(st.integers(0, 30), max_size=15))
    def append(self, ids):
        if len(set(ids)) < len(ids) or set(ids) & set(self.model):
            with pytest.raises(IdError):
                self.ledger.append(ids)
        else:
            self.ledger.append(self.ledger.validate_new(ids, None, len(ids)))
            self.model += ids
            self.used = max([self.used, *ids])

    @rule(n=st.integers(0, 3))
    def count_on(self, n):
        ids = self.ledger.validate_new(None, None, n)
        assert ids == list(range(self.used + 1, self.used + 1 + n))
        self.ledger.append(ids)
        self.model += ids
        self.used += n

    @rule(data=st.data())
    def forget(self, data):
        ids = data.draw(st.lists(st.sampled_from(self.model), unique=True)) if self.model else []
        order = self.ledger.locate(ids)
        assert order.tolist() == [self.model.index(value) for value in ids]
        self.ledger.delete(order)
        self.model = [value for value in self.model if value not in ids]

    @rule()
    def reload(self):
        self.ledger = pickle.loads(pickle.dumps(self.ledger))

    @rule()
    def duplicate(self):
        old, self.ledger = self.ledger, self.ledger.copy()
        old.append(["x"] if not len(old) else [10**6])

    @invariant()
    def equal_to_the_list(self):
        assert self.ledger.ids.tolist() == self.model
        assert len(self.ledger) == len(self.model)
        assert (np.diff(self.ledger._serials) > 0).all()
        assert self.ledger._serials.tolist() == [self.ledger._serial_of[i] for i in self.model]
        assert all(value in self.ledger for value in self.model)


TestLedgerMachine = LedgerMachine.TestCase
TestLedgerMachine.settings = settings(max_examples=50, stateful_step_count=20, deadline=None)


@given(st.lists(st.text() | st.just("a\0"), unique=True))
def test_any_text_is_an_id(ids):
    ledger = ledger_of(ids)
    assert Ledger.from_arrays(ledger.to_arrays()).ids.tolist() == ids


def test_one_of_ten_thousand_is_found_and_dropped_at_once():
    ledger = ledger_of([f"customer-{k}" for k in range(10_000)])
    times = []
    for k in range(0, 4_000, 100):
        start = time.perf_counter()
        ledger.delete(ledger.locate(f"customer-{k}"))
        times.append(time.perf_counter() - start)
    assert len(ledger) == 9_960
    assert min(times) < 1e-3
