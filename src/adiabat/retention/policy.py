# SPDX-License-Identifier: BSD-3-Clause
"""What a policy is, what it is shown, and how one is written to a file.

A policy is asked whenever samples are learned (`fit`, `partial_fit`, `update`), and names the
samples that are to go. They are unlearned exactly, and the call as a whole is all or nothing.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from adiabat.errors import ModelFileError
from adiabat.typing import BoolArray, FloatArray

Timing = Literal["together", "after", "in turn"]

_REGISTERED: dict[str, type[Policy]] = {}


class Held:
    """The samples of a model as a policy sees them, oldest first.

    Attributes
    ----------
    n : int
        Samples held, those just learned included; these are the last `n_new`.
    n_new : int
    ids : ndarray
        Their ids.
    weight : ndarray
        |u|, how much each carries; the largest over the machines of a multi-class model. 0 for
        all but the support vectors.
    slack : ndarray
        g of CP01 (2): how far each is on the right side of its margin, the least over its rows;
        at most 0 for support vectors, infinite for samples without force.
    decided : ndarray of bool
        False for samples in no machine that has support vectors yet, such as those of a classifier
        that has seen one class.
    """

    def __init__(
        self,
        n: int,
        n_new: int,
        ids: Callable[[], npt.NDArray[Any]],
        solution: tuple[FloatArray, FloatArray, BoolArray] | None = None,
    ) -> None:
        self.n = n
        self.n_new = n_new
        self._ids = ids
        self._solution = solution

    @cached_property
    def ids(self) -> npt.NDArray[Any]:
        """Ids, oldest first."""
        return self._ids()

    @property
    def weight(self) -> FloatArray:
        """How much each sample carries."""
        return self._solved()[0]

    @property
    def slack(self) -> FloatArray:
        """How far each sample is on the right side of its margin."""
        return self._solved()[1]

    @property
    def decided(self) -> BoolArray:
        """Whether some machine knows the sample."""
        return self._solved()[2]

    def _solved(self) -> tuple[FloatArray, FloatArray, BoolArray]:
        if self._solution is None:
            raise RuntimeError(
                "weight, slack and decided do not exist before the new samples are learned; a "
                "policy that looks at them needs timing = 'after' or 'in turn'"
            )
        return self._solution


class Policy:
    """Which samples a model lets go. Subclass it and define `leaving`.

    Two policies are equal if they are of one class and their attributes are.

    Examples
    --------
    >>> from adiabat import SVC
    >>> from adiabat.retention import Policy
    >>> class EverySecond(Policy):
    ...     def leaving(self, held):
    ...         return range(1, held.n, 2)
    >>> model = SVC(kernel="linear", retain=EverySecond())
    >>> model.fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]).ids_
    array([0, 2])
    """

    #: ``"after"`` the new samples are learned; ``"in turn"``, which is asked again after each
    #: removal until none goes; or ``"together"``: new and old in one step, decided without a look
    #: at the solution.
    timing: ClassVar[Timing] = "after"

    def leaving(self, held: Held) -> Iterable[int]:
        """Places (0 is the oldest) of the samples that are to go."""
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), tuple(sorted(vars(self).items()))))

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({values})"


P = TypeVar("P", bound=Policy)


def register(policy: type[P]) -> type[P]:
    """Make a class of policies known by its name, so that model files may hold it.

    Its attributes are written, and given to its constructor when the file is read.

    Parameters
    ----------
    policy : type
        A subclass of :class:`Policy`; so that it can be used as a decorator, it is returned.
    """
    if not (isinstance(policy, type) and issubclass(policy, Policy)):
        raise TypeError(f"policy={policy!r} is not a subclass of adiabat.retention.Policy")
    known = _REGISTERED.get(policy.__name__)
    # the same class defined again, as in a notebook or on a reload, takes its own place
    if known is not None and (known.__module__, known.__qualname__) != (
        policy.__module__,
        policy.__qualname__,
    ):
        raise ValueError(
            f"policy={policy!r} has the name of {known!r}, which is registered; rename it"
        )
    _REGISTERED[policy.__name__] = policy
    return policy


def to_dict(policy: Policy) -> dict[str, Any]:
    """A policy as its registered name and its attributes."""
    name = type(policy).__name__
    if _REGISTERED.get(name) is not type(policy):
        raise TypeError(
            f"retain={policy!r} cannot be written to a model file, since its class is not known by "
            "name; put @adiabat.retention.register on it"
        )
    return {"policy": name, "parameters": dict(vars(policy))}


def from_dict(fields: Mapping[str, Any]) -> Policy:
    """Rebuild from what `to_dict` gave; ModelFileError if the name is not registered."""
    name = fields["policy"]
    if name not in _REGISTERED:
        raise ModelFileError(
            f"the model file has the policy retain={name}(...), which is not known here; import "
            f"the module that puts @adiabat.retention.register on the class {name}, and load again"
        )
    return _REGISTERED[name](**fields["parameters"])


def require_size(policy: str, size: Any) -> int:
    """A number of samples, at least 1; ValueError or TypeError else."""
    try:
        number = operator.index(size)
    except TypeError:
        number = 0
    if isinstance(size, (bool, np.bool_)) or number < 1:
        raise ValueError(f"{policy}: size={size!r} must be an integer >= 1, the samples to keep")
    return number
