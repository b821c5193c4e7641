# SPDX-License-Identifier: BSD-3-Clause
"""Loggers say how much and how long, and nothing of the data."""

import logging

import pytest

from adiabat import SVC, create_store


def test_updates_and_operations_are_logged_without_data(
    caplog: pytest.LogCaptureFixture, tmp_path
) -> None:
    rows, labels, ids = [[17.25], [1.0], [3.0]], ["secret", "secret", "open"], ["ann", "bob", "eve"]
    with caplog.at_level(logging.INFO, logger="adiabat"):
        SVC().fit(rows, labels, ids=ids).forget("bob")
        store = create_store(tmp_path / "s", label="y", kernel="linear")
        store.learn(rows, labels, ids=ids)
        store.forget("bob")
    names = [record.name for record in caplog.records]
    assert {"adiabat.estimators", "adiabat.store"} == set(names)
    assert "SVC: 0 added, 1 removed, 0 revised, 2 samples" in caplog.text
    assert "forget: 0 added, 1 removed, 0 revised, log entry 3" in caplog.text
    for datum in (*ids, "secret", "17.25"):
        assert datum not in caplog.text


def test_they_are_silent_by_default(capfd: pytest.CaptureFixture[str]) -> None:
    SVC().fit([[0.0], [1.0]], [0, 1])
    assert capfd.readouterr().err == ""
