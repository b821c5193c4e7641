# SPDX-License-Identifier: BSD-3-Clause
"""What a fitted model can say of itself: sets, trajectories, sensitivities."""

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
    "join_trajectories",
    "learning_trajectory",
    "sensitivity",
    "sets",
    "trajectories",
    "unlearning_trajectory",
]
