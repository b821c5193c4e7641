# SPDX-License-Identifier: BSD-3-Clause
"""Evidence for numerical choices, as told in docs/numerics.md."""
