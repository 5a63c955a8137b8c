"""Draws shapes and texts, and writes them as SVG, PNG or PDF.

All figures are drawn with `Drawing`. The colours and the font are those of the web page, from
`components/base.css`. In SVG the colours adapt to light and dark themes. Figures have a background
of their own, so that their texts are readable on a page of any colour.
"""

import base64
import io
import math
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from rich.cells import cell_len

from seqloom.core.errors import ConfigError
from seqloom.core.extras import import_optional
from seqloom.core.storage import write_file
from seqloom.viz.terminal_format import fit_to_line, strip_word_marker

Anchor = Literal["start", "middle", "end"]
BoxKind = Literal["plain", "state", "stopped", "result", "muted"]
Point = tuple[float, float]

COMPONENTS = Path(__file__).parent / "components"
"""Folder of the JavaScript modules and style sheets of drawings in web pages."""
IMAGE_FORMATS = ("png", "svg", "pdf")
LINE_HEIGHT = 17
"""Distance from one line of text to the next in pixels."""
SERIES_COUNT = 6
"""Number of different colours of the lines of a chart."""
_FONT_SIZE = 13.0
_BASELINE = 0.35
"""Distance from the middle of a line to its baseline, relative to the font size."""
_LETTER = 7.4 / _FONT_SIZE
"""Approximate width of a letter, relative to the font size."""
_MARGIN = 16
_MAX_LABEL_CELLS = 14
_MAX_TITLE_CELLS = 60
_HEAD = 7
"""Length of an arrowhead in pixels."""
_PIXELS_PER_INCH = 96
_PNG_SCALE = 2

_CSS = (COMPONENTS / "base.css").read_text(encoding="utf-8")
_COLOURS: dict[str, tuple[str, str]] = {
    name: (light, dark)
    for name, light, dark in re.findall(r"--([\w-]+): light-dark\((#\w+), (#\w+)\);", _CSS)
}
"""The light and the dark value of each colour."""
_FONT = re.findall(r"--sans: ([^;]+);", _CSS)[0]
_STYLES: dict[str, dict[str, str]] = {
    "soft": {"fill": "soft"},
    "bold": {"font-weight": "600"},
    "on-result": {"fill": "on-accent"},
    "paper": {"fill": "card"},
    "plain": {"fill": "sunken", "stroke": "edge"},
    "state": {"fill": "accent-pale", "stroke": "accent-mid"},
    "stopped": {"fill": "accent-pale", "stroke": "accent-mid", "stroke-dasharray": "4 3"},
    "result": {"fill": "accent", "stroke": "accent"},
    "muted": {"fill": "card", "stroke": "edge", "stroke-dasharray": "4 3"},
    "line": {"fill": "none", "stroke": "edge"},
    "edge": {"fill": "none", "stroke": "accent"},
    "branch": {"fill": "none", "stroke": "tree-edge"},
    "dropped": {"fill": "none", "stroke": "edge", "stroke-dasharray": "2 3"},
    "grid": {"fill": "none", "stroke": "line"},
    "head": {"fill": "edge"},
    "edge-head": {"fill": "accent"},
    "shade": {"fill": "accent"},
    "positive": {"fill": "error"},
    "dot": {"fill": "ink"},
    "cross": {"fill": "none", "stroke": "series-1"},
    **{f"line{n}": {"fill": "none", "stroke": f"series-{n}"} for n in range(SERIES_COUNT)},
    **{f"fill{n}": {"fill": f"series-{n}"} for n in range(SERIES_COUNT)},
    "dashed": {"stroke-dasharray": "6 4"},
    "dotted": {"stroke-dasharray": "2 3"},
    "dash-dot": {"stroke-dasharray": "8 3 2 3"},
}
"""The properties of each style. Values of fill and stroke are names of colours."""


def _style_sheet() -> str:
    """Return the style sheet of an SVG drawing."""
    used = {"ink", *(value for rule in _STYLES.values() for value in rule.values())} & {*_COLOURS}
    light, dark = (
        "".join(f"--{name}:{_COLOURS[name][theme]};" for name in sorted(used)) for theme in (0, 1)
    )
    rules = [
        f".drawing{{{light}font:{_FONT_SIZE:g}px {_FONT}}}",
        f"@media(prefers-color-scheme:dark){{.drawing{{{dark}}}}}",
        ".drawing text{fill:var(--ink)}",
    ]
    for name, rule in _STYLES.items():
        values = (
            f"{key}:{f'var(--{value})' if value in _COLOURS else value}"
            for key, value in rule.items()
        )
        rules.append(f".drawing .{name}{{{';'.join(values)}}}")
    return "\n".join(rules)


