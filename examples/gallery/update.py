# SPDX-License-Identifier: BSD-3-Clause
"""
An update
=========

Five samples are forgotten and four arrive, in one step. Diamonds hold the margin, squares are at
the bound C, small circles carry no weight; the dotted line is the boundary before.
"""

import copy

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import make_moons

from adiabat import SVC
from adiabat.plots import MarginDisplay

X, y = make_moons(80, noise=0.22, random_state=7)
model = SVC(C=5.0, gamma=1.0).fit(X, y)
before = copy.deepcopy(model)
X_new = np.array([[1.9, 0.9], [2.2, 1.0], [1.7, 1.2], [2.0, 1.3]])
model.update(X_new, [0, 0, 0, 0], remove=model.ids_[model.support_[:5]])

limits = [(-1.6, 2.9), (-1.1, 1.6)]
figure, (left, right) = plt.subplots(1, 2, figsize=(9.4, 3.6), layout="constrained", sharey=True)
MarginDisplay.from_estimator(before, limits=limits, ax=left, legend=False)
MarginDisplay.from_estimator(model, before=before, limits=limits, ax=right)
left.set(title="before")
right.set(title="after", ylabel="")
