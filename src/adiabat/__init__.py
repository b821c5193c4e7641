# SPDX-License-Identifier: BSD-3-Clause
"""Support vector machines that learn and unlearn, exactly.

After every addition, removal or correction the model is the model that retraining from scratch
would give, and it carries a certificate that says so.
"""

from importlib.metadata import version as _version

from adiabat.analysis.cross_validation import cross_validate, validation_curve
from adiabat.certificate import Certificate
from adiabat.engine.report import UpdateReport
from adiabat.errors import (
    AdiabatError,
    IdError,
    IndefiniteKernelError,
    InputFileError,
    ModelFileError,
    NotLearnedError,
    NotOptimalError,
    StoreDamagedError,
    StoreError,
    StoreLockedError,
)
from adiabat.estimators.influence import Influence
from adiabat.estimators.kernel_lssvm import KernelLSSVC, KernelLSSVR
from adiabat.estimators.leave_one_out import LeaveOneOut
from adiabat.estimators.leave_out import LeaveOut
from adiabat.estimators.loading import load
from adiabat.estimators.lssvc import LSSVC
from adiabat.estimators.lssvr import LSSVR
from adiabat.estimators.one_class_svm import OneClassSVM
from adiabat.estimators.pipeline import IncrementalPipeline
from adiabat.estimators.preview import Preview
from adiabat.estimators.regularization import RegularizationPath
from adiabat.estimators.svc import SVC
from adiabat.estimators.svdd import SVDD
from adiabat.estimators.svr import SVR
from adiabat.preprocessing.scaler import StandardScaler
from adiabat.store import create_store, open_store

__version__ = _version("adiabat")

__all__ = [
    "LSSVC",
    "LSSVR",
    "SVC",
    "SVDD",
    "SVR",
    "AdiabatError",
    "Certificate",
    "IdError",
    "IncrementalPipeline",
    "IndefiniteKernelError",
    "Influence",
    "InputFileError",
    "KernelLSSVC",
    "KernelLSSVR",
    "LeaveOneOut",
    "LeaveOut",
    "ModelFileError",
    "NotLearnedError",
    "NotOptimalError",
    "OneClassSVM",
    "Preview",
    "RegularizationPath",
    "StandardScaler",
    "StoreDamagedError",
    "StoreError",
    "StoreLockedError",
    "UpdateReport",
    "__version__",
    "create_store",
    "cross_validate",
    "load",
    "open_store",
    "validation_curve",
]
