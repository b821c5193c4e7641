# SPDX-License-Identifier: BSD-3-Clause
"""What takes more than a second says how far it is: the truth, once a second, to who asked."""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from adiabat import SVC, SVDD, SVR, IncrementalPipeline, OneClassSVM, logs
from adiabat.cli import output
from adiabat.logs import Progress, listen

RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 5))
Y = (X[:, 0] + 0.5 * RNG.normal(size=600) > 0).astype(int)
KINDS: dict[str, Callable[..., Any]] = {
    "svc": SVC,
    "svr": SVR,
    "one_class": OneClassSVM,
    "svdd": lambda **more: SVDD(C=0.01, **more),
    "pipeline": lambda **more: IncrementalPipeline(SVC(**more)),
}
COUNTS = re.compile(r"([\d,]+) of ([\d,]+) rows")
CARRY = re.compile(r"([\d,]+) carry weight")


def number(text: str) -> int:
    return int(text.replace(",", ""))


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every line is due at once."""
    monkeypatch.setattr(logs, "INTERVAL", 0.0)


def told(caplog: pytest.LogCaptureFixture, work: Callable[[], Any]) -> list[str]:
    """What the logger is told of some work."""
    caplog.clear()
    with caplog.at_level(logging.INFO, logger="adiabat"):
        work()
    return [one.getMessage() for one in caplog.records if one.name == "adiabat.progress"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("solver", ["exchange", "path"])
def test_what_is_said_of_a_fit_is_true(
    kind: str, solver: str, at_once: None, caplog: pytest.LogCaptureFixture
) -> None:
    model = KINDS[kind](solver=solver)
    lines = told(caplog, lambda: model.fit(X, Y))
    machine = getattr(model, "estimator_", model)
    assert lines and all(line.startswith(f"{type(machine).__name__}: ") for line in lines)
    for line in lines:
        for few, many in COUNTS.findall(line):
            assert 0 < number(few) <= number(many) == 600, line
        assert number(CARRY.findall(line)[0]) <= 600, line
    assert "all 600 rows judged" in lines[-1]
    assert number(CARRY.findall(lines[-1])[0]) == len(machine.support_)
    assert ("breakpoints of the path" in " ".join(lines)) == (solver == "path")


def test_of_many_machines_each_is_counted(at_once: None, caplog: pytest.LogCaptureFixture) -> None:
    classes = np.arange(600) % 4
    lines = told(caplog, lambda: SVC().fit(X, classes))
    places = {found for line in lines for found in re.findall(r"machine (\d) of (\d)", line)}
    assert places == {(str(k), "6") for k in range(1, 7)}
    assert {number(many) for line in lines for _, many in COUNTS.findall(line)} == {300}


def test_updates_and_the_certificate_say_it_as_well(
    at_once: None, caplog: pytest.LogCaptureFixture
) -> None:
    model = SVC().fit(X[:500], Y[:500])
    carrying = model.ids_[model.support_[:20]]
    for work in (
        lambda: model.partial_fit(X[500:], Y[500:]),
        lambda: model.forget(carrying),
        lambda: model.update(X[:5], Y[:5], ids=range(1000, 1005)),
        lambda: model.retune(C=2.0),
        lambda: model.retune(gamma=0.3),
        lambda: model.revise(model.ids_[:9], y=1 - model._model.target[:9]),
    ):
        assert told(caplog, work)
    lines = told(caplog, model.certificate)
    assert lines[0].startswith("SVC: certificate, 585 of 585 rows")
    assert lines[-1] == "SVC: certificate, machine 1 of 1"


@pytest.mark.parametrize("kind", KINDS)
def test_verbose_prints_the_same_lines_and_the_last(
    kind: str, at_once: None, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    quiet = KINDS[kind]()
    assert told(caplog, lambda: quiet.fit(X, Y)) and capsys.readouterr().out == ""
    lines = told(caplog, lambda: KINDS[kind](verbose=True).fit(X, Y))
    printed = capsys.readouterr().out.splitlines()
    assert printed[:-1] == lines
    assert "600 added, 0 removed, 0 revised, 600 samples" in printed[-1]


def test_what_is_fast_says_nothing(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    model = SVC(verbose=True)
    assert told(caplog, lambda: model.fit(X, Y).forget([0]).certificate()) == []
    assert capsys.readouterr().out == ""


def test_nobody_is_told_where_nobody_listens(at_once: None, monkeypatch: Any) -> None:
    monkeypatch.setattr(Progress, "is_due", lambda self: pytest.fail("nobody asked"))
    SVC().fit(X, Y).certificate()
    assert listen("SVC", 0.0, False) is None


def test_a_line_is_due_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [10.0]
    monkeypatch.setattr(logs.time, "perf_counter", lambda: clock[0])
    progress = Progress("SVC", 10.0, False)
    found = []
    for second in (10.5, 11.0, 11.9, 12.0, 15.0, 15.5):
        clock[0] = second
        found.append(progress.is_due())
        if found[-1]:
            progress.tell("goes on")
    assert found == [False, True, False, True, True, False]


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_an_error_or_ctrl_c_in_a_line_ends_the_update(
    error: type[BaseException], at_once: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = SVC().fit(X[:300], Y[:300])
    before = model.decision_function(X).tobytes()

    def fail(*args: Any, **more: Any) -> None:
        raise error

    model.set_params(verbose=True)
    monkeypatch.setattr("builtins.print", fail)
    with pytest.raises(error):
        model.partial_fit(X[300:], Y[300:])
    monkeypatch.undo()
    assert model.decision_function(X).tobytes() == before and len(model.ids_) == 300
    assert model.set_params(verbose=False).partial_fit(X[300:], Y[300:]).certificate().ok


def test_verbose_changes_no_bit(at_once: None) -> None:
    plain, telling = SVC().fit(X, Y), SVC(verbose=True).fit(X, Y)
    assert plain.decision_function(X).tobytes() == telling.decision_function(X).tobytes()


def test_the_spinner_of_the_command_line_says_it(
    at_once: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(output, "err", Console(file=io.StringIO(), force_terminal=True))
    monkeypatch.setattr(output, "announce", said.append)
    log = logging.getLogger("adiabat.progress")
    before = log.level, list(log.handlers)
    with output.working("Learning"):
        SVC().fit(X, Y)
    assert any("rows looked at" in line for line in said)
    assert (log.level, log.handlers) == before
    said.clear()
    SVC().fit(X, Y)
    assert said == []
