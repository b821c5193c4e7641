# SPDX-License-Identifier: BSD-3-Clause
"""Pictures are drawn off screen, and closed after each test."""

import matplotlib
import pytest

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def closed_figures():
    from matplotlib import pyplot as plt

    yield
    plt.close("all")
