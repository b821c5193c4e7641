# SPDX-License-Identifier: BSD-3-Clause
"""What the machines on the engine share: samples by id, plans, the transaction."""
