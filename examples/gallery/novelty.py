# SPDX-License-Identifier: BSD-3-Clause
"""
One class
=========

The region of a `OneClassSVM` that leaves out a fifth, before and after a cluster of thirty samples
arrives.
"""

import copy

import numpy as np
from matplotlib import pyplot as plt

from adiabat import OneClassSVM
from adiabat.plots import MarginDisplay

rng = np.random.default_rng(2)
model = OneClassSVM(nu=0.2, gamma=0.5).fit(rng.normal(size=(80, 2)))
before = copy.deepcopy(model)
model.partial_fit(rng.normal(size=(30, 2)) * 0.3 + [3.0, 1.5])

figure, ax = plt.subplots(figsize=(6.8, 4.0), layout="constrained")
MarginDisplay.from_estimator(model, before=before, ax=ax)
