# SPDX-License-Identifier: BSD-3-Clause
"""What callers pass in, checked."""
