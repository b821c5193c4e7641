# SPDX-License-Identifier: BSD-3-Clause
"""
A regression loses its outliers
===============================

Six readings of a broken sensor are forgotten. Samples on the edge of the tube are MARGIN vectors,
those outside ERROR vectors, those inside carry no weight.
"""

import copy

import numpy as np
from matplotlib import pyplot as plt

from adiabat import SVR
from adiabat.plots import MarginDisplay

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(0.0, 6.0, 60))
y = np.sin(x) + 0.1 * rng.normal(size=60)
broken = np.flatnonzero((x > 3.6) & (x < 4.4))[:6]
y[broken] += 1.2
model = SVR(C=3.0, epsilon=0.15, gamma=1.0).fit(x[:, None], y)
before = copy.deepcopy(model)
model.forget(broken)

figure, ax = plt.subplots(figsize=(7.4, 3.8), layout="constrained")
display = MarginDisplay.from_estimator(model, before=before, ax=ax)
display.ax_.set_xlabel("x")
