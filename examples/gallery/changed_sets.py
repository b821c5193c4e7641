# SPDX-License-Identifier: BSD-3-Clause
"""
Who changed sets
================

What one update did to every sample: four wrong labels among 150 flowers are corrected. On the
diagonal are the samples that stayed where they were, off it those that moved, by id.
"""

import copy

from matplotlib import pyplot as plt
from sklearn.datasets import load_iris

from adiabat import SVC
from adiabat.plots import UpdateDisplay

X, y = load_iris(return_X_y=True)
wrong = [60, 84, 110, 140]
noisy = y.copy()
noisy[wrong] = 3 - y[wrong]
model = SVC(C=3.0).fit(X, noisy)
before = copy.deepcopy(model)
model.revise(wrong, y=y[wrong])

figure, ax = plt.subplots(figsize=(5.6, 4.4), layout="constrained")
UpdateDisplay.from_estimator(model, before, ax=ax)
