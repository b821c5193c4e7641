# SPDX-License-Identifier: BSD-3-Clause
"""What least squares machines remember of their rows, and what follows from it."""
