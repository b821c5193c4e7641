# SPDX-License-Identifier: BSD-3-Clause
"""Plain reference implementations that share no code with the package.

``batch_qp``     the optimum, by an interior point solver and a polish;
``exact_qp``     the optimum to hundreds of digits, however badly it is scaled;
``exact_models`` the same of every kind of machine, and of least squares;
``path_numpy``   the papers [CP01], [KT09], one breakpoint after the other;
``problems``     degenerate and hostile families, streams of operations, kernels by definition.
"""
