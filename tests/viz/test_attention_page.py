"""Attention as a page: one file, whatever the words are."""

import json
import re
from pathlib import Path

import numpy as np

from seqloom.metrics.merging import AttentionMap
from seqloom.viz.attention_page import Card, save_page

NASTY = ("</script><b>", "שלום", 'a"b&c')


def page_of(tmp_path: Path, *cards: Card) -> str:
    save_page(tmp_path / "a.html", "Where <they> looked", cards)
    return (tmp_path / "a.html").read_text(encoding="utf-8")


def card() -> Card:
    heads = np.random.default_rng(0).dirichlet(np.ones(3), size=(2, 2, 4))  # (T, L, H, S)
    chosen = AttentionMap(("I", "like"), NASTY, heads.mean(axis=(1, 2)))
    return Card("1", "I like", "score -0.1", "mean", chosen, AttentionMap(*_labels(chosen), heads))


def _labels(known: AttentionMap) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return known.outputs, known.sources


def test_nothing_is_fetched_from_anywhere(tmp_path: Path) -> None:
    page = page_of(tmp_path, card())
    assert not re.findall(r"""https?://|\ssrc=|<link|@import|url\(|fetch\(|\simport\s""", page)


def test_the_page_is_a_table_without_any_script(tmp_path: Path) -> None:
    page = page_of(tmp_path, card())
    chosen = card().chosen
    assert chosen is not None
    cells = re.findall(r'<td[^>]*style="--w:([\d.]+)">([^<]+)</td>', page)
    weights = chosen.weights.flatten()
    assert [float(weight) for weight, _ in cells] == [round(float(one), 4) for one in weights]
    assert [text for _, text in cells] == [str(round(100 * one)) for one in weights]
    assert page.count('<th scope="row"') == 2
    assert page.count('<th scope="col"') == 3


def test_every_head_is_in_the_file(tmp_path: Path) -> None:
    page = page_of(tmp_path, card())
    (data,) = re.findall(r'<script type="application/json">(.*?)</script>', page, flags=re.S)
    heads = np.array(json.loads(data)["heads"])
    known = card().heads
    assert known is not None
    assert heads.shape == (2, 4, 2, 3)  # layers, heads, outputs, sources
    np.testing.assert_allclose(heads.transpose(2, 0, 1, 3), known.weights, atol=1e-4)


def test_no_word_can_become_a_part_of_the_page(tmp_path: Path) -> None:
    page = page_of(tmp_path, card())
    assert "<b>" not in page
    assert page.count("</script>") == 2
    assert "Where &lt;they&gt; looked" in page
    assert 'dir="auto">שלום<' in page


def test_a_blank_line_has_its_place(tmp_path: Path) -> None:
    page = page_of(tmp_path, card(), Card("2"))
    assert page.count("<section") == 2
    assert "a blank line" in page


def test_light_and_dark_are_both_there(tmp_path: Path) -> None:
    page = page_of(tmp_path, card())
    assert "prefers-color-scheme: dark" in page
    assert "color-scheme: light dark" in page
