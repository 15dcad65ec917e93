"""Bars as SVG, by hand: three pictures need no plotting library, and text stays text.

Figures of these contestants lie three orders of magnitude apart, so lengths are logarithmic, and every bar says its
number. Colours are readable on a white and on a dark page.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

WIDTH, LABELS, NUMBERS = 760, 300, 110
ROW, TOP, BOTTOM = 22, 44, 14
OWN, PEER, FLOOR = "#2f6fde", "#8a8f98", "#c9a227"
TEXT = "#6b7280"


@dataclass(frozen=True, slots=True)
class Bar:
    """`colour`: one of `OWN`, `PEER`, `FLOOR`. `text`: what stands behind the bar."""

    label: str
    value: float
    text: str
    colour: str = PEER


def bars(title: str, rows: Sequence[Bar], *, note: str = "") -> str:
    """A picture of horizontal bars on a logarithmic scale; values must be above zero."""
    shown = [row for row in rows if row.value > 0]
    low = min((row.value for row in shown), default=1.0)
    high = max((row.value for row in shown), default=1.0)
    floor = 10 ** (math.floor(math.log10(low)) - 0.3)
    span = math.log10(high / floor) or 1.0
    room = WIDTH - LABELS - NUMBERS
    height = TOP + ROW * len(shown) + BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}"'
        ' font-family="system-ui, sans-serif" font-size="12">',
        f'<text x="8" y="18" font-size="14" font-weight="600" fill="{TEXT}">{escape(title)}</text>',
        f'<text x="8" y="34" font-size="11" fill="{TEXT}">{escape(note or "logarithmic scale")}</text>',
    ]
    for decade in range(math.ceil(math.log10(floor)), math.floor(math.log10(high)) + 1):
        x = LABELS + room * math.log10(10**decade / floor) / span
        parts.append(
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 4}" y2="{height - BOTTOM + 4}" stroke="{TEXT}" '
            'stroke-opacity="0.25"/>'
        )
    for number, row in enumerate(shown):
        y = TOP + ROW * number
        length = max(2.0, room * math.log10(row.value / floor) / span)
        parts += [
            f'<text x="{LABELS - 8}" y="{y + 14}" text-anchor="end" fill="{TEXT}">{escape(row.label)}</text>',
            f'<rect x="{LABELS}" y="{y + 3}" width="{length:.1f}" height="{ROW - 7}" rx="2" fill="{row.colour}"/>',
            f'<text x="{LABELS + length + 6:.1f}" y="{y + 14}" fill="{TEXT}">{escape(row.text)}</text>',
        ]
    return "\n".join([*parts, "</svg>"]) + "\n"
