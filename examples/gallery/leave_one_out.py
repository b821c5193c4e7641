# SPDX-License-Identifier: BSD-3-Clause
"""
Leaving out each sample
=======================

Left: what the model says of each sample without it, against what it says with it; only samples that
carry weight can matter. Right: the same margins by linear response, which needs no unlearning,
against the exact ones. It is good for most samples, and wrong about a few.
"""

from matplotlib import pyplot as plt
from sklearn.datasets import make_moons

from adiabat import SVC
from adiabat.analysis import check_sensitivity
from adiabat.plots import LeaveOneOutDisplay

X, y = make_moons(100, noise=0.3, random_state=0)
model = SVC(C=10.0, gamma=0.5).fit(X, y)
print(check_sensitivity(model))

figure, (left, right) = plt.subplots(1, 2, figsize=(10.4, 3.8), layout="constrained")
LeaveOneOutDisplay.from_estimator(model, ax=left)
LeaveOneOutDisplay.from_estimator(model, kind="response", ax=right)
