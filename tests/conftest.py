# SPDX-License-Identifier: BSD-3-Clause
"""Settings that hold for every test."""

import os

from hypothesis import HealthCheck, settings

# No test opens a window.
os.environ.setdefault("MPLBACKEND", "Agg")

# Examples are drawn the same way on every run, and a slow machine is no failure.
# HYPOTHESIS_PROFILE=explore draws fresh ones, and more of them.
settings.register_profile(
    "house", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "explore", settings.get_profile("house"), derandomize=False, max_examples=1000, print_blob=True
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "house"))
