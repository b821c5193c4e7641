# SPDX-License-Identifier: BSD-3-Clause
"""
Probabilities from leave-one-out
================================

The curve from decision values to probabilities, by Platt's sigmoid and by Venn-Abers. Samples stand
at 0 or 1 where the model without them decides; both curves are fitted on these, and forget a sample
with the model.
"""

from matplotlib import pyplot as plt
from sklearn.datasets import make_moons

from adiabat import SVC
from adiabat.plots import CalibrationDisplay

X, y = make_moons(120, noise=0.4, random_state=0)
figure, (left, right) = plt.subplots(1, 2, figsize=(9.4, 3.4), layout="constrained", sharey=True)
for ax, kind in ((left, "sigmoid"), (right, "venn_abers")):
    model = SVC(C=1.0, gamma=0.5, calibration=kind).fit(X, y)
    CalibrationDisplay.from_estimator(model, ax=ax, legend=ax is right)
    ax.set_title(kind)
right.set_ylabel("")
