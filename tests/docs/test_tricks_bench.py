"""What bench/tricks would train can be read and built."""

import sys
from pathlib import Path

import pytest

from seqloom.config.loading.loader import load_recipe
from seqloom.config.loading.toml import format_recipe, parse_toml
from seqloom.core.signature import Signature, Tokens
from seqloom.models.build import build_model

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from bench.tricks.table import difference, spread  # noqa: E402
from bench.tricks.variants import BASE, DATASETS, DECODINGS, config_of  # noqa: E402

CASES = [(name, one.name) for name, dataset in DATASETS.items() for one in dataset.variants]


@pytest.mark.parametrize(("name", "variant"), CASES)
def test_every_variant_is_a_recipe_that_differs_from_the_base(name: str, variant: str) -> None:
    dataset = DATASETS[name]
    chosen = {one.name: one for one in dataset.variants}
    config = config_of(dataset, chosen[variant], "here", [])
    assert variant == BASE or config != config_of(dataset, chosen[BASE], "here", [])
    build_model(config.model, Signature(Tokens(50), Tokens(50), shared=True))


def test_every_way_to_decode_differs_from_the_usual() -> None:
    dataset = DATASETS["tatoeba-de-en"]
    tables = parse_toml(format_recipe(config_of(dataset, dataset.variants[0], None, [])).encode())
    ways = [load_recipe(tables, settings).config.decoding for settings in DECODINGS.values()]
    assert all(one != other for i, one in enumerate(ways) for other in ways[:i])


def test_a_spread_is_mean_and_deviation() -> None:
    assert spread([40.0, 42.0]) == "41.0 ± 1.4"
    assert spread([40.0]) == "40.0"
    assert difference([42.0, 43.0], [41.0]) == "+1.5"
