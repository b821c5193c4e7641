# SPDX-License-Identifier: BSD-3-Clause
"""How often conformal sets hold, over thousands of draws: are the guarantees kept?

    python -m benchmarks.coverage [draws] [method ...]

Each draw has its own training samples and one new sample. Coverage must not be below the guarantee
by more than chance (the 0.1 % point of the binomial), p-values with smoothing must be uniform
(Kolmogorov and Smirnov), and the martingales of exchangeable streams may reach odds of 20 once in
20 streams.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.stats import binom, kstest

from adiabat import SVC, SVDD, SVR, KernelLSSVR, OneClassSVM
from adiabat.martingales import PowerMartingale, SimpleJumper

DRAWS, SAMPLES, LEVEL, STREAM = 2_000, 24, 0.8, 40
Rng = np.random.Generator


def _labelled(rng: Rng, n: int) -> tuple[Any, Any]:
    """Two classes that overlap, on a grid, so that there are ties; both among the first n - 1."""
    while True:
        X = rng.integers(-3, 4, (n, 2)) / 2.0
        y = (X[:, 0] + rng.standard_normal(n) > 0.0).astype(int)
        if 0 < y[:-1].sum() < n - 1:
            return X, y


def _measured(rng: Rng, n: int) -> tuple[Any, Any]:
    X = rng.standard_normal((n, 2))
    return X, np.sin(2.0 * X[:, 0]) + 0.3 * rng.standard_normal(n)


def _set_holds(method: str) -> Callable[[Rng], tuple[float, bool]]:
    def draw(rng: Rng) -> tuple[float, bool]:
        X, y = _labelled(rng, SAMPLES + 1)
        model = SVC(gamma=0.5).fit(X[:-1], y[:-1])
        found = model.predict_set(X[-1:], LEVEL, method=method)
        return found.guarantee.coverage[0], bool(found[1][0, y[-1], 0])

    return draw


def _interval_holds(kind: Any, method: str) -> Callable[[Rng], tuple[float, bool]]:
    def draw(rng: Rng) -> tuple[float, bool]:
        X, y = _measured(rng, SAMPLES + 1)
        model = kind(gamma=0.5).fit(X[:-1], y[:-1])
        found = model.predict_interval(X[-1:], LEVEL, method=method)
        low, high = found[1][0, :, 0]
        return found.guarantee.coverage[0], bool(low <= y[-1] <= high)

    return draw


def _p_value(kind: str) -> Callable[[Rng], float]:
    def draw(rng: Rng) -> float:
        X, y = _labelled(rng, SAMPLES + 1)
        seed = int(rng.integers(1 << 31))
        if kind == "SVC":
            model = SVC(gamma=0.5).fit(X[:-1], y[:-1])
            return float(model.predict_p(X[-1:], smoothing=True, random_state=seed)[0, y[-1]])
        detector = OneClassSVM(nu=0.2, gamma=0.5) if kind == "OneClassSVM" else SVDD(gamma=0.5)
        return float(detector.fit(X[:-1]).predict_p(X[-1:], smoothing=True, random_state=seed)[0])

    return draw


def _largest_odds(rng: Rng) -> tuple[float, float]:
    """The largest value of both martingales on one stream of exchangeable samples."""
    X, y = _labelled(rng, STREAM)
    model = SVC(gamma=0.5).fit(X[:6], y[:6]) if 0 < y[:6].sum() < 6 else None
    power, jumper = PowerMartingale(), SimpleJumper()
    for k in range(6, STREAM if model is not None else 6):
        place = int(np.flatnonzero(model.classes_ == y[k])[0])
        seed = int(rng.integers(1 << 31))
        p = model.predict_p(X[k : k + 1], smoothing=True, random_state=seed)[0, place]
        power.update(float(p))
        jumper.update(float(p))
        model.partial_fit(X[k : k + 1], y[k : k + 1])
    return power.largest, jumper.largest


COVERED: dict[str, Callable[[Rng], tuple[float, bool]]] = {
    "SVC full": _set_holds("full"),
    "SVC cross": _set_holds("cross"),
    "SVR full": _interval_holds(SVR, "full"),
    "SVR jackknife+": _interval_holds(SVR, "jackknife+"),
    "SVR cv+": _interval_holds(SVR, "cv+"),
    "SVR minmax": _interval_holds(SVR, "minmax"),
    "KernelLSSVR full": _interval_holds(KernelLSSVR, "full"),
    "KernelLSSVR jackknife+": _interval_holds(KernelLSSVR, "jackknife+"),
}
UNIFORM = {f"p-values of {kind}": _p_value(kind) for kind in ("SVC", "OneClassSVM", "SVDD")}
STREAMS = "martingales"


def coverage(name: str, draws: int, seed: int = 0) -> tuple[float, float, float]:
    """The part covered, the part guaranteed, and the least that chance allows."""
    rng = np.random.default_rng(seed)
    found = [COVERED[name](rng) for _ in range(draws)]
    promised = found[0][0]
    least = float(binom.ppf(1e-3, draws, max(0.0, promised))) / draws
    return float(np.mean([held for _, held in found])), promised, least


def uniformity(name: str, draws: int, seed: int = 0) -> float:
    """The probability of a larger distance from uniform."""
    rng = np.random.default_rng(seed)
    return float(kstest([UNIFORM[name](rng) for _ in range(draws)], "uniform").pvalue)


def alarms(draws: int, odds: float = 20.0, seed: int = 0) -> tuple[float, float, float]:
    """The part of streams on which either martingale reaches some odds, and the most by chance."""
    rng = np.random.default_rng(seed)
    found = np.array([_largest_odds(rng) for _ in range(draws)])
    most = float(binom.ppf(1.0 - 1e-3, draws, 1.0 / odds)) / draws
    share = (found >= odds).mean(axis=0)
    return float(share[0]), float(share[1]), most


def main(arguments: list[str]) -> bool:
    """Run all, or those named, and say whether all is kept."""
    draws = int(arguments[0]) if arguments else DRAWS
    names = arguments[1:] or [*COVERED, *UNIFORM, STREAMS]
    kept = True
    for name in names:
        started = time.process_time()
        if name in COVERED:
            part, promised, least = coverage(name, draws)
            good, said = part >= least, f"covered {part:.4f}, guaranteed {promised:.4f}"
        elif name in UNIFORM:
            p = uniformity(name, draws)
            good, said = p > 1e-3, f"uniform: KS p = {p:.3f}"
        else:
            power, jumper, most = alarms(draws)
            good = max(power, jumper) <= most
            said = f"odds of 20 on {power:.4f} (power) and {jumper:.4f} (jumper) of the streams"
        kept &= good
        spent = time.process_time() - started
        print(f"{name:24} {said}{'' if good else '  NOT KEPT'}  ({spent:.0f} s)", flush=True)
    print(f"{draws} draws of {SAMPLES} samples at level {LEVEL:g}")
    return kept


if __name__ == "__main__":
    sys.exit(not main(sys.argv[1:]))
