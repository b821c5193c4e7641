# SPDX-License-Identifier: BSD-3-Clause
"""The predictor of a fitted estimator: arrays of its own, and nothing of what can change.

Nothing that is done to the estimator later reaches a predictor, so any number of threads may ask it
at any time. It decides as the estimator did, by the same code, and can do nothing else.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from adiabat.estimators.confidence.calibration import curves_of
from adiabat.estimators.incremental_pipeline import IncrementalPipeline
from adiabat.estimators.kernel_machine import KernelMachine
from adiabat.estimators.predictors.answers import kernel_predictor
from adiabat.estimators.predictors.decider import Decider

# What an estimator's shell has that deciding does not need, and that changes or holds rows.
_LEFT_BEHIND = ("_raw", "last_update_", "_hashes", "estimator_")


def make_predictor(model: Any) -> Any:
    """The predictor of a fitted estimator: `predict`, and what it has of the following.

    `decision_function`; `predict_proba`, whose curves are fitted now, to exact leave-one-out.
    """
    if isinstance(model, KernelMachine):
        return _of_machine(model)
    # Not copy.copy, which goes by the state that is pickled and so solves the machine anew.
    shell = object.__new__(type(model))
    kept = {name: held for name, held in vars(model).items() if name not in _LEFT_BEHIND}
    shell.__dict__.update(kept)
    if isinstance(model, IncrementalPipeline):
        shell.scaler_ = copy.deepcopy(model.scaler_)
        return _of_machine(model.estimator_, shell._scaled)
    # Machines of least squares are never written to: the shell keeps the one of now.
    return shell


def _of_machine(machine: KernelMachine, scale: Callable[[Any], Any] | None = None) -> Any:
    held = machine._model
    in_pairs = getattr(machine, "decision_function_shape", "") == "ovo"
    return kernel_predictor(Decider.of(held, curves_of(machine)), held.target, in_pairs, scale)
