# SPDX-License-Identifier: BSD-3-Clause
"""What a fitted estimator decides with, apart from the estimator: arrays that nothing changes."""
