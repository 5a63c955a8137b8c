"""Where an output looked, whoever found it and whatever looked."""

import pytest
import torch
from zoo import EVERY_DECODER, VOCABULARY, Specimen

from seqloom.config.schema.decoding import (
    BeamConfig,
    GreedyConfig,
    SampleConfig,
    SearchConfig,
)
from seqloom.decoding.build import build_search
from seqloom.decoding.forced import force
from seqloom.decoding.search import SearchRequest
from seqloom.metrics.subword_merging import merge_words
from seqloom.runs.attention_maps import ALL_HEADS, AttentionReduction, HeadChoice

LENGTHS = (4, 2)
SEARCHES: list[SearchConfig] = [
    GreedyConfig(),
    BeamConfig(width=2),
    SampleConfig(samples=2, seed=3),
]
LOOKING = [
    one
    for one in EVERY_DECODER
    if one.attention is not None and one.config.encoder.kind != "none" and not one.gives_labels
]


@pytest.mark.parametrize("specimen", LOOKING, ids=lambda one: one.name)
def test_a_search_shows_where_the_model_looks_when_it_is_made_to_say_the_same(
    specimen: Specimen,
) -> None:
    """Every layer and head, traced back through whatever the search did; and rows add up to 1,
    between pieces and between words."""
    model = specimen.build()
    memory, every = specimen.memory(model, LENGTHS), AttentionReduction(all_heads=True)
    assert specimen.attention is not None
    for config in SEARCHES:
        request = SearchRequest([3] * len(LENGTHS), keep_attention=every.reduce)
        with torch.no_grad():
            found = [best[0] for best in build_search(config)(model.decoder, memory, request)]
            told = force(model.decoder, memory, [one.tokens for one in found], every.reduce)
        for own, same, length in zip(found, told, LENGTHS, strict=True):
            assert own.attention is not None
            assert same.attention is not None
            steps = len(own.log_probabilities)
            assert own.attention.shape[0] == steps
            assert own.attention.shape[2:] == (specimen.attention.heads, length)
            torch.testing.assert_close(own.attention, same.attention[:steps])
            words = [0, *range(steps - 1)], [0, *range(length - 1)]
            merged = merge_words(own.attention.numpy(), *words)
            assert merged.sum(axis=-1) == pytest.approx(1)


@pytest.mark.parametrize("specimen", LOOKING[::9], ids=lambda one: one.name)
def test_what_is_kept_of_a_step_is_the_mean_of_all_its_heads_and_of_the_chosen(
    specimen: Specimen,
) -> None:
    model = specimen.build()
    memory = specimen.memory(model, LENGTHS)
    state = model.decoder.start(memory, 2)
    attention = model.decoder.step(torch.full((2,), VOCABULARY - 1), state).attention
    assert attention is not None
    choice = HeadChoice(((attention.shape[1] - 1, 0),), shift=1)
    little, much = AttentionReduction(False, choice), AttentionReduction(True, choice)
    one, other = little.maps(little.reduce(attention)), much.maps(much.reduce(attention))
    torch.testing.assert_close(one.mean, attention.mean((1, 2)))
    torch.testing.assert_close(one.alignment, attention[[1, 1], -1, 0])  # one step later
    torch.testing.assert_close(one.mean, other.mean)
    torch.testing.assert_close(one.alignment, other.alignment)
    assert one.heads is None
    assert other.heads is attention


def test_without_a_choice_words_are_aligned_by_all_heads() -> None:
    attention = torch.rand(5, 2, 3, 4).softmax(-1)
    looks = AttentionReduction().maps(AttentionReduction().reduce(attention))
    torch.testing.assert_close(looks.alignment, looks.mean)
    torch.testing.assert_close(looks.mean, ALL_HEADS.mean(attention))
