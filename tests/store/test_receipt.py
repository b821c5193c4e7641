# SPDX-License-Identifier: BSD-3-Clause
"""A receipt says what the log bears out, and no more."""

import json

import pytest

import adiabat
from adiabat.store.receipt import receipt_page
from store_tools import people


def test_a_receipt_names_erasure_model_and_exports_but_no_id(store, tmp_path):
    store.export(tmp_path / "before.adiabat")
    store.learn(people(60, 70))
    store.export(tmp_path / "between.joblib", format="sklearn")
    store.forget(["person-00003", "person-00065"], reference="DSR-118")
    store.export(tmp_path / "after.adiabat")
    found = store.receipt("DSR-118")
    (erasure,) = found["erasures"]
    assert [record["learned_in_entry"] for record in erasure["records"]] == [2, 4]
    files = [item["file"] for item in erasure["exports_while_held"]]
    assert files == ["before.adiabat", "between.joblib"]
    assert erasure["certificate"]["n_samples"] == 68 and erasure["kept_from_coming_back"]
    assert "optimum on a dataset of 68 rows that does not contain them" in found["statement"][1]
    assert "Held fixed: gamma" in found["statement"][1]
    text = json.dumps(found) + receipt_page(found)
    assert "person-" not in text and "DSR-118" in text
    assert "backups" in text and "forgotten" not in text


def test_a_commitment_can_be_checked_only_while_the_key_is_there(store):
    from adiabat.store.digests import commitment

    with store._session.reading() as (connection, _, _):
        from adiabat.store import log, records

        record = records.find(connection, ["person-00003"])["person-00003"]
        learned = log.read_commitments(connection, log.read_head(connection))
    assert commitment(record.key, "person-00003") in learned
    store.forget("person-00003", reference="R")
    erased = store.receipt("R")["erasures"][0]["records"][0]["commitment"]
    assert erased == commitment(record.key, "person-00003").hex()
    with open(f"{store.path}/store.sqlite", "rb") as file:
        assert record.key not in file.read()


def test_a_receipt_does_not_claim_absence_once_an_erased_id_is_let_back_in(store):
    store.forget("person-00003", reference="R")
    store.learn(people(3, 4), allow_erased=True)
    found = store.receipt("R")
    assert found["erased_ids_let_back_in_since"] == 1
    said = " ".join(found["statement"])
    assert "was the optimum on a dataset of 59 rows" in said and "let back in" in said
    assert "were deleted" not in said


def test_a_refresh_after_the_erasure_is_said(store):
    store.forget("person-00003", reference="R")
    assert any("held fixed" in limit for limit in store.receipt("R")["limits"])
    store.refresh()
    found = store.receipt("R")
    assert "taken again" in found["statement"][-1]
    assert not any("held fixed" in limit for limit in found["limits"])


def test_an_unknown_reference_lists_the_known(store):
    store.forget("person-00003", reference="DSR-1")
    with pytest.raises(adiabat.StoreError, match=r"'DSR-2' erased nothing.*'DSR-1'"):
        store.receipt("DSR-2")


def test_no_receipt_from_a_store_that_does_not_verify(store):
    import sqlite3

    store.forget("person-00003", reference="R")
    with sqlite3.connect(f"{store.path}/store.sqlite") as connection:
        connection.execute("UPDATE records SET label = '\"no\"'")
    with pytest.raises(adiabat.StoreDamagedError, match="no receipt"):
        adiabat.open_store(store.path).receipt("R")


def test_a_page_escapes_what_it_is_given(store):
    store.forget("person-00003", reference="<script>alert(1)</script>")
    page = receipt_page(store.receipt("<script>alert(1)</script>"))
    assert "<script" not in page and "&lt;script&gt;" in page


def test_a_receipt_is_for_people_who_know_nothing_of_models(store):
    store.forget(["person-00003"], reference="DSR-118")
    found = store.receipt("DSR-118")
    page = receipt_page(found)
    lead = page.index('class="lead"')
    assert lead < page.index("<dl") and lead < page.index("<table")
    assert "At the request filed as DSR-118, 1 record was erased from the model “model”" in page
    assert found["store"] == store.log()[0].hash and found["store"] in page
    assert lead < page.index("This receipt is not signed") < page.index("<dl")
    for check in found["verified"]["checks"]:
        assert f"{check}: holds" in page
    assert "How anybody can verify it" in page
    assert f"adiabat verify FOLDER --retrain --expect-head {found['verified']['head']}" in page
    for term in ("optimum", "residual", "held fixed", "head", "commitment", "signature"):
        assert f"<dt>{term}</dt>" in page
    assert "@media print" in page and "overflow-wrap" in page
