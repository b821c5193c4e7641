# SPDX-License-Identifier: BSD-3-Clause
"""Support vector machines that learn and unlearn, exactly.

After every addition, removal or correction the model is the model that retraining from scratch
would give, and it carries a certificate that says so.
"""

from importlib.metadata import version as _version

from adiabat.certificate import Certificate
from adiabat.engine.report import UpdateReport
from adiabat.errors import (
    AdiabatError,
    IdError,
    IndefiniteKernelError,
    ModelFileError,
    NotOptimalError,
)
from adiabat.estimators.loading import load
from adiabat.estimators.svc import SVC

__version__ = _version("adiabat")

__all__ = [
    "SVC",
    "AdiabatError",
    "Certificate",
    "IdError",
    "IndefiniteKernelError",
    "ModelFileError",
    "NotOptimalError",
    "UpdateReport",
    "__version__",
    "load",
]
