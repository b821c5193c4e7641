# SPDX-License-Identifier: BSD-3-Clause
"""What is done to features in front of a model, and undone when rows are forgotten."""
