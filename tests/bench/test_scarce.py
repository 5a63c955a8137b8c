"""What bench/scarce would train can be read, and its page is made from what it writes."""

import argparse
import gzip
import json
from pathlib import Path

import pytest

from bench.scarce import RECIPES, VARIANTS, WHOLE, measure, page
from seqloom.config.loading.loader import load_recipe
from toy_languages import write_languages


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_variant_differs_from_every_other(recipe: str) -> None:
    configs = [load_recipe(recipe, settings).config for settings in VARIANTS.values()]
    assert all(one != other for n, one in enumerate(configs) for other in configs[:n])


def test_a_result_becomes_a_row(tmp_path: Path) -> None:
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
    chosen = argparse.Namespace(out=tmp_path, data=tmp_path / "data", settings=tiny)
    for variant in (WHOLE, "preset small"):
        measure("iwslt14-lowres-de-en", variant, 1, chosen)
    written = page([json.loads(path.read_text()) for path in sorted(tmp_path.glob("*.json"))])
    assert "tok:none" in written
    assert written.count("\n| preset ") == 2
