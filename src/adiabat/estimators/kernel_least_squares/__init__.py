# SPDX-License-Identifier: BSD-3-Clause
"""The samples of a least squares machine with a kernel."""
