# SPDX-License-Identifier: BSD-3-Clause
"""``adiabat`` on the command line: one command a file, all of them thin over `adiabat.store`."""
