# SPDX-License-Identifier: BSD-3-Clause
"""Plain reference implementations that share no code with the package.

``batch_qp``     the optimum, by an interior point solver and a polish;
``path_numpy``   the papers [CP01], [KT09], one breakpoint after the other;
``problems``     degenerate families, streams of operations, kernels by definition.
"""
