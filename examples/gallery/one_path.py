# SPDX-License-Identifier: BSD-3-Clause
"""
Many samples in one path
========================

Three samples go and three come in one motion (Karasuyama and Takeuchi): their weights move
together, and the rest of the model answers. The trace is in the report of the update.
"""

from matplotlib import pyplot as plt
from sklearn.datasets import make_moons

from adiabat import SVC
from adiabat.plots import TrajectoryDisplay

X, y = make_moons(60, noise=0.3, random_state=1)
model = SVC(C=10.0, gamma=0.5).fit(X[:57], y[:57])
report = model.update(X[57:], y[57:], remove=model.ids_[model.support_[:3]], trace=True)

figure, axes = plt.subplots(1, 2, figsize=(9.4, 3.6), layout="constrained")
TrajectoryDisplay.from_report(report, ax=axes[0], legend=False)
TrajectoryDisplay.from_report(report, kind="g", ax=axes[1])
