# SPDX-License-Identifier: BSD-3-Clause
"""Samples, machines and the solvers that carry them from one optimum to the next."""
