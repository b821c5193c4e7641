# SPDX-License-Identifier: BSD-3-Clause
"""Measurements: speed against refitting with other libraries, and evidence for numerical choices."""
