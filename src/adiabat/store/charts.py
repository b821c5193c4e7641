# SPDX-License-Identifier: BSD-3-Clause
"""Lines over the entries of a log, drawn as SVG without a script."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from adiabat.store.pages import Markup, text

_WIDTH: Final = 860
_HEIGHT: Final = 250
_LEFT: Final = 62
_RIGHT: Final = 120
_TOP: Final = 14
_BOTTOM: Final = 34
_KINDS: Final = ("one", "two", "three")  # of lines: the page's style has their colours
_LABEL_GAP: Final = 15.0
_DATES: Final = 5  # on the axis
# Spans of time, in seconds, from which on days or minutes are what is said of a moment.
_DAYS: Final = 3 * 86_400
_MINUTES: Final = 600


def steps(
    label: str,
    at: Sequence[int],
    times: Sequence[datetime],
    lines: Mapping[str, Sequence[float]],
) -> Markup:
    """Values that hold from one entry to the next, up to three lines of them, over time (UTC).

    Parameters
    ----------
    label : str
        What the picture shows, for screen readers.
    at : sequence of int
        Numbers of the entries.
    times : sequence of datetime
        When each was written.
    lines : mapping of str to sequence of float
        Values after each entry, by name.
    """
    top = max((max(values) for values in lines.values()), default=1.0) or 1.0
    ticks = _ticks(top)
    top = max(top, ticks[-1])
    seconds = [time.timestamp() for time in times]
    first, last = min(seconds), max(seconds)
    span = max(last - first, 1.0)

    def x(moment: float) -> float:
        return _LEFT + (moment - first) / span * (_WIDTH - _LEFT - _RIGHT)

    def y(value: float) -> float:
        return _HEIGHT - _BOTTOM - value / top * (_HEIGHT - _TOP - _BOTTOM)

    drawn = [
        f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y(t):.1f}" y2="{y(t):.1f}" '
        f'stroke="var(--line)"/><text x="{_LEFT - 8}" y="{y(t) + 4:.1f}" text-anchor="end">'
        f"{text(_said(t))}</text>"
        for t in ticks
    ]
    form = "%Y-%m-%d" if span > _DAYS else "%m-%d %H:%M" if span > _MINUTES else "%H:%M:%S"
    for k in range(_DATES):
        moment = first + span * k / (_DATES - 1)
        said = datetime.fromtimestamp(moment, UTC).strftime(form)
        drawn.append(
            f'<text x="{x(moment):.1f}" y="{_HEIGHT - 12}" text-anchor="middle">{said}</text>'
        )
    ends = _apart([y(values[-1]) for values in lines.values()])
    for (name, values), kind, end in zip(lines.items(), _KINDS, ends, strict=False):
        colour = f"var(--{kind})"
        path = f"M{x(seconds[0]):.1f} {y(values[0]):.1f}"
        for moment, value in zip(seconds[1:], values[1:], strict=True):
            path += f"H{x(moment):.1f}V{y(value):.1f}"
        drawn.append(
            f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="2" '
            f'stroke-linejoin="round"><title>{text(name)}</title></path>'
        )
        for entry, moment, value in zip(at, seconds, values, strict=True):
            drawn.append(
                f'<circle cx="{x(moment):.1f}" cy="{y(value):.1f}" r="3" fill="{colour}">'
                f"<title>entry {entry}: {text(_said(value))} {text(name)}</title></circle>"
            )
        drawn.append(
            f'<text x="{_WIDTH - _RIGHT + 10}" y="{end + 4:.1f}" class="{kind}">'
            f"{text(name)} {text(_said(values[-1]))}</text>"
        )
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{text(label)}">'
        + "".join(drawn)
        + "</svg>"
    )


def _ticks(top: float) -> list[float]:
    """Three to six round values from zero to about the top."""
    rough = top / 4
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * m for m in (1, 2, 2.5, 5, 10) if size * m >= rough)
    return [step * k for k in range(math.ceil(top / step - 1e-9) + 1)]


def _apart(wanted: Sequence[float]) -> list[float]:
    """Heights of labels near those wanted, none over another, in the same order."""
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    placed = list(wanted)
    below = -math.inf
    for i in order:
        placed[i] = max(wanted[i], below + _LABEL_GAP)
        below = placed[i]
    return placed


def _said(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) else f"{value:,.3g}"
