# SPDX-License-Identifier: BSD-3-Clause
"""Model files of earlier versions open, decide as they did, and go on learning."""

import json
from pathlib import Path

import numpy as np
import pytest

import adiabat
from golden import make

MODELS = Path(__file__).parent / "models"
DECISIONS = json.loads((MODELS / "decisions.json").read_text())


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
    assert (tmp_path / "again.adiabat").read_bytes() == (MODELS / f"{name}.adiabat").read_bytes()
