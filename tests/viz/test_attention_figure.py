"""Attention heat maps in image files."""

import base64
import io
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from seqloom.core.errors import ConfigError, NotFoundError, StorageError
from seqloom.viz.attention_matrix import draw_attention_matrix, draw_matrix
from seqloom.viz.drawing import COMPONENTS, Drawing, Svg

WEIGHTS = [[0.1, 0.9], [0.8, 0.2], [0.5, 0.5]]
OUTPUTS = ["I", "$x $", "日本"]
SOURCES = ["ich", "שלום"]


def test_suffix_selects_the_image_format(tmp_path: Path) -> None:
    draw_attention_matrix(WEIGHTS, OUTPUTS, SOURCES, "A title").save(tmp_path / "a.png")
    with Image.open(tmp_path / "a.png") as image:
        assert image.format == "PNG"
        assert image.width > 100
    draw_attention_matrix(WEIGHTS, OUTPUTS, SOURCES).save(tmp_path / "a.svg")
    assert "<svg" in (tmp_path / "a.svg").read_text(encoding="utf-8")


def test_larger_weight_is_a_darker_cell(tmp_path: Path) -> None:
    shades = []
    for weight in (0.0, 0.5, 1.0):
        draw_attention_matrix([[1 - weight, weight]], ["a"], ["b", "c"]).save(tmp_path / "a.png")
        with Image.open(tmp_path / "a.png") as image:
            right, bottom = image.width - 40, image.height - 40  # without the margin
            last_cell = image.convert("L").crop((right - 40, bottom - 40, right, bottom))
            shades.append(last_cell.resize((1, 1)).tobytes()[0])
    assert shades == sorted(shades, reverse=True)
    assert shades[0] > shades[-1]


def test_figure_size_is_limited_for_many_tokens(tmp_path: Path) -> None:
    draw_attention_matrix([[0.01] * 300], ["a" * 500], ["b"] * 300).save(tmp_path / "a.png")
    with Image.open(tmp_path / "a.png") as image:
        assert image.width < 8_000


def test_unsupported_format_raises_with_the_supported_ones(tmp_path: Path) -> None:
    message = r"Supported formats: png, svg, pdf\. Name the file a\.png"
    with pytest.raises(ConfigError, match=message):
        draw_attention_matrix(WEIGHTS, OUTPUTS, SOURCES).save(tmp_path / "a.bmp")


def test_missing_folder_raises(tmp_path: Path) -> None:
    with pytest.raises(StorageError):
        draw_attention_matrix(WEIGHTS, OUTPUTS, SOURCES).save(tmp_path / "no" / "a.png")


def test_missing_matplotlib_raises_with_the_install_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(NotFoundError, match=r"pip install 'seqloom\[plots\]'"):
        draw_attention_matrix(WEIGHTS, OUTPUTS, SOURCES).save(tmp_path / "a.png")


def test_large_matrix_is_one_image_with_a_pixel_for_each_cell(tmp_path: Path) -> None:
    weights = [[1.0, *[0.0] * 99]] * 100
    figure = draw_attention_matrix(weights, ["a"] * 100, ["b"] * 100)
    [data] = re.findall(r'href="data:image/png;base64,([^"]+)"', figure)
    with Image.open(io.BytesIO(base64.b64decode(data))) as image:
        assert image.size == (100, 100)
        opacity = np.array(image)[..., 3]
    assert (opacity[:, 0] == 255).all()
    assert not opacity[:, 1:].any()
    figure.save(tmp_path / "a.png")
    with Image.open(tmp_path / "a.png") as image:
        assert image.width < 8_000


def test_png_has_twice_the_size_of_svg(tmp_path: Path) -> None:
    figure = draw_attention_matrix(WEIGHTS, OUTPUTS, SOURCES)
    figure.save(tmp_path / "a.png")
    [size] = re.findall(r'viewBox="0 0 (\d+) (\d+)"', figure)
    with Image.open(tmp_path / "a.png") as image:
        assert image.size == (2 * int(size[0]), 2 * int(size[1]))


def test_signed_cells_have_two_colours_and_their_numbers() -> None:
    drawing = Drawing("", "")
    draw_matrix(drawing, [[-0.5, 1.0]], ["a"], ["b", "c"], signed=True)
    cells = re.findall(r'<rect class="(\w+)"[^>]*opacity="([\d.]+)"', drawing.render())
    assert [style for style, _ in cells] == ["shade", "positive"]
    assert float(cells[0][1]) < float(cells[1][1])
    assert ">-0.50<" in drawing.render()


def test_figures_have_the_light_and_dark_colours_of_the_web_page(tmp_path: Path) -> None:
    style = (COMPONENTS / "base.css").read_text(encoding="utf-8")
    figure = draw_attention_matrix(WEIGHTS, OUTPUTS, SOURCES)
    for name in ("accent", "ink", "card"):
        [colours] = re.findall(rf"--{name}: light-dark\((#\w+), (#\w+)\);", style)
        assert all(f"--{name}:{colour};" in figure for colour in colours)
    figure.save(tmp_path / "a.png")
    with Image.open(tmp_path / "a.png") as image:
        [card] = re.findall(r"--card: light-dark\(#(\w+), ", style)
        assert image.convert("RGB").getpixel((0, 0)) == tuple(bytes.fromhex(card))


def test_text_of_a_picture_can_only_be_saved_as_svg(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"Name the file a\.svg"):
        Svg("<svg/>").save(tmp_path / "a.png")