class Svg(str):
    """The text of an SVG element. Jupyter notebooks display it as a picture.

    drawing: the shapes of the picture. None if the picture can only be saved as SVG
    """

    drawing: "Drawing | None" = None

    def _repr_svg_(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """Return the element for HTML pages. Unlike an <img>, it keeps the text for screen readers."""
        return str(self)

    def save(self, path: str | Path) -> None:
        """Write the picture to a file. The suffix selects the format: .svg, .png or .pdf."""
        path = Path(path)
        suffix = image_format(path)
        if suffix == "svg":
            write_file(path, self.encode())
        elif self.drawing is None:
            raise ConfigError(f"{path}: this picture is only text. Name the file {path.stem}.svg.")
        else:
            write_file(path, _paint(self.drawing, suffix))


def image_format(path: Path) -> str:
    """Return the image format that the suffix of `path` names.

    Raises:
        ConfigError: if figures cannot be written in this format.
    """
    suffix = path.suffix.lower().removeprefix(".")
    if suffix not in IMAGE_FORMATS:
        raise ConfigError(
            f"{path}: unsupported image format. Supported formats: {', '.join(IMAGE_FORMATS)}. "
            f"Name the file {path.stem}.png, for example."
        )
    return suffix


@dataclass(frozen=True)
class _Shape:
    """An element of a picture.

    tag:        name of the SVG element
    style:      names of styles, separated by spaces
    attributes: attributes of the SVG element. Numbers are in pixels.
    """

    tag: Literal["text", "rect", "circle", "polyline", "polygon", "path", "image"]
    style: str
    attributes: Mapping[str, Any]
    points: Sequence[Point] = ()
    text: str = ""
    rotation: float = 0.0
    pixels: NDArray[np.uint8] | None = None

    def svg(self) -> str:
        attributes = {"class": self.style, **self.attributes}
        if self.tag == "path":
            attributes["d"] = f"M{_coordinates(self.points[:1])}C{_coordinates(self.points[1:])}"
        elif self.points:
            attributes["points"] = _coordinates(self.points)
        if self.rotation:
            x, y = self.attributes["x"], self.attributes["y"]
            attributes["transform"] = f"rotate({self.rotation:g} {x:.1f} {y:.1f})"
        if self.pixels is not None:
            buffer = io.BytesIO()
            Image.fromarray(self.pixels).save(buffer, "png")
            data = base64.b64encode(buffer.getvalue()).decode()
            attributes |= {"href": f"data:image/png;base64,{data}", "preserveAspectRatio": "none"}
            attributes["style"] = "image-rendering:pixelated"
        written = "".join(
            f' {name}="{round(value, 2):g}"' if isinstance(value, float) else f' {name}="{value}"'
            for name, value in attributes.items()
            if value != ""
        )
        return f"<{self.tag}{written}>{escape(self.text)}</{self.tag}>"

    def paint(self, axes: Any, zorder: int) -> None:
        """Draw the shape with matplotlib."""
        if self.tag == "text":
            self._paint_text(axes, zorder)
        elif self.pixels is not None:
            x, y, width, height = (self.attributes[name] for name in ("x", "y", "width", "height"))
            image = axes.imshow(self.pixels, aspect="auto", interpolation="nearest", zorder=zorder)
            image.set_extent((x, x + width, y + height, y))
        else:
            axes.add_patch(self._patch(zorder))

    def _paint_text(self, axes: Any, zorder: int) -> None:
        values, properties = self.attributes, _properties(self.style)
        axes.text(
            values["x"],
            values["y"] - _BASELINE * values["font-size"],
            self.text,
            ha={"start": "left", "middle": "center", "end": "right"}[values["text-anchor"]],
            va="center",
            color=_light(properties.get("fill", "ink")),
            fontsize=_to_points(values["font-size"]),
            fontweight="bold" if "font-weight" in properties else "normal",
            rotation=-self.rotation,
            rotation_mode="anchor",
            parse_math=False,  # a dollar sign in a text does not start a formula
            zorder=zorder,
        )

    def _patch(self, zorder: int) -> Any:
        """Return the shape as a patch of matplotlib."""
        patches = import_optional("matplotlib.patches", "plots", "images")
        path = import_optional("matplotlib.path", "plots", "images").Path
        values, properties = self.attributes, _properties(self.style)
        dashes = [float(each) for each in properties.get("stroke-dasharray", "").split()]
        options = {
            "facecolor": _light(properties.get("fill", "none")),
            "edgecolor": _light(properties.get("stroke", "none")),
            "linewidth": _to_points(values.get("stroke-width", 1.0)),
            "linestyle": (0, [_to_points(each) for each in dashes]) if dashes else "-",
            "alpha": values.get("opacity", 1.0),
            "zorder": zorder,
        }
        if self.tag == "circle":
            return patches.Circle((values["cx"], values["cy"]), values["r"], **options)
        if self.tag == "rect":
            corners = patches.BoxStyle("round", pad=0, rounding_size=values["rx"])
            corner = (values["x"], values["y"])
            return patches.FancyBboxPatch(
                corner, values["width"], values["height"], boxstyle=corners, **options
            )
        if self.tag == "polygon":
            return patches.Polygon(self.points, closed=True, **options)
        code = path.CURVE4 if self.tag == "path" else path.LINETO
        codes = [path.MOVETO, *[code] * (len(self.points) - 1)]
        return patches.PathPatch(path(self.points, codes), **options)


class Drawing:
    """Collects the shapes of a picture. The size of the picture follows from its shapes.

    title:       what the picture shows; drawn at the top, and read by screen readers
    description: the content of the picture in words, for screen readers
    origin:      position of the point (0, 0) of shapes that are added next, so that several parts
                 of a picture can be drawn side by side
    """

    def __init__(self, title: str, description: str) -> None:
        self.title = title
        self.description = description
        self.origin: Point = (0.0, 0.0)
        self.right, self.bottom = 0.0, 0.0
        self.shapes: list[_Shape] = []
        if title:
            self.text(0, 8, title, "start", "bold")

    def text(
        self,
        x: float,
        y: float,
        text: str,
        anchor: Anchor = "middle",
        style: str = "",
        *,
        size: float = _FONT_SIZE,
        rotation: float = 0.0,
    ) -> None:
        """Write a line of text. `y` is the middle of the line.

        rotation: angle in degrees, clockwise, around the point (x, y)
        """
        x, y = self._place(x, y)
        width = text_width(text, size) * abs(math.cos(math.radians(rotation)))
        right = {"start": x + width, "middle": x + width / 2, "end": x}[anchor]
        self._grow(right, y + LINE_HEIGHT / 2)
        attributes = {
            "x": x,
            "y": y + _BASELINE * size,
            "text-anchor": anchor,
            "font-size": size,
        }
        self.shapes.append(_Shape("text", style, attributes, text=text, rotation=rotation))

    def rectangle(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        style: str,
        *,
        radius: float = 0.0,
        opacity: float = 1.0,
    ) -> None:
        x, y = self._place(x, y)
        self._grow(x + width, y + height)
        radius = min(radius, width / 2, height / 2)
        attributes = {"x": x, "y": y, "width": width, "height": height}
        self.shapes.append(_Shape("rect", style, {**attributes, "rx": radius, "opacity": opacity}))

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
        self.rectangle(x, y, width, height, kind, radius=6)
        colour = " on-result" if kind == "result" else ""
        first = y + (height - LINE_HEIGHT * (len(lines) - 1)) / 2
        for number, line in enumerate(lines):
            style = "bold" if number == 0 else "" if colour else "soft"
            middle = first + LINE_HEIGHT * number
            self.text(x + width / 2, middle, line, style=f"{style}{colour}".strip())
        return y + height

    def line(self, *points: Point, style: str = "line", width: float = 1.4) -> None:
        """Draw straight lines through the points."""
        self._add_path("polyline", points, style, {"stroke-width": width})

    def polygon(self, points: Sequence[Point], style: str, *, opacity: float = 1.0) -> None:
        self._add_path("polygon", points, style, {"opacity": opacity})

    def curve(self, start: Point, end: Point, style: str = "line", width: float = 1.4) -> None:
        """Draw a curve from left to right that is horizontal at both ends."""
        middle = (start[0] + end[0]) / 2
        points = (start, (middle, start[1]), (middle, end[1]), end)
        self._add_path("path", points, style, {"stroke-width": width})

    def arrow(self, *points: Point, strong: bool = False, width: float = 1.4) -> None:
        """Draw straight lines through the points, with an arrowhead at the last point."""
        (x1, y1), (x2, y2) = points[-2:]
        angle = math.atan2(y2 - y1, x2 - x1)
        tip = [
            (x2 - _HEAD * math.cos(angle + turn), y2 - _HEAD * math.sin(angle + turn))
            for turn in (0.45, -0.45)
        ]
        end = (x2 - 0.8 * _HEAD * math.cos(angle), y2 - 0.8 * _HEAD * math.sin(angle))
        self.line(*points[:-1], end, style="edge" if strong else "line", width=width)
        self.polygon([(x2, y2), *tip], "edge-head" if strong else "head")

    def circle(
        self, x: float, y: float, radius: float, style: str, text: str = "", opacity: float = 1.0
    ) -> None:
        """Draw a circle. It can contain a character, such as the + of a residual connection."""
        placed = self._place(x, y)
        self._grow(placed[0] + radius, placed[1] + radius)
        attributes = {"cx": placed[0], "cy": placed[1], "r": radius, "opacity": opacity}
        self.shapes.append(_Shape("circle", style, attributes))
        if text:
            self.text(x, y, text, style="bold")

    def image(
        self, x: float, y: float, width: float, height: float, pixels: NDArray[np.uint8]
    ) -> None:
        """Draw an image. pixels: (rows, columns, 4) with red, green, blue and opacity"""
        x, y = self._place(x, y)
        self._grow(x + width, y + height)
        attributes = {"x": x, "y": y, "width": width, "height": height}
        self.shapes.append(_Shape("image", "", attributes, pixels=pixels))

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of the picture in pixels, including its margins."""
        return math.ceil(self.right + 2 * _MARGIN), math.ceil(self.bottom + 2 * _MARGIN)

    def render(self) -> Svg:
        """Return the picture as one self-contained <svg> element."""
        width, height = self.size
        label = f"{self.title}. {self.description}" if self.title else self.description
        svg = Svg(
            f'<svg class="drawing" xmlns="http://www.w3.org/2000/svg" role="img" '
            f'aria-label="{escape(label, quote=True)}" viewBox="0 0 {width} {height}" '
            f'width="{width}" style="max-width:100%;height:auto">'
            f"<style>{_STYLE_SHEET}</style>"
            f'<rect class="paper" width="{width}" height="{height}" rx="8"/>'
            f'<g transform="translate({_MARGIN} {_MARGIN})">'
            f"{''.join(shape.svg() for shape in self.shapes)}</g></svg>"
        )
        svg.drawing = self
        return svg

    def _add_path(
        self,
        tag: Literal["polyline", "polygon", "path"],
        points: Sequence[Point],
        style: str,
        attributes: Mapping[str, float],
    ) -> None:
        placed = [self._place(*point) for point in points]
        for x, y in placed:
            self._grow(x, y)
        self.shapes.append(_Shape(tag, style, attributes, placed))

    def _place(self, x: float, y: float) -> Point:
        return x + self.origin[0], y + self.origin[1]

    def _grow(self, right: float, bottom: float) -> None:
        self.right, self.bottom = max(self.right, right), max(self.bottom, bottom)


def _paint(drawing: Drawing, suffix: str) -> bytes:
    """Return the picture as a PNG or PDF file, drawn by matplotlib in the light colours."""
    figures = import_optional("matplotlib.figure", "plots", "writing PNG and PDF images")
    width, height = drawing.size
    inches = (width / _PIXELS_PER_INCH, height / _PIXELS_PER_INCH)
    figure = figures.Figure(figsize=inches, facecolor=_light("card"))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.axis("off")
    for number, shape in enumerate(drawing.shapes):
        shape.paint(axes, number)
    axes.set(xlim=(-_MARGIN, width - _MARGIN), ylim=(height - _MARGIN, -_MARGIN))
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        # A font without glyphs for a script draws boxes. The figure is still useful.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure.savefig(buffer, format=suffix, dpi=_PNG_SCALE * _PIXELS_PER_INCH)
    return buffer.getvalue()


def _properties(style: str) -> dict[str, str]:
    """Return the properties of several styles. Later styles take precedence."""
    return {key: value for name in style.split() for key, value in _STYLES[name].items()}


def _to_points(pixels: float) -> float:
    """Convert pixels to points, the unit of fonts and lines in matplotlib."""
    return pixels * 72 / _PIXELS_PER_INCH


def _light(colour: str) -> str:
    return colour if colour == "none" else _COLOURS[colour][0]


def _coordinates(points: Sequence[Point]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


_STYLE_SHEET = _style_sheet()


def box_height(lines: int) -> float:
    """Return the height of a box with this number of lines."""
    return LINE_HEIGHT * lines + 12


def text_width(text: str, size: float = _FONT_SIZE) -> float:
    """Return the approximate width of a text in pixels."""
    return _LETTER * size * cell_len(text)


def widest(texts: Sequence[str]) -> float:
    """Return the approximate width of the widest text in pixels; 0 if there is none."""
    return max(map(text_width, texts), default=0.0)


def token_label(piece: str, cells: int = _MAX_LABEL_CELLS) -> str:
    """Return a label of at most `cells` for a token, without SentencePiece's leading "▁".

    A token that is only a space or only "▁" becomes ␣.
    """
    label = strip_word_marker(piece)
    return fit_to_line("␣" if label.strip() in ("", "▁") else label, cells)


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
