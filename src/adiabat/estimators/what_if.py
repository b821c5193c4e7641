# SPDX-License-Identifier: BSD-3-Clause
"""Questions to a fitted model about models that it is not; none of them changes it."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

from adiabat.estimators.influence import Influence, Loss, influence
from adiabat.estimators.leave_out import LeaveOut, leave_out
from adiabat.estimators.preview import Preview, preview


class WhatIf:
    """What would be, had some samples not been learned, or others, too."""

    def leave_out(self, groups: Any, n_jobs: int | None = None) -> LeaveOut:
        """What the model would say of each group of samples, had it never learned that group.

        Each group leaves the full model in one step, exactly and without a refit; gamma and class
        weights stay as they are. The model is not changed.

        Parameters
        ----------
        groups : array of shape (n_samples,), or list of lists of ids
            A label for each sample in the order of `ids_`, or the ids of each group; samples that
            are in no list stay in every model.
        n_jobs : int or None, default=None
            Groups left out at a time, as in joblib; threads, unless
            :func:`joblib.parallel_config` says otherwise.

        Returns
        -------
        LeaveOut

        Examples
        --------
        >>> from adiabat import SVC
        >>> model = SVC(kernel="linear", C=10.0)
        >>> _ = model.fit([[0.0], [1.0], [1.2], [2.0], [3.0]], [0, 0, 1, 1, 1])
        >>> model.leave_out([[1, 2], [4]]).correct
        array([ True,  True,  True])
        """
        self._require_askable()
        return leave_out(self, groups, n_jobs)

    def preview(
        self,
        remove: Any = (),
        X: Any = None,
        y: Any = None,
        *,
        at: Any = None,
        sample_weight: Any = None,
    ) -> Preview:
        """How decision values would change if samples were unlearned and others learned.

        The model is not changed; `update` with the same arguments makes it so. Policies of
        `retain` are not applied.

        Parameters
        ----------
        remove : id or sequence of ids, default=()
            Samples to unlearn.
        X, y, sample_weight : optional
            Samples to learn, as in `partial_fit`.
        at : {array, data frame, sparse} of shape (n_points, n_features), optional
            Where to decide; by default at the samples that stay. With ``kernel="precomputed"``,
            kernel values against the samples of `ids_`, then against the rows of X.

        Returns
        -------
        Preview

        Examples
        --------
        >>> from adiabat import SVC
        >>> model = SVC(kernel="linear", C=10.0).fit([[0.0], [1.0], [2.0]], [0, 0, 1])
        >>> model.preview(remove=[1], at=[[1.0]]).change.round(6)
        array([1.])
        """
        self._require_askable()
        return preview(self, remove, X, y, sample_weight, at)

    def influence(
        self, X_val: Any, y_val: Any, loss: str | Loss | None = None, n_jobs: int | None = None
    ) -> Influence:
        """What each sample is worth: the change of a validation loss when it goes, exactly.

        Samples without weight have none, unless the sum of weights or b hangs on them. The model
        is not changed.

        Parameters
        ----------
        X_val, y_val
            Validation points and their targets; +1 inside and -1 outside for models of one class.
        loss : str or callable, optional
            The mean of ``"hinge"`` (default) or ``"zero_one"`` for labels and one class, of
            ``"squared"`` (default) or ``"absolute"`` for numbers; or a function of (y_val,
            decision values) that gives a number. Of more than two classes, the hinge is that of
            the row's own decision value less the largest other.
        n_jobs : int or None, default=None
            Samples removed at a time, as in joblib; threads, unless
            :func:`joblib.parallel_config` says otherwise.

        Returns
        -------
        Influence

        Examples
        --------
        >>> from adiabat import SVR
        >>> model = SVR(kernel="linear", C=10.0, epsilon=0.0)
        >>> _ = model.fit([[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 2.0, 9.0])
        >>> found = model.influence([[4.0]], [4.0], loss="absolute")
        >>> int(found.ids[found.change.argmin()])
        3
        """
        self._require_askable()
        return influence(self, X_val, y_val, loss, n_jobs)

    def _require_askable(self) -> None:
        check_is_fitted(self)
        self._require_unchanged()

    def _require_unchanged(self) -> None:
        raise NotImplementedError
