# SPDX-License-Identifier: BSD-3-Clause
"""Models of rows that are spread over a Dask cluster (``pip install 'adiabat[dask]'``).

`LSSVC` and `LSSVR` add up exact sums of the partitions: the same bits for any number of partitions
and workers, and after a worker was lost. `SVC` and `SVR` leave the rows where they are and hold the
few that matter; their certificate is over all rows. `StandardScaler` adds up sums as the first two
do.
"""

from adiabat.dask.kernel_machines import SVC, SVR
from adiabat.dask.least_squares import LSSVC, LSSVR
from adiabat.dask.scaler import StandardScaler

__all__ = ["LSSVC", "LSSVR", "SVC", "SVR", "StandardScaler"]
