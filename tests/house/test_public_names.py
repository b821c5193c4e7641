# SPDX-License-Identifier: BSD-3-Clause
"""The public surface is `adiabat.__all__`: nothing missing, nothing extra, all of it explained."""

import __future__

import inspect

import pytest

import adiabat


def public_names() -> set[str]:
    """Names a reader of `dir(adiabat)` would take for public."""
    return {
        name
        for name, value in vars(adiabat).items()
        if not name.startswith("_")
        and not inspect.ismodule(value)
        and not isinstance(value, __future__._Feature)
    }


def test_all_lists_the_public_names():
    assert {name for name in adiabat.__all__ if not name.startswith("__")} == public_names()


def test_all_lists_each_name_once():
    assert len(adiabat.__all__) == len(set(adiabat.__all__))


@pytest.mark.parametrize("name", sorted(public_names()))
def test_a_public_name_has_a_docstring(name):
    value = getattr(adiabat, name)
    if callable(value):
        assert (value.__doc__ or "").strip(), f"adiabat.{name} has no docstring"
