# SPDX-License-Identifier: BSD-3-Clause
"""Support vector machines that learn and unlearn, exactly.

After every addition, removal or correction the model is the model that retraining from scratch
would give, and it carries a certificate that says so.
"""

from importlib import import_module as _import_module
from importlib.metadata import version as _version
from importlib.util import find_spec as _find_spec
from typing import TYPE_CHECKING

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

# Imported when first asked for: scikit-learn takes a second, which `adiabat --help` need not.
if TYPE_CHECKING:
    from adiabat.analysis.cross_validation import cross_validate, validation_curve
    from adiabat.certificate import Certificate
    from adiabat.engine.report import UpdateReport
    from adiabat.engine.threads import limit_threads
    from adiabat.estimators.files.loading import load
    from adiabat.estimators.incremental_pipeline import IncrementalPipeline
    from adiabat.estimators.kernel.regularization import RegularizationPath
    from adiabat.estimators.kernel_lssvm import KernelLSSVC, KernelLSSVR
    from adiabat.estimators.lssvc import LSSVC
    from adiabat.estimators.lssvr import LSSVR
    from adiabat.estimators.one_class_svm import OneClassSVM
    from adiabat.estimators.svc import SVC
    from adiabat.estimators.svdd import SVDD
    from adiabat.estimators.svr import SVR
    from adiabat.estimators.what_if.results import Influence, LeaveOneOut, LeaveOut, Preview
    from adiabat.preprocessing.columns import ColumnTransformer
    from adiabat.preprocessing.encoder import OneHotEncoder
    from adiabat.preprocessing.imputer import SimpleImputer
    from adiabat.preprocessing.scaler import StandardScaler
    from adiabat.preprocessing.scalers import MinMaxScaler, RobustScaler
    from adiabat.store import create_store, open_store, restore_store
    from adiabat.versions import show_versions

_HOMES = {
    "Certificate": "certificate",
    "ColumnTransformer": "preprocessing.columns",
    "IncrementalPipeline": "estimators.incremental_pipeline",
    "Influence": "estimators.what_if.results",
    "KernelLSSVC": "estimators.kernel_lssvm",
    "KernelLSSVR": "estimators.kernel_lssvm",
    "LSSVC": "estimators.lssvc",
    "LSSVR": "estimators.lssvr",
    "LeaveOneOut": "estimators.what_if.results",
    "LeaveOut": "estimators.what_if.results",
    "MinMaxScaler": "preprocessing.scalers",
    "OneClassSVM": "estimators.one_class_svm",
    "OneHotEncoder": "preprocessing.encoder",
    "Preview": "estimators.what_if.results",
    "RegularizationPath": "estimators.kernel.regularization",
    "RobustScaler": "preprocessing.scalers",
    "SVC": "estimators.svc",
    "SVDD": "estimators.svdd",
    "SVR": "estimators.svr",
    "SimpleImputer": "preprocessing.imputer",
    "StandardScaler": "preprocessing.scaler",
    "UpdateReport": "engine.report",
    "create_store": "store",
    "cross_validate": "analysis.cross_validation",
    "limit_threads": "engine.threads",
    "load": "estimators.files.loading",
    "open_store": "store",
    "restore_store": "store",
    "show_versions": "versions",
    "validation_curve": "analysis.cross_validation",
}

__version__ = _version("adiabat")

__all__ = [
    "LSSVC",
    "LSSVR",
    "SVC",
    "SVDD",
    "SVR",
    "AdiabatError",
    "Certificate",
    "ColumnTransformer",
    "IdError",
    "IncrementalPipeline",
    "IndefiniteKernelError",
    "Influence",
    "InputFileError",
    "KernelLSSVC",
    "KernelLSSVR",
    "LeaveOneOut",
    "LeaveOut",
    "MinMaxScaler",
    "ModelFileError",
    "NotLearnedError",
    "NotOptimalError",
    "OneClassSVM",
    "OneHotEncoder",
    "Preview",
    "RegularizationPath",
    "RobustScaler",
    "SimpleImputer",
    "StandardScaler",
    "StoreDamagedError",
    "StoreError",
    "StoreLockedError",
    "UpdateReport",
    "__version__",
    "create_store",
    "cross_validate",
    "limit_threads",
    "load",
    "open_store",
    "restore_store",
    "show_versions",
    "validation_curve",
]


if not TYPE_CHECKING:

    def __getattr__(name):
        if name in _HOMES:
            globals()[name] = getattr(_import_module(f"adiabat.{_HOMES[name]}"), name)
            return globals()[name]
        if not name.startswith("_") and _find_spec(f"adiabat.{name}") is not None:
            return _import_module(f"adiabat.{name}")
        raise AttributeError(f"module 'adiabat' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
