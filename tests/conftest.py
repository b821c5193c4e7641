# SPDX-License-Identifier: BSD-3-Clause
"""Settings that hold for every test."""

import os
import time
import zlib

import hypothesis.core
from hypothesis import HealthCheck, settings

from rotation import name_of, whose_turn_it_is

# No test opens a window.
os.environ.setdefault("MPLBACKEND", "Agg")

# A slow machine is no failure. Hypothesis draws other examples each day, and the same all day long;
# HYPOTHESIS_PROFILE=house draws the same ever, explore fresh ones, and more of them.
settings.register_profile(
    "house", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "today", settings.get_profile("house"), derandomize=False, database=None, print_blob=True
)
settings.register_profile(
    "explore", settings.get_profile("house"), derandomize=False, max_examples=1000, print_blob=True
)
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "today")
settings.load_profile(PROFILE)


# Tests that take seconds whichever of their cases is run; `make quick` leaves them out.
SLOW = {
    "tests/cli/test_tables.py::test_a_walk_with_categories_and_gaps_from_init_to_receipt",
    "tests/cli/test_walk_through.py::test_the_walk_through_prints_what_the_readme_says",
    "tests/confidence/test_martingales.py::test_p_values_and_martingales_over_some_draws",
    "tests/core/test_factor.py::test_a_grown_factor_equals_a_rebuilt_one",
    "tests/core/test_factor.py::test_the_number_of_threads_changes_no_bit",
    "tests/core/test_gram.py::TestGramStory::runTest",
    "tests/engine/test_run.py::test_rows_that_all_but_tie_are_wrong_by_no_more_than_a_rounding",
    "tests/engine/test_solver.py::test_an_interrupt_at_any_line_is_all_or_nothing",
    "tests/estimators/test_all_or_nothing.py::test_an_interrupt_at_any_line_leaves_before_or_after",
    "tests/estimators/test_badly_scaled.py::test_b_does_not_depend_on_a_far_row",
    "tests/estimators/test_least_squares.py::test_whatever_hypothesis_finds",
    "tests/estimators/test_least_squares_scaled.py::test_any_history_gives_the_bits_of_a_refit",
    "tests/estimators/test_leave_one_out.py::test_any_backend_gives_the_same",
    "tests/estimators/test_ledger.py::TestLedgerMachine::runTest",
    "tests/estimators/test_ledger.py::test_any_text_is_an_id",
    "tests/estimators/test_pipeline.py::test_random_operations_end_at_the_refitted_pipeline",
    "tests/estimators/test_pipeline_safety.py::"
    "test_an_interrupt_at_any_line_leaves_before_or_after",
    "tests/estimators/test_regularization.py::"
    "test_where_no_row_is_on_the_margin_the_intercept_is_that_of_fit",
    "tests/estimators/test_workers.py::test_answers_do_not_depend_on_the_backend",
    "tests/fuzz/test_fuzz.py::test_a_short_run",
    "tests/hostile/test_model_files.py::test_a_bomb_is_refused_before_it_costs_anything",
    "tests/hostile/test_stores.py::test_a_killed_export_leaves_nothing_once_the_store_is_opened",
    "tests/hostile/test_stores.py::test_threads_see_one_committed_state_or_another",
    "tests/hostile/test_stores.py::test_threads_that_predict_see_only_what_was_committed",
    "tests/house/test_public_names.py::test_packages_are_there_without_being_imported",
    "tests/laws/test_drift.py::test_a_window_of_low_rank_does_not_drift",
    "tests/laws/test_drift.py::test_the_path_does_not_drift",
    "tests/laws/test_drift.py::test_thousands_of_updates_leave_no_drift",
    "tests/laws/test_machines.py::test_life_of_one_class",
    "tests/laws/test_machines.py::test_life_of_regression",
    "tests/laws/test_machines.py::test_life_of_sphere",
    "tests/laws/test_machines.py::test_life_of_three_classes",
    "tests/laws/test_machines.py::test_life_of_two_classes",
    "tests/laws/test_soak.py::test_a_short_soak",
    "tests/lssvm/test_machine.py::test_a_hundred_thousand_additions_and_removals_at_condition_1e8",
    "tests/preprocessing/test_scaler.py::test_an_interrupt_at_any_line_leaves_before_or_after",
    "tests/preprocessing/test_scaler.py::"
    "test_thousands_of_operations_leave_the_scaler_of_the_rows_that_remain",
    "tests/retention/test_window_stream.py::test_the_certificate_holds_along_a_window",
    "tests/store/test_erasure.py::test_a_thousand_erased_rows_leave_no_byte",
    "tests/store/test_evidence.py::test_a_second_writer_is_told_who_holds_the_lock",
    "tests/store/test_evidence.py::test_a_short_soak",
    "tests/store/test_evidence.py::test_writers_at_once_wait_for_each_other",
    "tests/streams/test_examples.py::test_a_window_that_follows_drift",
    "tests/streams/test_river.py::test_rivers_own_checks",
    "tests/test_archive.py::test_every_changed_byte_is_detected_or_harmless",
    "tests/test_archive.py::test_every_truncation_is_detected",
    "tests/test_kernel_accuracy.py::test_a_product_is_right_for_the_size_of_its_rows",
    "tests/walks/test_engineer.py::test_nightly_files_thirty_erasures_backup_and_restore",
    "docs/streams.md::streams.md",
}


def pytest_addoption(parser):
    parser.addoption(
        "--quick",
        action="store_true",
        help="One case of every fourth test, others every day (QUICK=n chooses), and no slow ones.",
    )
    parser.addoption(
        "--full",
        action="store_true",
        help="Every case of the products that rotate; else a part of them, another every day.",
    )


def _turn():
    """Which case of each test is run today, and which examples are drawn."""
    return int(os.environ.get("QUICK", time.time() // 86400))


def pytest_configure(config):
    os.environ.setdefault("QUICK", str(_turn()))  # for processes that start after midnight
    if PROFILE == "today" and config.getoption("--hypothesis-seed") is None:
        hypothesis.core.global_force_seed = _turn()


def pytest_report_header(config):
    """What to say to have the same cases and examples on another day."""
    return f"QUICK={_turn()}"


def pytest_collection_modifyitems(config, items):
    for item in items:
        if name_of(item) in SLOW:
            item.add_marker("slow")
    if config.getoption("--quick"):
        kept = _one_of_each(items)
    elif config.getoption("--full") or any("[" in argument for argument in config.args):
        return
    else:
        kept = whose_turn_it_is(items, _turn())
    config.hook.pytest_deselected(items=[item for item in items if id(item) not in kept])
    items[:] = [item for item in items if id(item) in kept]


def _one_of_each(items):
    """One case of every fourth test that is not slow; the others have their turn tomorrow."""
    cases, kept = {}, set()
    for item in items:
        if not item.get_closest_marker("slow"):
            cases.setdefault(name_of(item), []).append(item)
    for name, found in cases.items():
        turn, rest = divmod(_turn() + zlib.crc32(name.encode()), 4)
        if rest == 0 or len(cases) == 1:
            kept.add(id(found[turn % len(found)]))
    return kept
