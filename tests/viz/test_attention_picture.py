"""An attention matrix as a file."""

import sys
from pathlib import Path

import pytest
from PIL import Image

from seqloom.core.errors import ConfigError, NotFoundError, StorageError
from seqloom.viz.attention import save_attention

WEIGHTS = [[0.1, 0.9], [0.8, 0.2], [0.5, 0.5]]
OUTPUTS = ["I", "$x $", "日本"]
SOURCES = ["ich", "שלום"]


def test_a_picture_is_written_in_the_format_of_its_name(tmp_path: Path) -> None:
    save_attention(tmp_path / "a.png", WEIGHTS, OUTPUTS, SOURCES, "A title")
    with Image.open(tmp_path / "a.png") as picture:
        assert picture.format == "PNG"
        assert picture.width > 100
    save_attention(tmp_path / "a.svg", WEIGHTS, OUTPUTS, SOURCES)
    assert "<svg" in (tmp_path / "a.svg").read_text(encoding="utf-8")


def test_the_stronger_weight_is_the_darker_cell(tmp_path: Path) -> None:
    shades = []
    for weight in (0.0, 0.5, 1.0):
        save_attention(tmp_path / "a.png", [[1 - weight, weight]], ["a"], ["b", "c"])
        with Image.open(tmp_path / "a.png") as picture:
            last = picture.convert("L").crop(
                (picture.width - 30, picture.height - 30, *picture.size)
            )
            shades.append(last.resize((1, 1)).tobytes()[0])
    assert shades == sorted(shades, reverse=True)
    assert shades[0] > shades[-1]


def test_many_tokens_do_not_make_a_picture_without_end(tmp_path: Path) -> None:
    save_attention(tmp_path / "a.png", [[0.01] * 300], ["a" * 500], ["b"] * 300)
    with Image.open(tmp_path / "a.png") as picture:
        assert picture.width < 8_000


def test_another_format_is_refused_with_the_ones_there_are(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"pictures are png, svg, pdf; name the file a\.png"):
        save_attention(tmp_path / "a.bmp", WEIGHTS, OUTPUTS, SOURCES)


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot be written"):
        save_attention(tmp_path / "no" / "a.png", WEIGHTS, OUTPUTS, SOURCES)


def test_without_matplotlib_the_way_to_install_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(NotFoundError, match=r"needs matplotlib.*pip install 'seqloom\[plots\]'"):
        save_attention(tmp_path / "a.png", WEIGHTS, OUTPUTS, SOURCES)
