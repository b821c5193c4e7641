# SPDX-License-Identifier: BSD-3-Clause
"""A small store to start from."""

import pytest

import adiabat
from store_tools import people


@pytest.fixture
def store(tmp_path):
    made = adiabat.create_store(
        tmp_path / "model",
        "svc",
        id="name",
        label="good",
        categories={"colour": None},
        C=5.0,
        gamma=0.5,
    )
    made.learn(people(0, 60))
    return made
