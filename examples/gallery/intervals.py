# SPDX-License-Identifier: BSD-3-Clause
"""
Intervals of a regression
=========================

Ends of the intervals in which nine of ten new targets lie, by three methods. The full conformal one
tries every target that a row could have; jackknife+ takes the models without each sample; split
fits on one half of the samples and ranks the residuals of the other.
"""

import numpy as np
from matplotlib import pyplot as plt

from adiabat import SVR
from adiabat.plots import IntervalDisplay

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(0.0, 6.0, 60))
y = np.sin(x) + 0.25 * rng.normal(size=60)
model = SVR(C=3.0, epsilon=0.15, gamma=1.0).fit(x[:, None], y)

figure, ax = plt.subplots(figsize=(8.4, 3.8), layout="constrained")
display = IntervalDisplay.from_estimator(model, ax=ax, legend=False, n_points=120)
half = SVR(C=3.0, epsilon=0.15, gamma=1.0).fit(x[::2, None], y[::2])
reach = np.sort(np.abs(y[1::2] - half.predict(x[1::2, None])))[int(np.ceil(0.9 * 31)) - 1]
middle = half.predict(display.x[:, None])
for k, end in enumerate((middle - reach, middle + reach)):
    ax.plot(display.x, end, color="#009E73", linestyle=":", label=None if k else "split")
ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, fontsize="small")
