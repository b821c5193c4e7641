# SPDX-License-Identifier: BSD-3-Clause
"""Learning problems as rows of problem (P), one file each."""
