# SPDX-License-Identifier: BSD-3-Clause
"""Mutants keep up with the code: each applies to one place, and its tests are there."""

import re

import pytest

from mutants import run

MUTANTS = [mutant for area in run.areas() for mutant in run.read(area)]


@pytest.mark.parametrize("area", run.areas())
def test_every_mutant_changes_one_place(area):
    for mutant in run.read(area):
        text = (run.SOURCE / mutant.file).read_text("utf-8")
        assert mutant.applied(text) != text, mutant.name


def test_the_tests_of_every_mutant_are_there():
    for mutant in MUTANTS:
        assert mutant.tests, mutant.name
        for test in mutant.tests:
            path, _, name = test.partition("::")
            assert (run.ROOT / path).exists(), f"{mutant.name}: {path}"
            if name:
                text = (run.ROOT / path).read_text("utf-8")
                function = re.escape(name.partition("[")[0])
                assert re.search(rf"def {function}\b", text), f"{mutant.name}: {test}"


def test_names_are_given_once():
    names = [mutant.name for mutant in MUTANTS]
    assert sorted(set(names)) == sorted(names)


def test_a_mutant_that_does_not_apply_is_noticed():
    mutant = MUTANTS[0]
    with pytest.raises(AssertionError, match="0 places"):
        mutant.applied("")
