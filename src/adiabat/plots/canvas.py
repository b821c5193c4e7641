# SPDX-License-Identifier: BSD-3-Clause
"""What all pictures share: where they are drawn, and how sets, classes and curves look."""

from __future__ import annotations

from typing import Any

from adiabat.estimators.kernel.partition import ERROR, MARGIN, RESERVE

# Okabe and Ito's colours, distinct to the colour-blind, in an order of alternating lightness.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
LINES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (6, 1, 1, 1, 1, 1)), (0, (1, 3)))
# A set is a shape and a size: MARGIN is what stands out.
MARKERS = {RESERVE: "o", MARGIN: "D", ERROR: "s"}
SIZES = {RESERVE: 3.9, MARGIN: 6.8, ERROR: 5.6}
# A class is a colour and a filling of the marker: hollow, full, then its halves.
FILLINGS = ("none", "full", "left", "bottom", "right", "top")
INK = "#222222"
# Curves that are there for comparison only.
OTHERS: dict[str, Any] = {"color": "#B8B8B8", "linewidth": 0.7}


def pyplot(what: str) -> Any:
    """`matplotlib.pyplot`, or an error that says how to get it."""
    try:
        from matplotlib import pyplot as plt
    except ImportError as error:
        raise ImportError(
            f"{what} needs matplotlib, which is not installed; pip install 'adiabat[plots]'"
        ) from error
    return plt


def axes(what: str, ax: Any) -> Any:
    """The axes given, or new ones."""
    plt = pyplot(what)
    if ax is not None:
        if not hasattr(ax, "plot"):
            raise TypeError(f"ax={ax!r} is not an Axes of matplotlib; leave it out for new ones")
        return ax
    return plt.subplots(layout="constrained")[1]


def line_style(i: int) -> dict[str, Any]:
    """The style of the i-th curve: the pairs repeat late, since the two lists differ in length."""
    return {"color": COLOURS[i % len(COLOURS)], "linestyle": LINES[i % len(LINES)]}


def class_style(number: int) -> dict[str, Any]:
    """How markers of the n-th class are filled."""
    filling = FILLINGS[number % len(FILLINGS)]
    return {
        "fillstyle": "full" if filling == "none" else filling,
        "markerfacecolor": "white" if filling == "none" else COLOURS[(number - 1) % len(COLOURS)],
        "markerfacecoloralt": "white",
        "markeredgecolor": INK,
    }


def legend_key(label: str, **look: Any) -> Any:
    """An entry of a legend: a line or a marker that is nowhere drawn."""
    from matplotlib.lines import Line2D

    return Line2D([], [], label=label, **look)


def legend_beside(ax: Any, handles: Any = None, **options: Any) -> Any:
    """A legend to the right of the axes, where it hides nothing."""
    settings: dict[str, Any] = {
        "loc": "upper left",
        "bbox_to_anchor": (1.01, 1.0),
        "borderaxespad": 0.0,
        "frameon": False,
        "fontsize": "small",
        **options,
    }
    return ax.legend(handles=handles, **settings) if handles is not None else ax.legend(**settings)
