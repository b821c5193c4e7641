# SPDX-License-Identifier: BSD-3-Clause
"""Evidence for `adiabat.dask`: killed workers, little memory, KDD Cup 1999. Run by hand."""
