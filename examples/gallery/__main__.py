# SPDX-License-Identifier: BSD-3-Clause
"""The gallery: every example of this folder is run, its figure saved, and the page written.

`make gallery` runs it. An example is a script that leaves its figure in `figure`; its docstring is
the title and the text of its section.
"""

from __future__ import annotations

import ast
import runpy
import sys
from pathlib import Path

HERE = Path(__file__).parent
DOCS = HERE.parents[1] / "docs"
# The order of the page.
EXAMPLES = [
    "update",
    "changed_sets",
    "unlearning",
    "leave_one_out",
    "learning",
    "one_path",
    "regularization_path",
    "regression",
    "novelty",
    "two_of_many",
]
HEAD = """\
# Gallery

Pictures of models and of what updates do to them. Each is a `*Display` of `adiabat.plots` with
`from_estimator` and `plot(ax=...)`, as scikit-learn has them; they need matplotlib
(`pip install 'adiabat[plots]'`). Sets and classes differ by shape and filling of the marker, curves
by line style, so that they can be read in black and white. `make gallery` makes this page.
"""


def section(name: str) -> str:
    """The section of one example: what it shows, the picture, the code."""
    source = (HERE / f"{name}.py").read_text(encoding="utf-8")
    head, text = (ast.get_docstring(ast.parse(source)) or "").split("\n\n", 1)
    title = head.splitlines()[0]  # the next line underlines it
    code = source.split('"""', 2)[2].strip()
    return f"## {title}\n\n{text}\n\n![{title}](gallery/{name}.png)\n\n```python\n{code}\n```\n"


def page() -> str:
    """The whole page."""
    return "\n".join([HEAD, *(section(name) for name in EXAMPLES)])


def draw(name: str) -> None:
    """Run one example and save its figure."""
    from matplotlib import pyplot as plt

    found = runpy.run_path(str(HERE / f"{name}.py"))
    found["figure"].savefig(DOCS / "gallery" / f"{name}.png", dpi=80, metadata={"Software": None})
    plt.close("all")


def main(names: list[str]) -> None:
    """Draw the examples named, or all, and write the page."""
    import matplotlib

    matplotlib.use("Agg")
    (DOCS / "gallery").mkdir(exist_ok=True)
    for name in names or EXAMPLES:
        draw(name)
    (DOCS / "gallery.md").write_text(page(), encoding="utf-8")
    print(f"{len(names or EXAMPLES)} pictures and docs/gallery.md")


if __name__ == "__main__":
    main(sys.argv[1:])
