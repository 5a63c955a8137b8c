"""Attention heat maps in image files."""

import sys
from pathlib import Path

import pytest
from PIL import Image

from seqloom.core.errors import ConfigError, NotFoundError, StorageError
from seqloom.viz.attention_figure import save_attention

WEIGHTS = [[0.1, 0.9], [0.8, 0.2], [0.5, 0.5]]
OUTPUTS = ["I", "$x $", "日本"]
SOURCES = ["ich", "שלום"]


def test_suffix_selects_the_image_format(tmp_path: Path) -> None:
    save_attention(tmp_path / "a.png", WEIGHTS, OUTPUTS, SOURCES, "A title")
    with Image.open(tmp_path / "a.png") as image:
        assert image.format == "PNG"
        assert image.width > 100
    save_attention(tmp_path / "a.svg", WEIGHTS, OUTPUTS, SOURCES)
    assert "<svg" in (tmp_path / "a.svg").read_text(encoding="utf-8")


def test_larger_weight_is_a_darker_cell(tmp_path: Path) -> None:
    shades = []
    for weight in (0.0, 0.5, 1.0):
        save_attention(tmp_path / "a.png", [[1 - weight, weight]], ["a"], ["b", "c"])
        with Image.open(tmp_path / "a.png") as image:
            last_cell = image.convert("L").crop((image.width - 30, image.height - 30, *image.size))
            shades.append(last_cell.resize((1, 1)).tobytes()[0])
    assert shades == sorted(shades, reverse=True)
    assert shades[0] > shades[-1]


def test_figure_size_is_limited_for_many_tokens(tmp_path: Path) -> None:
    save_attention(tmp_path / "a.png", [[0.01] * 300], ["a" * 500], ["b"] * 300)
    with Image.open(tmp_path / "a.png") as image:
        assert image.width < 8_000


def test_unsupported_format_raises_with_the_supported_ones(tmp_path: Path) -> None:
    message = r"Supported formats: png, svg, pdf\. Name the file a\.png"
    with pytest.raises(ConfigError, match=message):
        save_attention(tmp_path / "a.bmp", WEIGHTS, OUTPUTS, SOURCES)


def test_missing_folder_raises(tmp_path: Path) -> None:
    with pytest.raises(StorageError):
        save_attention(tmp_path / "no" / "a.png", WEIGHTS, OUTPUTS, SOURCES)


def test_missing_matplotlib_raises_with_the_install_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(NotFoundError, match=r"pip install 'seqloom\[plots\]'"):
        save_attention(tmp_path / "a.png", WEIGHTS, OUTPUTS, SOURCES)
