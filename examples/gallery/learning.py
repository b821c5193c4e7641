# SPDX-License-Identifier: BSD-3-Clause
"""
Learning, sample by sample
==========================

Weights along the path while samples are learned one after the other (figure 3 of Cauwenberghs and
Poggio). A new sample's weight grows until it reaches the margin or the bound C = 10; the others
answer, and each corner is a sample that changes sets.
"""

from matplotlib import pyplot as plt
from sklearn.datasets import make_moons

from adiabat import SVC
from adiabat.analysis import learning_trajectory
from adiabat.plots import TrajectoryDisplay

X, y = make_moons(30, noise=0.3, random_state=3)
path = learning_trajectory(SVC(C=10.0, gamma=0.5), X, y, one_at_a_time=True)
heaviest = path.ids[path.alpha[-1] >= 10.0][:5]

figure, ax = plt.subplots(figsize=(7.4, 3.8), layout="constrained")
TrajectoryDisplay.from_trajectory(path, ids=heaviest, ax=ax)
