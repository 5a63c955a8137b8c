"""The variants of the ablation benchmark and the formatting of its tables."""

import pytest
import torch

from bench.tricks.page import format_difference, format_spread
from bench.tricks.variants import BASE, DATASETS, DECODING_TITLES, DECODINGS, config_of
from seqloom.config.loading.loader import load_recipe
from seqloom.config.loading.toml import format_recipe, parse_toml
from seqloom.core.signature import Signature, Tokens
from seqloom.models.build import build_model

CASES = [(name, variant.name) for name, dataset in DATASETS.items() for variant in dataset.variants]


@pytest.mark.parametrize(("name", "variant"), CASES)
def test_a_variant_differs_from_the_base_and_can_be_built(name: str, variant: str) -> None:
    dataset = DATASETS[name]
    variants = {each.name: each for each in dataset.variants}
    config = config_of(dataset, variants[variant], "here", [])
    assert variant == BASE or config != config_of(dataset, variants[BASE], "here", [])
    with torch.device("meta"):  # without initialising millions of weights
        build_model(config.model, Signature(Tokens(50), Tokens(50), shared=True))


def test_all_decodings_differ() -> None:
    dataset = DATASETS["tatoeba-de-en"]
    tables = parse_toml(format_recipe(config_of(dataset, dataset.variants[0], None, [])).encode())
    configs = [load_recipe(tables, settings).config.decoding for settings in DECODINGS.values()]
    assert all(
        config != earlier for index, config in enumerate(configs) for earlier in configs[:index]
    )


def test_titles_belong_to_existing_decodings() -> None:
    assert set(DECODING_TITLES) <= set(DECODINGS)


def test_a_spread_is_mean_and_standard_deviation() -> None:
    assert format_spread([40.0, 42.0]) == "41.0 ± 1.4"
    assert format_spread([40.0]) == "40.0"
    assert format_difference([42.0, 43.0], [41.0]) == "+1.5"
