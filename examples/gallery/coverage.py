# SPDX-License-Identifier: BSD-3-Clause
"""
Coverage against level
======================

How many of 1,000 new targets lie in their intervals, at every level, on one training set of 100
samples. The line of the guarantee is an average over training sets; one of them may be above or
below it.
"""

import numpy as np
from matplotlib import pyplot as plt

from adiabat import SVR

rng = np.random.default_rng(1)
X = rng.uniform(-2.0, 2.0, (1_100, 1))
y = np.sin(2.0 * X[:, 0]) + 0.3 * rng.normal(size=1_100)
model = SVR(C=3.0, epsilon=0.1, gamma=1.0).fit(X[:100], y[:100])
levels = np.linspace(0.05, 0.95, 19)

figure, ax = plt.subplots(figsize=(5.6, 4.2), layout="constrained")
ax.plot([0, 1], [0, 1], color="#B8B8B8", linewidth=1.0, label="level")
for method, style in (("full", "-"), ("jackknife+", "--"), ("minmax", ":")):
    _, intervals = model.predict_interval(X[100:], levels, method)
    inside = (intervals[:, 0] <= y[100:, None]) & (y[100:, None] <= intervals[:, 1])
    ax.plot(levels, inside.mean(axis=0), linestyle=style, label=method)
ax.set(xlabel="confidence level", ylabel="part of the new targets inside", aspect="equal")
ax.legend(frameon=False)
