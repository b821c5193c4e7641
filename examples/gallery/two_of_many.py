# SPDX-License-Identifier: BSD-3-Clause
"""
Two features of many
====================

A model with four features and three classes, in the plane of two; the other features are held at
their means. Samples stand where the two features put them, so that one may seem to be on the
wrong side here and be on the right side in the whole space.
"""

from matplotlib import pyplot as plt
from sklearn.datasets import load_iris

from adiabat import SVC
from adiabat.plots import MarginDisplay

iris = load_iris(as_frame=True)
model = SVC(C=3.0).fit(iris.data, iris.target_names[iris.target])

figure, ax = plt.subplots(figsize=(7.0, 4.2), layout="constrained")
features = ("petal length (cm)", "petal width (cm)")
MarginDisplay.from_estimator(model, features=features, resolution=400, ax=ax)
