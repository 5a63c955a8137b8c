"""The variants of the low-resource benchmark and its page."""

import argparse
import gzip
import json
from pathlib import Path

import pytest

from bench.low_resource import PRESET, RECIPES, VARIANTS, measure, page
from seqloom.config.loading.loader import load_recipe
from support.toy_languages import write_languages


@pytest.mark.parametrize("recipe", RECIPES)
def test_all_variants_differ(recipe: str) -> None:
    configs = [load_recipe(recipe, settings).config for settings in VARIANTS.values()]
    assert all(
        config != earlier for index, config in enumerate(configs) for earlier in configs[:index]
    )


@pytest.mark.slow
def test_each_measured_variant_has_a_row_on_the_page(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "iwslt14-de-en"
    folder.parent.mkdir()
    write_languages(folder, ["train-lowres.tok.lc", "valid.tok.lc", "test.tok.lc"], lines=60)
    assert gzip.decompress((folder / "test.tok.lc.de.gz").read_bytes())
    tiny = [
        *(f"model.{side}={{kind='transformer', width=8, layers=1, feedforward=8, "
          "attention={heads=2}}" for side in ("encoder", "decoder")),
        *("training.steps=2", "training.schedule={kind='constant'}", "training.evaluate_every=2"),
        *("training.compile=false", "text.tokenizer.size=50", "decoding.max_length=5"),
    ]  # fmt: skip
    arguments = argparse.Namespace(out=tmp_path, data=tmp_path / "data", settings=tiny)
    for variant in (PRESET, "preset small"):
        measure("iwslt14-lowres-de-en", variant, 1, arguments)
    text = page([json.loads(path.read_text()) for path in sorted(tmp_path.glob("*.json"))])
    assert "tok:none" in text
    assert text.count("\n| preset ") == 2
