# SPDX-License-Identifier: BSD-3-Clause
"""Kernel machines as rows of problem (P); each formulation is one file, registered here."""

from adiabat.formulations.base import Formulation
from adiabat.formulations.c_svc import CSVC
from adiabat.formulations.epsilon_svr import EpsilonSVR
from adiabat.formulations.one_class import OneClass
from adiabat.formulations.svdd import Sphere

#: By the name that a model file knows it by.
FORMULATIONS: dict[str, type[Formulation]] = {
    kind.name: kind for kind in (CSVC, EpsilonSVR, OneClass, Sphere)
}

__all__ = ["CSVC", "FORMULATIONS", "EpsilonSVR", "Formulation", "OneClass", "Sphere"]
