# SPDX-License-Identifier: BSD-3-Clause
"""The desk: stores of one folder behind HTTP, for programs and for people.

One process serves one folder. Needs the ``service`` extra; `adiabat serve` starts it.
"""
