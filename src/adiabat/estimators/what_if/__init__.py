# SPDX-License-Identifier: BSD-3-Clause
"""What-if questions: models with other samples, computed without changing the fitted one."""
