"""The attention page is one self-contained file, safe for any token."""

import json
import re
from pathlib import Path

import numpy as np

from seqloom.metrics.subword_merging import AttentionMap
from seqloom.viz.attention_page import AttentionCard, save_attention_page

UNSAFE_TOKENS = ("</script><b>", "שלום", 'a"b&c')


def write_page(tmp_path: Path, *cards: AttentionCard) -> str:
    save_attention_page(tmp_path / "a.html", "Attention of <run>", cards)
    return (tmp_path / "a.html").read_text(encoding="utf-8")


def example_maps() -> tuple[AttentionMap, AttentionMap]:
    """The mean map (T, S) and the maps of all heads (T, L, H, S)."""
    heads = np.random.default_rng(0).dirichlet(np.ones(3), size=(2, 2, 4))
    labels = (("I", "like"), UNSAFE_TOKENS)
    return AttentionMap(*labels, heads.mean(axis=(1, 2))), AttentionMap(*labels, heads)


def example_card() -> AttentionCard:
    return AttentionCard("1", "I like", "score -0.1", "mean", *example_maps())


def test_page_references_no_other_file(tmp_path: Path) -> None:
    page = write_page(tmp_path, example_card())
    assert not re.findall(r"""https?://|\ssrc=|<link|@import|url\(|fetch\(|\simport\s""", page)


def test_table_holds_all_weights_without_javascript(tmp_path: Path) -> None:
    page = write_page(tmp_path, example_card())
    weights = example_maps()[0].weights.flatten()
    cells = re.findall(r'<td[^>]*style="--weight:([\d.]+)">([^<]+)</td>', page)
    assert [float(style) for style, _ in cells] == [round(float(weight), 4) for weight in weights]
    assert [text for _, text in cells] == [str(round(100 * weight)) for weight in weights]
    assert page.count('<th scope="row"') == 2
    assert page.count('<th scope="col"') == 3


def test_page_contains_the_weights_of_every_head(tmp_path: Path) -> None:
    page = write_page(tmp_path, example_card())
    (data,) = re.findall(r'<script type="application/json">(.*?)</script>', page, flags=re.S)
    heads = np.array(json.loads(data)["heads"])
    assert heads.shape == (2, 4, 2, 3)  # layers, heads, outputs, sources
    np.testing.assert_allclose(heads.transpose(2, 0, 1, 3), example_maps()[1].weights, atol=1e-4)


def test_tokens_and_title_are_escaped(tmp_path: Path) -> None:
    page = write_page(tmp_path, example_card())
    assert "<b>" not in page
    assert page.count("</script>") == 2
    assert "Attention of &lt;run&gt;" in page
    assert 'dir="auto">שלום<' in page


def test_blank_line_has_a_card(tmp_path: Path) -> None:
    page = write_page(tmp_path, example_card(), AttentionCard("2"))
    assert page.count("<section") == 2
    assert "a blank line" in page


def test_page_has_light_and_dark_colours(tmp_path: Path) -> None:
    page = write_page(tmp_path, example_card())
    assert "prefers-color-scheme: dark" in page
    assert "color-scheme: light dark" in page
