# SPDX-License-Identifier: BSD-3-Clause
"""
Unlearning, and what would have been
====================================

The margin of six samples against their own weight, each unlearned from the whole model (figure 5 of
Cauwenberghs and Poggio). The curve ends at the exact leave-one-out margin; the dotted line is what
linear response predicts from its first segment. The model itself is not changed.
"""

from matplotlib import pyplot as plt
from sklearn.datasets import make_moons

from adiabat import SVC
from adiabat.plots import TrajectoryDisplay

X, y = make_moons(100, noise=0.3, random_state=0)
model = SVC(C=10.0, gamma=0.5).fit(X, y)

figure, ax = plt.subplots(figsize=(7.4, 4.2), layout="constrained")
TrajectoryDisplay.from_estimator(model, ids=[2, 6, 18, 24, 25, 53], ax=ax)
