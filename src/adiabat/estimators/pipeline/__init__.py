# SPDX-License-Identifier: BSD-3-Clause
"""A scaler and a machine that change together."""
