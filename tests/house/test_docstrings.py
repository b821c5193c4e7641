# SPDX-License-Identifier: BSD-3-Clause
"""Docstrings of public names as numpydoc wants them, but for what is left out on purpose."""

import inspect

import pytest
from numpydoc.validate import validate

import adiabat

#: Rules of numpydoc that are not followed, with the reason.
LEFT_OUT = {
    "SA01": "pages of the reference link to each other",
    "EX01": "every public name has an example, its methods need not",
    "ES01": "one sentence may be enough",
    "SS05": "it takes any first word that ends in s for a verb",
    "PR03": "what belongs together is described together",
    "PR04": "several parameters may share a line: as in `fit`",
    "RT03": "self needs no description",
}
#: Where nothing is listed the signature says it: predict(X).
OF_LISTS = ("PR01", "RT01")


def documented(name):
    """The dotted names of a public name and of its own methods."""
    thing = getattr(adiabat, name)
    yield f"adiabat.{name}"
    for member, value in vars(thing).items() if inspect.isclass(thing) else ():
        if not member.startswith("_") and inspect.isfunction(value):
            yield f"adiabat.{name}.{member}"


@pytest.mark.parametrize("name", [n for n in adiabat.__all__ if callable(getattr(adiabat, n))])
def test_docstrings_follow_numpydoc(name):
    found = []
    for dotted in documented(name):
        result = validate(dotted)
        listed = "Parameters\n" in (result["docstring"] or "")
        found += [
            (dotted, code, said)
            for code, said in result["errors"]
            if code not in LEFT_OUT and (listed or code not in OF_LISTS)
        ]
    assert not found
