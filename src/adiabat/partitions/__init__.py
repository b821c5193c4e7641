# SPDX-License-Identifier: BSD-3-Clause
"""Exact learning from rows that lie in many places, on any system that can run a function there.

:class:`RowSums` is what a least-squares machine needs of a partition: sums without rounding, which
add up to the same bits in any order. :class:`Working` is a kernel machine that holds the few rows
that matter; all others stay where they are and are only asked whether they still agree.

:mod:`adiabat.dask` is built from these pieces. `docs/clusters.md` has Ray and Spark in a few lines.
"""

from adiabat.partitions.looks import Part
from adiabat.partitions.row_sums import RowSums
from adiabat.partitions.working import Working

__all__ = ["Part", "RowSums", "Working"]
