# SPDX-License-Identifier: BSD-3-Clause
"""Pictures of models and of what updates do to them, as scikit-learn's `*Display` classes.

They need matplotlib: ``pip install 'adiabat[plots]'``. Sets and classes are told apart by marker
and filling, curves by line style, so that nothing rests on colour alone.
"""

from adiabat.plots.calibration import CalibrationDisplay
from adiabat.plots.intervals import IntervalDisplay
from adiabat.plots.leave_one_out import LeaveOneOutDisplay
from adiabat.plots.margin import MarginDisplay
from adiabat.plots.regularization_path import RegularizationPathDisplay
from adiabat.plots.trajectory import TrajectoryDisplay
from adiabat.plots.update import UpdateDisplay

__all__ = [
    "CalibrationDisplay",
    "IntervalDisplay",
    "LeaveOneOutDisplay",
    "MarginDisplay",
    "RegularizationPathDisplay",
    "TrajectoryDisplay",
    "UpdateDisplay",
]
