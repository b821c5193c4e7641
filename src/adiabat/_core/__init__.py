# SPDX-License-Identifier: BSD-3-Clause
"""The compiled core: K, t, lo, hi and sets, nothing else."""
