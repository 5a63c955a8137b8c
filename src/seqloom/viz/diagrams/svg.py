"""Draws boxes, arrows, texts and shaded cells as one SVG element.

The colours adapt to light and dark themes. The picture has a background of its own, so that its
texts are readable on a page of any colour.
"""

import math
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Literal

from rich.cells import cell_len

from seqloom.core.storage import write_file
from seqloom.viz.terminal_format import fit_to_line, strip_word_marker

Anchor = Literal["start", "middle", "end"]
BoxKind = Literal["plain", "state", "result", "muted"]

LINE_HEIGHT = 17
"""Distance from one line of text to the next in pixels."""
_LETTER = 7.4
"""Approximate width of a letter in pixels."""
_MARGIN = 16
_MAX_LABEL_CELLS = 14
_MAX_TITLE_CELLS = 60
_MAX_SHADE = 0.55
"""Opacity that a weight of 1 adds to that of a weight of 0. A darker shade would make the number in
the cell hard to read."""
_HEAD = 7
"""Length of an arrowhead in pixels."""
_STYLE = """
.diagram{--paper:#fff;--ink:#1f2937;--soft:#5b6472;--line:#6b7280;--fill:#f3f4f6;--state:#dbeafe;
--edge:#1d4ed8;--result:#08519c;--on-result:#fff;--shade:#2171b5;
font:13px system-ui,"DejaVu Sans",sans-serif}
@media(prefers-color-scheme:dark){.diagram{--paper:#111827;--ink:#f3f4f6;--soft:#b6bdc9;
--line:#9ca3af;--fill:#1f2937;--state:#1e3a5f;--edge:#93c5fd;--result:#93c5fd;--on-result:#0b1220;
--shade:#60a5fa}}
.diagram text{fill:var(--ink)}.diagram .soft{fill:var(--soft)}.diagram .bold{font-weight:600}
.diagram .on-result{fill:var(--on-result)}
.diagram .paper{fill:var(--paper)}.diagram .line{stroke:var(--line);fill:none}
.diagram .edge{stroke:var(--edge);fill:none}.diagram .head{fill:var(--line)}
.diagram .edge-head{fill:var(--edge)}.diagram .shade{fill:var(--shade)}
.diagram .plain{fill:var(--fill);stroke:var(--line)}.diagram .state{fill:var(--state);stroke:var(--edge)}
.diagram .result{fill:var(--result);stroke:var(--result)}
.diagram .muted{fill:none;stroke:var(--line);stroke-dasharray:4 3}
"""


