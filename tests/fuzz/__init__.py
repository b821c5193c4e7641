# SPDX-License-Identifier: BSD-3-Clause
"""Inputs that nobody would write, for everything that reads what others wrote."""
