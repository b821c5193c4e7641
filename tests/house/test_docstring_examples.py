# SPDX-License-Identifier: BSD-3-Clause
"""The examples in the docstrings of the installed package print what they say."""

import doctest
import importlib
import pkgutil

import pytest

import adiabat

MODULES = ["adiabat"] + [
    found.name
    for found in pkgutil.walk_packages(adiabat.__path__, prefix="adiabat.")
    if not found.name.startswith("adiabat._core")
]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name):
    result = doctest.testmod(
        importlib.import_module(name),
        optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE,
    )
    assert result.failed == 0
