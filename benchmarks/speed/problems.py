# SPDX-License-Identifier: BSD-3-Clause
"""The problems on which updates are compared with refits, and what is aimed at on each.

MNIST and USPS are read from the folder that ADIABAT_DATA names (`mnist.npz`, `usps.npz` with keys
`X_train` and `y_train`), else from ../shared/data beside this repository. The others are made.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
from sklearn.datasets import make_classification

from benchmarks.tables import ROOT

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Data = tuple[FloatArray, IntArray]


class MissingData(Exception):
    """The data of a problem are not on this machine."""


@dataclass(frozen=True)
class Targets:
    """Refit / one operation, refit / a hundred at once (at least); fit / LIBSVM's (at most)."""

    one: float
    hundred: float
    fit: float


@dataclass(frozen=True)
class Problem:
    """Two classes, an RBF kernel and a C."""

    name: str
    title: str
    load: Callable[[], Data]
    gamma: float
    C: float
    targets: Targets


def data_folder() -> Path:
    """Where the data sets are."""
    named = os.environ.get("ADIABAT_DATA")
    return Path(named) if named else ROOT.parent / "shared" / "data"


def _digits(
    file: str, rows: int, scale: float, is_positive: Callable[[IntArray], IntArray]
) -> Data:
    path = data_folder() / file
    if not path.exists():
        raise MissingData(f"{file} is not in {path.parent}; set ADIABAT_DATA to its folder")
    with np.load(path) as archive:
        images, digits = archive["X_train"][:rows], archive["y_train"][:rows].astype(np.int64)
    return images.reshape(len(images), -1) / scale, is_positive(digits).astype(np.int64)


def _eight(digits: IntArray) -> IntArray:
    return digits == 8


def _odd(digits: IntArray) -> IntArray:
    return digits % 2


def noisy(n: int) -> Data:
    """Overlapping classes, some labels wrong: a third or so of the rows carry weight."""
    X, y = make_classification(n, 20, n_informative=8, flip_y=0.05, class_sep=0.8, random_state=0)
    return X, y


PROBLEMS = (
    Problem(
        "mnist-8",
        "MNIST 8 against rest",
        partial(_digits, "mnist.npz", 5000, 255.0, _eight),
        gamma=0.02,
        C=10.0,
        targets=Targets(one=100, hundred=30, fit=1.2),
    ),
    Problem(
        "mnist-parity",
        "MNIST even against odd",
        partial(_digits, "mnist.npz", 5000, 255.0, _odd),
        gamma=0.02,
        C=10.0,
        targets=Targets(one=30, hundred=10, fit=1.2),
    ),
    Problem(  # the kernel of LGKM06: sigma^2 = 0.3 * 256
        "usps-8",
        "USPS 8 against rest",
        partial(_digits, "usps.npz", 7291, 1000.0, _eight),
        gamma=1.0 / (2.0 * 0.3 * 256.0),
        C=100.0,
        targets=Targets(one=50, hundred=15, fit=1.5),
    ),
    *(
        Problem(
            f"noisy-{n}",
            f"noisy synthetic, n = {n:,}",
            partial(noisy, n),
            gamma=1.0 / 40.0,
            C=10.0,
            targets=Targets(one=one, hundred=hundred, fit=1.5),
        )
        for n, one, hundred in ((1000, 10, 2), (5000, 20, 3), (10000, 25, 3))
    ),
)
