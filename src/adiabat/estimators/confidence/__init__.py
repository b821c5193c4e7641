# SPDX-License-Identifier: BSD-3-Clause
"""How sure a model is: p-values, sets, intervals and probabilities, and what is proven of them."""
