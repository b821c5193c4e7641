# SPDX-License-Identifier: BSD-3-Clause
"""Rows for the tests of stores and of the command line."""

import numpy as np
import pandas as pd


def people(start, stop, seed=0):
    """Rows with ids, two numbers, a category and a label that follows from them."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "name": [f"person-{i:05d}" for i in range(2000)],
            "income": rng.normal(size=2000),
            "age": rng.normal(size=2000),
            "colour": rng.choice(["red", "green", "blue"], size=2000),
        }
    )
    score = frame.income + 0.5 * frame.age + (frame.colour == "red")
    frame["good"] = np.where(score + 0.3 * rng.normal(size=2000) > 0.3, "yes", "no")
    return frame[start:stop].reset_index(drop=True)
