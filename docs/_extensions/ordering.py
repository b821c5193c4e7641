# SPDX-License-Identifier: BSD-3-Clause
"""The order of the gallery, as the page of pictures has it."""

import ast
from pathlib import Path

GALLERY = Path(__file__).resolve().parents[2] / "examples" / "gallery" / "__main__.py"


def listed():
    """Names of the examples in the order of the list EXAMPLES."""
    for node in ast.parse(GALLERY.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "EXAMPLES":
            return [f"{name}.py" for name in ast.literal_eval(node.value)]
    raise LookupError(f"{GALLERY} has no list EXAMPLES")


class ByList:
    """Sort key of Sphinx-Gallery."""

    def __init__(self, folder):
        self.names = listed()

    def __call__(self, name):
        """Place of an example in the list."""
        return self.names.index(name)
