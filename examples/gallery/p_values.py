# SPDX-License-Identifier: BSD-3-Clause
"""
P-values of digits
==================

Full conformal p-values of twelve handwritten digits that the model has not seen, one column for
each label that they could have, dark where no training digit would be as strange. The true label
is framed.
"""

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.patches import Rectangle
from sklearn.datasets import load_digits

from adiabat import SVC

X, y = load_digits(return_X_y=True)
order = np.random.default_rng(3).permutation(len(X))
train, new = order[:300], order[300:312]
model = SVC(C=0.3, gamma=0.001).fit(X[train], y[train])
p = np.asarray(model.predict_p(X[new]))

figure, (left, right) = plt.subplots(
    1, 2, figsize=(6.6, 6.0), layout="constrained", width_ratios=[1, 10]
)
left.imshow(np.vstack(X[new].reshape(-1, 8, 8)), cmap="gray_r")
left.set_axis_off()
shown = right.imshow(np.log10(p), cmap="viridis", aspect="auto", vmin=np.log10(1 / 301), vmax=0.0)
for row, label in enumerate(y[new]):
    right.add_patch(Rectangle((label - 0.5, row - 0.5), 1, 1, fill=False, edgecolor="red", lw=2))
right.set_xticks(range(10))
right.set_yticks([])
right.set_xlabel("label")
figure.colorbar(shown, label="log10 of the p-value")
