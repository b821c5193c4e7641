# SPDX-License-Identifier: BSD-3-Clause
"""Model files of earlier versions open, decide as they did, and go on learning."""

import json
from pathlib import Path

import numpy as np
import pytest

import adiabat
from adiabat.archive import read_archive
from golden import make

MODELS = Path(__file__).parent / "models"
# Parameters that came after the files were written, and what they are in them.
ADDED = {"calibration": None, "verbose": False, "memory_limit": None}
DECISIONS = json.loads((MODELS / "decisions.json").read_text())


def same_but_for_what_is_new(then, now):
    if not isinstance(then, dict):
        return then == now
    new = {key: value for key, value in now.items() if key not in then}
    return new.items() <= ADDED.items() and all(
        key in now and same_but_for_what_is_new(value, now[key]) for key, value in then.items()
    )


def test_there_is_a_file_of_every_estimator():
    kinds = {type(adiabat.load(path)).__name__ for path in MODELS.glob("*.adiabat")}
    assert kinds == {
        "SVC", "SVR", "OneClassSVM", "SVDD", "LSSVC", "LSSVR", "KernelLSSVC", "KernelLSSVR",
        "IncrementalPipeline",
    }  # fmt: skip


@pytest.mark.parametrize("name", DECISIONS)
def test_a_golden_file_decides_as_it_did(name, tmp_path):
    model = adiabat.load(MODELS / f"{name}.adiabat")
    expected = np.array(DECISIONS[name])
    np.testing.assert_allclose(make.decide(model, name), expected, rtol=1e-9, atol=1e-9)
    assert model.certificate().ok
    model.save(tmp_path / "again.adiabat")
    then = read_archive(MODELS / f"{name}.adiabat")
    now = read_archive(tmp_path / "again.adiabat")
    assert same_but_for_what_is_new(then[0], now[0])
    assert then[1].keys() == now[1].keys()
    for key, array in then[1].items():  # a gap is counted as the value NaN
        assert np.array_equal(array, now[1][key], equal_nan=array.dtype.kind == "f"), key
