# SPDX-License-Identifier: BSD-3-Clause
"""Evidence for `docs/clusters.md`: lost workers, little memory, rows that stay away, backends."""
