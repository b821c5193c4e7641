# SPDX-License-Identifier: BSD-3-Clause
"""What a fitted model can say of itself: sets, trajectories, sensitivities, scores."""

from adiabat.analysis.cross_validation import cross_validate, validation_curve
from adiabat.analysis.sensitivity import Agreement, Sensitivity, check_sensitivity, sensitivity
from adiabat.analysis.sets import sets
from adiabat.analysis.trajectory import (
    Trajectory,
    join_trajectories,
    learning_trajectory,
    trajectories,
    unlearning_trajectory,
)

__all__ = [
    "Agreement",
    "Sensitivity",
    "Trajectory",
    "check_sensitivity",
    "cross_validate",
    "join_trajectories",
    "learning_trajectory",
    "sensitivity",
    "sets",
    "trajectories",
    "unlearning_trajectory",
    "validation_curve",
]
