# SPDX-License-Identifier: BSD-3-Clause
"""Faults, each in one place of the package, and the tests that must notice them."""
