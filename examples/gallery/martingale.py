# SPDX-License-Identifier: BSD-3-Clause
"""
A martingale through a drift
============================

Labels turn around after sample 150. Each sample is given its exact p-value before it is learned,
and two gamblers bet against exchangeability: at odds of 100 there is an alarm, which on a stream
without drift is false once in a hundred streams.
"""

import numpy as np
from matplotlib import pyplot as plt

from adiabat import SVC
from adiabat.martingales import PowerMartingale, SimpleJumper

rng = np.random.default_rng(0)
X = rng.normal(size=(260, 2))
y = (X[:, 0] + 0.5 * rng.normal(size=260) > 0.0).astype(int)
y[150:] = 1 - y[150:]
model = SVC(C=1.0, gamma=0.5).fit(X[:20], y[:20])
bets = {"simple jumper": SimpleJumper(), "power": PowerMartingale()}
capital = {name: [] for name in bets}
for k in range(20, 260):
    p = model.predict_p(X[k : k + 1], smoothing=True, random_state=k)[0, y[k]]
    for name, martingale in bets.items():
        martingale.update(p)
        capital[name].append(martingale.log_value / np.log(10.0))
    model.partial_fit(X[k : k + 1], y[k : k + 1])

figure, ax = plt.subplots(figsize=(7.4, 3.6), layout="constrained")
for (name, values), style in zip(capital.items(), ("-", "--"), strict=True):
    ax.plot(range(20, 260), values, linestyle=style, label=name)
ax.axhline(2.0, color="#222222", linewidth=0.8, linestyle=":", label="odds of 100")
ax.axvline(150, color="#B8B8B8", linewidth=1.0)
ax.set(xlabel="sample", ylabel="log10 of the capital")
ax.legend(frameon=False)
