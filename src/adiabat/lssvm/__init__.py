# SPDX-License-Identifier: BSD-3-Clause
"""The least-squares machines of LKW19: closed forms, kept exact while rows come and go."""
