# SPDX-License-Identifier: BSD-3-Clause
"""In which set each sample is: MARGIN, ERROR or RESERVE (CP01 figure 1)."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from adiabat.estimators.kernel.partition import sample_sets
from adiabat.estimators.kernel_machine import KernelMachine


def sets(model: Any, machine: Any = None) -> npt.NDArray[Any]:
    """In which set each sample of a model is, in the order of `ids_`.

    Parameters
    ----------
    model : fitted estimator
        An estimator of this package that keeps its samples.
    machine : pair of labels, optional
        Which pair of classes of a model of several. By default all: a sample is then ERROR if it
        is in any machine, else MARGIN if it is in any.

    Returns
    -------
    ndarray of str
        ``"MARGIN"`` on the margin, ``"ERROR"`` at the bound C, ``"RESERVE"`` without weight.

    Examples
    --------
    >>> from adiabat import SVC
    >>> from adiabat.analysis import sets
    >>> model = SVC(kernel="linear", C=10.0).fit([[-3.0], [-1.0], [1.0], [4.0]], [0, 0, 1, 1])
    >>> sets(model).tolist()
    ['RESERVE', 'MARGIN', 'MARGIN', 'RESERVE']
    """
    held = held_model(model)
    if machine is None:
        return sample_sets(held)
    _, one = held.machines[find_machine(model, machine)]
    return sample_sets(held, [one])


def held_model(model: Any) -> Any:
    """What an estimator holds: its samples and machines; an error that says what is wrong."""
    if not isinstance(model, KernelMachine):
        raise TypeError(
            f"model={type(model).__name__} has no margin, error and reserve vectors; pass a fitted "
            "adiabat.SVC, SVR, OneClassSVM or SVDD"
        )
    check_is_fitted(model)
    return model._model


def find_machine(model: Any, machine: Any = None) -> int:
    """Which machine is meant: by its pair of labels, or the only one there is."""
    held = held_model(model)
    names = [held.formulation.name_machine(key) for key, _ in held.machines]
    if not names:
        only = model.classes_.tolist()[0]
        raise ValueError(f"the model has one class, {only!r}: nothing is decided yet")
    if machine is None:
        if len(names) > 1:
            raise ValueError(
                f"the model has {len(names)} machines, one for each pair of classes; say which: "
                f"machine={names[0]}"
            )
        return 0
    wanted = set(machine) if isinstance(machine, (tuple, list)) else {machine}
    for place, name in enumerate(names):
        if name and set(name) == wanted:
            return place
    raise ValueError(f"machine={machine!r} is not there; there are {names}")
