# SPDX-License-Identifier: BSD-3-Clause
"""Model files: what they declare, and how they are opened."""
