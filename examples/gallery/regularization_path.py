# SPDX-License-Identifier: BSD-3-Clause
"""
Every C at once
===============

The weights of all samples as parts of C, from C = 0.01 to 100, in one run along the path. A sample
at 1 is an ERROR vector, one at 0 carries no weight; ticks on the upper edge are breakpoints.
"""

from matplotlib import pyplot as plt
from sklearn.datasets import make_moons

from adiabat import SVC
from adiabat.plots import RegularizationPathDisplay

X, y = make_moons(40, noise=0.3, random_state=4)
model = SVC(gamma=0.5).fit(X, y)

figure, ax = plt.subplots(figsize=(7.4, 3.8), layout="constrained")
RegularizationPathDisplay.from_estimator(model, 0.01, 100.0, ax=ax)
