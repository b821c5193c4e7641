# SPDX-License-Identifier: BSD-3-Clause
"""Scalers by least, largest and middle values of each column, that learn and unlearn."""

from __future__ import annotations

import sklearn.preprocessing

from adiabat.preprocessing.unlearning import Unlearning


class MinMaxScaler(Unlearning, sklearn.preprocessing.MinMaxScaler):
    """Every feature between two numbers, with rows that come and go.

    As :class:`sklearn.preprocessing.MinMaxScaler`, and `forget`: when the row with the largest
    value goes, the next largest counts.

    Parameters
    ----------
    feature_range, copy, clip
        As in scikit-learn.

    Attributes
    ----------
    data_min_, data_max_, data_range_, min_, scale_, n_samples_seen_
        As in scikit-learn, of the rows that are there.

    Examples
    --------
    >>> from adiabat import MinMaxScaler
    >>> scaler = MinMaxScaler().fit([[0.0], [2.0], [1e12]])
    >>> scaler.forget([[1e12]]).transform([[1.0]])
    array([[0.5]])
    """

    _plain = sklearn.preprocessing.MinMaxScaler


class RobustScaler(Unlearning, sklearn.preprocessing.RobustScaler):
    """Every feature by its median and quantiles, with rows that come and go.

    As :class:`sklearn.preprocessing.RobustScaler`, and `partial_fit` and `forget`: median and
    quantiles are always those of the rows that are there.

    Parameters
    ----------
    with_centering, with_scaling, quantile_range, copy, unit_variance
        As in scikit-learn.

    Attributes
    ----------
    center_, scale_
        As in scikit-learn, of the rows that are there.

    Examples
    --------
    >>> from adiabat import RobustScaler
    >>> scaler = RobustScaler().fit([[0.0], [1.0], [2.0]]).partial_fit([[50.0]])
    >>> scaler.forget([[0.0]]).center_
    array([2.])
    """

    _plain = sklearn.preprocessing.RobustScaler
