# SPDX-License-Identifier: BSD-3-Clause
"""The exceptions of Adiabat.

One family: ``except AdiabatError`` catches all of them, and each is also the built-in exception
that a caller who does not know the library would expect. Invariant: an exception of this family
leaves the object that raised it as it was before the call.
"""

from __future__ import annotations

from typing import Any, Final

__all__ = [
    "AdiabatError",
    "IdError",
    "IndefiniteKernelError",
    "InputFileError",
    "ModelFileError",
    "NotLearnedError",
    "NotOptimalError",
    "StoreDamagedError",
    "StoreError",
    "StoreLockedError",
]

#: Ids or values that a message names at most.
LISTED: Final = 10


class AdiabatError(Exception):
    """Base class of every error that Adiabat raises on purpose.

    Catch it to handle any of them; catch a subclass to handle one. The message names the argument,
    the value and the remedy.

    Examples
    --------
    >>> from adiabat import SVC, AdiabatError
    >>> model = SVC(kernel="linear").fit([[0.0], [1.0]], [0, 1])
    >>> try:
    ...     model.forget([7])
    ... except AdiabatError as error:
    ...     print(type(error).__name__)
    IdError
    """


class NotOptimalError(AdiabatError, RuntimeError):
    """An update could not be brought to the optimum within its tolerance.

    Raised when the independent check of the optimality conditions still fails after refinement and
    every solver was tried. The model has been put back to its state before the update, so it is
    still the exact model of the samples it knew.

    What to do: look at `certificate` for how far off the result was. Scale the features, lower
    ``C``, or use a kernel of smaller range (``poly`` of high degree is the usual culprit); raise
    ``max_iter`` if the message says that it was reached.

    Parameters
    ----------
    message : str
        What failed and the remedy.
    certificate : object, optional
        The certificate of the rejected result, or None if there was none to certify.
    sample : object, optional
        Id of the sample that is worst, or None.

    Attributes
    ----------
    certificate : object or None
        As given.
    sample : object or None
        As given.
    """

    certificate: Any
    sample: Any

    def __init__(self, message: str = "", certificate: Any = None, sample: Any = None) -> None:
        super().__init__(message)
        self.certificate = certificate
        self.sample = sample

    def __reduce__(self) -> tuple[Any, ...]:
        # BaseException would rebuild from `args` alone and lose the certificate.
        return type(self), (*self.args[:1], self.certificate, self.sample)


class IdError(AdiabatError, ValueError):
    """Ids were repeated, already known, unknown, or of a kind that cannot be an id.

    Raised before anything is learned or forgotten, so the model is unchanged. The message lists up
    to ten of the ids at fault and how many there are.

    What to do: pass unique ids that are all ``int``, all ``str``, all ``bytes`` or all ``UUID``.
    Use ``revise`` for samples that are known already, and ``missing="ignore"`` to pass over ids
    that are not.

    Examples
    --------
    >>> from adiabat import SVC, IdError
    >>> model = SVC(kernel="linear").fit([[0.0], [1.0]], [0, 1])
    >>> try:
    ...     model.forget([7])
    ... except IdError as error:
    ...     print(type(error).__name__)
    IdError
    """


class NotLearnedError(AdiabatError, ValueError):
    """Rows to unlearn cannot be among those that were learned.

    Raised by the models that hold no rows (`LSSVC`, `LSSVR`) when labels or counts of the rows are
    unknown to them, or when what would be left could not come from any rows. The model is
    unchanged. Not every mistake can be noticed: without the rows, only contradictions can. With
    ``remember="hashes"`` every row that was not learned is.

    What to do: pass the rows as they were learned, with the same targets and weights.

    Examples
    --------
    >>> from adiabat import LSSVC, NotLearnedError
    >>> model = LSSVC(remember="hashes").fit([[0.0], [1.0], [2.0]], [0, 1, 1])
    >>> try:
    ...     model.forget([[5.0]], [1])
    ... except NotLearnedError as error:
    ...     print(type(error).__name__)
    NotLearnedError
    """


class IndefiniteKernelError(AdiabatError, ValueError):
    """The kernel is not positive semidefinite.

    Raised when a kernel is known to be indefinite, or when its matrix turns out to be. Such a
    problem is not convex: it has no unique optimum that a model could follow.

    What to do: use ``kernel="rbf"`` or ``kernel="poly"`` with ``coef0 >= 0``; check that a callable
    is symmetric, and that a precomputed matrix holds similarities, not distances.

    Examples
    --------
    >>> from adiabat import SVC, IndefiniteKernelError
    >>> try:
    ...     SVC(kernel="precomputed").fit([[0.0, 1.0], [1.0, 0.0]], [0, 1])
    ... except IndefiniteKernelError as error:
    ...     print(type(error).__name__)
    IndefiniteKernelError
    """


class ModelFileError(AdiabatError, ValueError):
    """A model file is damaged, was altered, or is not a model file.

    Raised on loading, before any of the content is used. Nothing in a model file is ever executed.

    What to do: restore the file from a copy or save the model again. If the message says that the
    format is newer, upgrade Adiabat.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import adiabat
    >>> from adiabat import ModelFileError
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.adiabat"
    >>> _ = path.write_bytes(b"not a model")
    >>> try:
    ...     adiabat.load(path)
    ... except ModelFileError as error:
    ...     print(type(error).__name__)
    ModelFileError
    """


class InputFileError(AdiabatError, ValueError):
    """A file of rows cannot be taken as it is.

    Raised before anything is learned. The message names the file, the line or column at fault and
    the remedy.
    """


class StoreError(AdiabatError, RuntimeError):
    """A store cannot do what was asked: it is not there, is newer, or could not be written.

    The store is as it was after its last acknowledged operation.

    Examples
    --------
    >>> import adiabat
    >>> from adiabat import StoreError
    >>> try:
    ...     adiabat.open_store("no such folder")
    ... except StoreError as error:
    ...     print(type(error).__name__)
    StoreError
    """


class StoreDamagedError(StoreError):
    """What a store holds is not what its log vouches for.

    Raised on opening or by ``verify``, before the content is used. Nothing in a store is executed.

    What to do: restore the folder from a copy.
    """


class StoreLockedError(StoreError, TimeoutError):
    """Another process is changing the store, and did not finish within the time allowed.

    The message says who holds the lock. What to do: wait for it, or raise ``wait``.
    """


class StoreUpgradeWarning(UserWarning):
    """A store of an older release is brought up to date; the message says how."""
