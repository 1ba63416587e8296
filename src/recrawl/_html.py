"""Results as HTML for notebooks: a table and a small drawing (inline SVG). Every text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

_WIDTH, _ROW, _LABEL = 460, 20, 150  # pixels: of a drawing, of a bar with its space, of the labels beside bars
_STYLE = 'style="font:12px sans-serif;text-align:left"'


def table(title: str, rows: Iterable[tuple[str, str]]) -> str:
    """A table of names and texts.

    >>> table("<b>", [("a", "1 < 2")]).count("&lt;")
    2
    """
    lines = "".join(
        f'<tr><th {_STYLE}>{escape(name)}</th><td style="text-align:left">{escape(text)}</td></tr>'
        for name, text in rows
    )
    return f'<table><caption style="text-align:left"><b>{escape(title)}</b></caption>{lines}</table>'


def bars(rows: Sequence[tuple[str, float, str]]) -> str:
    """Horizontal bars: name, length and text of each; the longest fills the width."""
    longest = max((length for _, length, _ in rows), default=0.0) or 1.0
    room = _WIDTH - _LABEL - 80
    parts = []
    for k, (name, length, text) in enumerate(rows):
        y, width = k * _ROW, max(room * length / longest, 0.0)
        parts.append(f'<text x="0" y="{y + 14}">{escape(name)}</text>')
        parts.append(f'<rect x="{_LABEL}" y="{y + 4}" width="{width:.1f}" height="12" fill="#4477aa"/>')
        parts.append(f'<text x="{_LABEL + width + 5:.1f}" y="{y + 14}">{escape(text)}</text>')
    return _svg(parts, max(len(rows), 1) * _ROW)


def interval(low: float, middle: float, high: float) -> str:
    """An interval and a point in it on a line from 0 to 1."""
    at = [10.0 + (_WIDTH - 20.0) * min(max(share, 0.0), 1.0) for share in (low, middle, high)]
    ticks = [(10.0 + (_WIDTH - 20.0) * k / 4, f"{k / 4:g}") for k in range(5)]
    parts = [f'<line x1="10" x2="{_WIDTH - 10}" y1="15" y2="15" stroke="#999999"/>']
    parts += [f'<text x="{x:.1f}" y="34" text-anchor="middle">{text}</text>' for x, text in ticks]
    parts.append(f'<rect x="{at[0]:.1f}" y="9" width="{max(at[2] - at[0], 1.0):.1f}" height="12" fill="#88bbee"/>')
    parts.append(f'<circle cx="{at[1]:.1f}" cy="15" r="5" fill="#224466"/>')
    return _svg(parts, 40)


def _svg(parts: Iterable[str], height: int) -> str:
    size = f'width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}"'
    text = 'font-family="sans-serif" font-size="12" fill="currentColor"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {text}>{"".join(parts)}</svg>'