class Svg(str):
    """The text of an SVG element. Jupyter notebooks display it as a picture."""

    def _repr_svg_(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """Return the element for HTML pages. Unlike an <img>, it keeps the text for screen readers."""
        return str(self)

    def save(self, path: str | Path) -> None:
        """Write the picture to a file."""
        write_file(Path(path), self.encode())


class Drawing:
    """Collects the elements of a picture. The size of the picture follows from its elements.

    title:       what the picture shows; drawn at the top, and read by screen readers
    description: the content of the picture in words, for screen readers
    """

    def __init__(self, title: str, description: str) -> None:
        self.title = title
        self.description = description
        self._elements: list[str] = []
        self._right, self._bottom = 0.0, 0.0
        self.text(0, 8, title, "start", "bold")

    def text(
        self, x: float, y: float, text: str, anchor: Anchor = "middle", css_class: str = ""
    ) -> None:
        """Write a line of text. `y` is the middle of the line."""
        width = text_width(text)
        right = {"start": x + width, "middle": x + width / 2, "end": x}[anchor]
        self._grow(right, y + LINE_HEIGHT / 2)
        attribute = f' class="{css_class}"' if css_class else ""
        self._elements.append(
            f'<text x="{x:.1f}" y="{y + 4.5:.1f}" text-anchor="{anchor}"{attribute}>'
            f"{escape(text)}</text>"
        )

    def box(
        self,
        x: float,
        y: float,
        width: float,
        lines: Sequence[str],
        kind: BoxKind = "plain",
        height: float | None = None,
    ) -> float:
        """Draw a box with centred lines of text, the first in bold. Return y of its lower edge.

        height: height of the box. Default: as high as the lines need
        """
        height = box_height(len(lines)) if height is None else height
        self._grow(x + width, y + height)
        self._elements.append(
            f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" '
            f'height="{height:.1f}" rx="6"/>'
        )
        colour = " on-result" if kind == "result" else ""
        first = y + (height - LINE_HEIGHT * (len(lines) - 1)) / 2
        for number, line in enumerate(lines):
            css_class = "bold" if number == 0 else "" if colour else "soft"
            middle = first + LINE_HEIGHT * number
            self.text(x + width / 2, middle, line, css_class=f"{css_class}{colour}".strip())
        return y + height

    def line(self, *points: tuple[float, float]) -> None:
        """Draw straight lines through the points."""
        self._elements.append(
            f'<polyline class="line" stroke-width="1.4" points="{_points(points)}"/>'
        )

    def arrow(self, *points: tuple[float, float], strong: bool = False, width: float = 1.4) -> None:
        """Draw straight lines through the points, with an arrowhead at the last point."""
        (x1, y1), (x2, y2) = points[-2:]
        angle = math.atan2(y2 - y1, x2 - x1)
        tip = [
            (x2 - _HEAD * math.cos(angle + turn), y2 - _HEAD * math.sin(angle + turn))
            for turn in (0.45, -0.45)
        ]
        line = "edge" if strong else "line"
        head = "edge-head" if strong else "head"
        end = (x2 - 0.8 * _HEAD * math.cos(angle), y2 - 0.8 * _HEAD * math.sin(angle))
        self._elements.append(
            f'<polyline class="{line}" stroke-width="{width:g}" '
            f'points="{_points([*points[:-1], end])}"/>'
            f'<polygon class="{head}" points="{_points([(x2, y2), *tip])}"/>'
        )
        for x, y in points:
            self._grow(x, y)

    def curve(
        self,
        start: tuple[float, float],
        end: tuple[float, float],
        *,
        strong: bool = False,
        width: float = 1.4,
    ) -> None:
        """Draw a curve from left to right that is horizontal at both ends."""
        middle = (start[0] + end[0]) / 2
        self._elements.append(
            f'<path class="{"edge" if strong else "line"}" stroke-width="{width:.1f}" '
            f'd="M{start[0]:.1f} {start[1]:.1f}C{middle:.1f} {start[1]:.1f} '
            f'{middle:.1f} {end[1]:.1f} {end[0]:.1f} {end[1]:.1f}"/>'
        )

    def circle(self, x: float, y: float, text: str) -> None:
        """Draw a small circle with one character, such as the + of a residual connection."""
        self._elements.append(f'<circle class="plain" cx="{x:.1f}" cy="{y:.1f}" r="11"/>')
        self.text(x, y, text, css_class="bold")

    def shaded_cell(self, x: float, y: float, width: float, height: float, weight: float) -> None:
        """Draw a cell of a matrix with its weight from 0 to 1, as a shade and as a number."""
        self._grow(x + width, y + height)
        self._elements.append(
            f'<rect class="shade" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" '
            f'height="{height:.1f}" rx="3" opacity="{0.05 + _MAX_SHADE * weight:.3f}"/>'
        )
        self.text(x + width / 2, y + height / 2, format_entry(weight))

    def bar(self, x: float, y: float, length: float, height: float) -> None:
        """Draw a horizontal bar."""
        self._grow(x + length, y + height)
        self._elements.append(
            f'<rect class="shade" x="{x:.1f}" y="{y:.1f}" width="{length:.1f}" '
            f'height="{height:.1f}" rx="2"/>'
        )

    def render(self) -> Svg:
        """Return the picture as one self-contained <svg> element."""
        width, height = self._right + 2 * _MARGIN, self._bottom + 2 * _MARGIN
        label = escape(f"{self.title}. {self.description}", quote=True)
        return Svg(
            f'<svg class="diagram" xmlns="http://www.w3.org/2000/svg" role="img" '
            f'aria-label="{label}" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
            f'style="max-width:100%;height:auto">'
            f"<style>{_STYLE}</style>"
            f'<rect class="paper" width="{width:.0f}" height="{height:.0f}" rx="8"/>'
            f'<g transform="translate({_MARGIN} {_MARGIN})">{"".join(self._elements)}</g></svg>'
        )

    def _grow(self, right: float, bottom: float) -> None:
        self._right, self._bottom = max(self._right, right), max(self._bottom, bottom)


def box_height(lines: int) -> float:
    """Return the height of a box with this number of lines."""
    return LINE_HEIGHT * lines + 12


def text_width(text: str) -> float:
    """Return the approximate width of a text in pixels."""
    return _LETTER * cell_len(text)


def widest(texts: Sequence[str]) -> float:
    """Return the approximate width of the widest text in pixels; 0 if there is none."""
    return max(map(text_width, texts), default=0.0)


def token_label(piece: str) -> str:
    """Return a short label for a token, without SentencePiece's leading "▁".

    A token that is only a space or only "▁" becomes ␣.
    """
    label = strip_word_marker(piece)
    return fit_to_line("␣" if label.strip() in ("", "▁") else label, _MAX_LABEL_CELLS)


def title_text(text: str) -> str:
    """Return a text for use in a title, cut to one line of at most 60 characters."""
    return fit_to_line(text, _MAX_TITLE_CELLS)


def format_entry(value: float) -> str:
    """Format a number with two decimals. Numbers that round to zero have no sign."""
    return f"{round(value, 2) + 0.0:.2f}"


def format_vector_start(values: Sequence[float], count: int = 3) -> list[str]:
    """Format the first numbers of a vector, one per line, and "…" if there are more."""
    shown = [format_entry(value) for value in values[:count]]
    return [*shown, "…"] if len(values) > count else shown


def _points(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
