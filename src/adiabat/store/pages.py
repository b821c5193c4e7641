# SPDX-License-Identifier: BSD-3-Clause
"""Pages of HTML in one file: no script, nothing loaded, light and dark, and printable.

Text becomes part of a page through `text`, which escapes it; a `Markup` is a string that is safe.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, Final, TypeAlias

from adiabat.store.words import printable

Markup: TypeAlias = str

_LONG: Final = 12

_STYLE: Final = """
:root { color-scheme: light dark;
  --ink: #1c2024; --soft: #5b6570; --line: #d9dee3; --page: #ffffff; --card: #f6f7f9;
  --one: #1769aa; --two: #b4530a; --three: #7a8793; --good: #1a7f47; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root {
  --ink: #e7eaee; --soft: #9aa5b1; --line: #343b43; --page: #14171a; --card: #1c2126;
  --one: #6cb2f0; --two: #f0a35e; --three: #8b97a3; --good: #63c792; --bad: #f2867e; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2.5rem 1.25rem 4rem; max-width: 60rem; background: var(--page);
  color: var(--ink); font: 16px/1.55 system-ui, -apple-system, "Segoe UI", sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .5rem; letter-spacing: -.01em; }
h2 { font-size: 1.15rem; margin: 2.4rem 0 .6rem; }
p { margin: .5rem 0; max-width: 46rem; }
.lead { font-size: 1.1rem; }
.soft { color: var(--soft); }
.good { color: var(--good); font-weight: 600; }
.bad { color: var(--bad); font-weight: 600; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; margin: .6rem 0; }
th, td { text-align: left; padding: .35rem .9rem .35rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; font-variant-numeric: tabular-nums; }
th { color: var(--soft); font-weight: 500; white-space: nowrap; }
td.n, th.n { text-align: right; }
td.long { overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .3rem 1.5rem; margin: 1rem 0; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
figure { margin: .8rem 0 1.2rem; padding: 1rem; background: var(--card); border-radius: .5rem;
  overflow-x: auto; }
figcaption { color: var(--soft); font-size: .9rem; margin-bottom: .5rem; }
svg { display: block; width: 100%; height: auto; }
.warning { border: 2px solid var(--bad); border-radius: .5rem; padding: .7rem 1rem; margin: 1rem 0;
  max-width: none; }
pre { background: var(--card); padding: .8rem 1rem; border-radius: .5rem; margin: .6rem 0;
  white-space: pre-wrap; overflow-wrap: anywhere; font: .88rem ui-monospace, Menlo, monospace; }
ul { margin: .5rem 0; padding-left: 1.3rem; max-width: 46rem; }
svg text { fill: var(--soft); font: 12px system-ui, sans-serif; }
svg .one { fill: var(--one); } svg .two { fill: var(--two); } svg .three { fill: var(--three); }
code { font: .88em ui-monospace, "SF Mono", Menlo, monospace; }
@media (max-width: 40rem) { dl { grid-template-columns: 1fr; gap: 0; } dd { margin: 0 0 .5rem; }
  table { font-size: .8rem; } th, td { padding-right: .5rem; }
  figure { padding: .5rem; } svg text { font-size: 17px; } }
@media print { @page { margin: 18mm; } body { padding: 0; max-width: none; font-size: 10.5pt; }
  figure, pre { background: none; border: 1px solid var(--line); }
  section, figure, dl, tr, .warning { break-inside: avoid; } h2 { break-after: avoid; } }
"""


def text(value: Any) -> Markup:
    """Any value as text of a page."""
    return escape("" if value is None else printable(value))


def page(title: str, parts: Iterable[Markup]) -> str:
    """A whole page."""
    # The policy forbids what the page does not do anyway: scripts, and loading anything.
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<title>{text(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{text(title)}</h1>\n" + "\n".join(parts) + "\n</body>\n</html>\n"
    )


def paragraph(sentence: Any, kind: str = "") -> Markup:
    """A paragraph of text; `kind` is lead, soft, good or bad."""
    return f'<p class="{kind}">{text(sentence)}</p>' if kind else f"<p>{text(sentence)}</p>"


def bullets(items: Iterable[Any]) -> Markup:
    """A list of sentences."""
    return "<ul>" + "".join(f"<li>{text(item)}</li>" for item in items) + "</ul>"


def commands(*lines: str) -> Markup:
    """What to type."""
    return "<pre>" + "\n".join(text(line) for line in lines) + "</pre>"


def section(title: str, *parts: Markup) -> Markup:
    """A headed section."""
    return f"<section>\n<h2>{text(title)}</h2>\n" + "\n".join(parts) + "\n</section>"


def definition_list(items: Mapping[str, Any]) -> Markup:
    """Names and values."""
    rows = "".join(f"<dt>{text(name)}</dt><dd>{text(value)}</dd>" for name, value in items.items())
    return f"<dl>{rows}</dl>"


def table(
    head: Sequence[str], rows: Iterable[Sequence[Any]], numeric: Sequence[str] = ()
) -> Markup:
    """A table; numbers and columns said to be numeric stand right.

    Only what is long may break anywhere.
    """
    rows = [list(row) for row in rows]
    kinds = [
        "n" if name in numeric or (rows and _is_number(cell)) else ""
        for name, cell in zip(head, (rows or [head])[0], strict=True)
    ]
    body = "".join(
        "<tr>"
        + "".join(
            f'<td class="{kind or ("long" if len(str(cell)) > _LONG else "")}">{text(cell)}</td>'
            for cell, kind in zip(row, kinds, strict=True)
        )
        + "</tr>"
        for row in rows
    )
    names = "".join(
        f'<th class="{kind}">{text(name)}</th>' for name, kind in zip(head, kinds, strict=True)
    )
    return (
        f'<div class="wide"><table><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table>'
        "</div>"
    )


def figure(caption: str, drawing: Markup) -> Markup:
    """A drawing with its caption."""
    return f"<figure><figcaption>{text(caption)}</figcaption>{drawing}</figure>"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
