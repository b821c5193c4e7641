# SPDX-License-Identifier: BSD-3-Clause
"""The kept inputs, and some new ones: what every run of the suite tries."""

import json
import os
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from fuzz.inputs import MODELS as DRAWN
from fuzz.models import MODELS
from fuzz.run import CORPUS, SECONDS, Hang, alarmed
from fuzz.targets import Bench

KEPT = sorted(CORPUS.glob("*.json"))

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and limits on memory")


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    return Bench(str(tmp_path_factory.mktemp("bench")))


def test_every_kind_of_model_is_drawn():
    assert sorted(DRAWN) == sorted(MODELS)


@pytest.mark.parametrize("name", MODELS)
def test_a_file_without_edits_is_loaded_and_used(bench, name):
    drawn = {"model": name, "sparse": False, "edits": [], "bytes": []}
    assert bench.model(drawn) == "loaded"


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_an_input_that_once_broke_a_promise(bench, path):
    target, drawn = json.loads(path.read_text("utf-8"))
    before = signal.signal(signal.SIGPROF, alarmed)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert getattr(bench, target)(drawn)
    except Hang:
        pytest.fail(f"took longer than {SECONDS} s")
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@pytest.mark.rotates(2)
@pytest.mark.parametrize(
    ("target", "count"), [("model", 60), ("csr", 60), ("table", 25), ("store", 15)]
)
def test_a_short_run(target, count):
    """Other inputs every day; `.ci/run` tries the same ever."""
    seed = "0" if os.environ.get("HYPOTHESIS_PROFILE") == "house" else os.environ["QUICK"]
    command = [sys.executable, "-m", "fuzz.run", "--target", target, "--inputs", str(count)]
    command += ["--seed", seed]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
