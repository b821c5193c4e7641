# SPDX-License-Identifier: BSD-3-Clause
"""What is to be kept between updates of a least-squares machine? Four answers, measured.

    python -m benchmarks.numerics.ls_drift [--quick]

A stream of single rows in and out at a given condition of rho I + Phi'Phi; then the distance of w
from the closed form on the rows that remain (in longer arithmetic), relative to w.

  C        LKW19 (5), (6) as printed, in float64
  factor   a Cholesky factor, updated and downdated by rotations, and the right-hand side
  gram     Phi'Phi and Phi'y in float64, solved at the end
  twofold  the same to twice the precision, with P and a corrected w: what LSSVC keeps
"""

from __future__ import annotations

import argparse

import numpy as np
import scipy.linalg

from adiabat import LSSVR
from benchmarks.papers.lkw19_formulas import PaperModel
from benchmarks.tables import Table, console, write_csv, write_markdown


def rows_of_condition(rng: np.random.Generator, n: int, width: int, condition: float) -> np.ndarray:
    basis, _ = np.linalg.qr(rng.normal(size=(width, width)))
    spread = np.logspace(0.0, -0.5 * np.log10(condition), width)
    return rng.normal(size=(n, width)) * spread @ basis


def longer(phi: np.ndarray, y: np.ndarray, rho: float) -> np.ndarray:
    """w in extended precision: a QR factor of the rows, in np.longdouble."""
    J = phi.shape[1]
    A = np.vstack([phi, np.sqrt(np.longdouble(rho)) * np.eye(J)]).astype(np.longdouble)
    b = np.concatenate([y, np.zeros(J)]).astype(np.longdouble)
    for k in range(J):  # Householder
        v = A[k:, k].copy()
        v[0] += np.copysign(np.sqrt(v @ v), v[0])
        v /= np.sqrt(v @ v)
        A[k:, k:] -= 2 * np.outer(v, v @ A[k:, k:])
        b[k:] -= 2 * v * (v @ b[k:])
    w = np.zeros(J, dtype=np.longdouble)
    for k in range(J - 1, -1, -1):
        w[k] = (b[k] - A[k, k + 1 : J] @ w[k + 1 :]) / A[k, k]
    return w.astype(np.float64)


def rotate(R: np.ndarray, x: np.ndarray, sign: float) -> bool:
    """R'R + sign x x', R upper; False if that is not positive definite."""
    x = x.copy()
    for k in range(len(x)):
        square = R[k, k] ** 2 + sign * x[k] ** 2
        if square <= 0.0:
            return False
        r = np.sqrt(square)
        c, s = r / R[k, k], x[k] / R[k, k]
        R[k, k] = r
        R[k, k + 1 :] = (R[k, k + 1 :] + sign * s * x[k + 1 :]) / c
        x[k + 1 :] = c * x[k + 1 :] - s * R[k, k + 1 :]
    return True


def drift(condition: float, steps: int, width: int = 12, pool: int = 400) -> dict[str, float]:
    """Distance of each way's w from the truth after `steps` additions and removals."""
    rng = np.random.default_rng(19)
    phi = rows_of_condition(rng, pool, width, condition)
    y = phi @ rng.normal(size=width) + 0.1 * rng.normal(size=pool)
    rho = 200.0 / condition
    held = np.arange(pool) < 200
    paper = PaperModel.of(phi[held], y[held], rho)
    gram, right = phi[held].T @ phi[held], phi[held].T @ y[held]
    factor = scipy.linalg.cholesky(gram + rho * np.eye(width))
    factor_right = right.copy()
    sound = True
    ours = LSSVR(rho=rho, fit_intercept=False).fit(phi[held], y[held])
    for _ in range(steps):
        coming = held.sum() < 150 or (held.sum() < 250 and rng.random() < 0.5)
        row = int(rng.choice(np.flatnonzero(~held if coming else held)))
        sign, x = (1.0, phi[row]) if coming else (-1.0, phi[row])
        held[row] = coming
        paper.change(x[None], y[[row]], np.array([sign]))
        gram += sign * np.outer(x, x)
        right += sign * y[row] * x
        factor_right += sign * y[row] * x
        sound = sound and rotate(factor, x, sign)
        if coming:
            ours.partial_fit(x[None], y[[row]])
        else:
            ours.forget(x[None], y[[row]])
    truth = longer(phi[held], y[held], rho)
    size = float(np.linalg.norm(truth))
    by_factor = scipy.linalg.cho_solve((factor, False), factor_right)
    by_gram = np.linalg.solve(gram + rho * np.eye(width), right)
    found = {"C": paper.w, "factor": by_factor, "gram": by_gram, "twofold": ours.coef_}
    if not sound:
        found["factor"] = np.full(width, np.nan)
    return {name: float(np.linalg.norm(w - truth)) / size for name, w in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    table = Table(
        "Distance of w from the closed form, relative",
        ("condition", "updates", "C (LKW19)", "factor", "gram", "twofold (LSSVR)"),
    )
    records: list[dict[str, object]] = []
    for condition in (1e4, 1e8, 1e12):
        for steps in (1_000, 10_000) if quick else (1_000, 10_000, 100_000):
            found = drift(condition, steps)
            table.add(f"{condition:.0e}", f"{steps:,}", *(f"{v:.0e}" for v in found.values()))
            records.append({"condition": condition, "updates": steps, **found})
    table.show(console())
    write_csv("ls_drift", records)
    write_markdown("ls_drift", "What to keep between updates", "", [table])


if __name__ == "__main__":
    main()
