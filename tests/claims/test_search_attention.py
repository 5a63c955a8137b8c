"""The attention of a search result is the attention of the model for that output."""

import pytest
import torch
from zoo import EVERY_DECODER, VOCABULARY, Specimen, run_on

from seqloom.config.schema.decoding import (
    BeamConfig,
    GreedyConfig,
    SampleConfig,
    SearchConfig,
)
from seqloom.decoding.build import build_search
from seqloom.decoding.forced import force
from seqloom.decoding.search import SearchRequest
from seqloom.inference.attention_maps import ALL_HEADS, AttentionReduction, HeadChoice
from seqloom.metrics.subword_merging import merge_words

LENGTHS = (4, 2)
SEARCHES: list[SearchConfig] = [
    GreedyConfig(),
    BeamConfig(width=2),
    SampleConfig(samples=2, seed=3),
]
WITH_ATTENTION = [
    specimen
    for specimen in EVERY_DECODER
    if specimen.attention is not None
    and specimen.config.encoder.kind != "none"
    and not specimen.gives_labels
]


@run_on(WITH_ATTENTION)
def test_attention_of_a_search_equals_attention_of_forced_decoding(
    specimen: Specimen,
) -> None:
    """For every layer and head. Rows sum to 1, between tokens and between words, except where no
    key matches the query exactly."""
    model = specimen.build()
    memory, every = specimen.memory(model, LENGTHS), AttentionReduction(all_heads=True)
    assert specimen.attention is not None
    for config in SEARCHES:
        request = SearchRequest([3] * len(LENGTHS), keep_attention=every.reduce)
        with torch.no_grad():
            hypotheses = [best[0] for best in build_search(config)(model.decoder, memory, request)]
            forced = force(model.decoder, memory, [one.tokens for one in hypotheses], every.reduce)
        for searched, expected, length in zip(hypotheses, forced, LENGTHS, strict=True):
            assert searched.attention is not None
            assert expected.attention is not None
            steps = len(searched.log_probabilities)
            assert searched.attention.shape[0] == steps
            assert searched.attention.shape[2:] == (specimen.attention.heads, length)
            torch.testing.assert_close(searched.attention, expected.attention[:steps])
            words = [0, *range(steps - 1)], [0, *range(length - 1)]
            merged = merge_words(searched.attention.numpy(), *words)
            if specimen.attention.selection != "exact":  # no key may match the query
                assert merged.sum(axis=-1) == pytest.approx(1)


@pytest.mark.parametrize("specimen", WITH_ATTENTION[::9], ids=lambda one: one.name)
def test_a_step_keeps_the_mean_of_all_heads_and_of_the_alignment_heads(
    specimen: Specimen,
) -> None:
    model = specimen.build()
    memory = specimen.memory(model, LENGTHS)
    state = model.decoder.start(memory, 2)
    attention = model.decoder.step(torch.full((2,), VOCABULARY - 1), state).attention
    assert attention is not None
    choice = HeadChoice(((attention.shape[1] - 1, 0),), shift=1)
    means, all_heads = AttentionReduction(False, choice), AttentionReduction(True, choice)
    reduced = means.maps(means.reduce(attention))
    full = all_heads.maps(all_heads.reduce(attention))
    torch.testing.assert_close(reduced.mean, attention.mean((1, 2)))
    torch.testing.assert_close(reduced.alignment, attention[[1, 1], -1, 0])  # one step later
    torch.testing.assert_close(reduced.mean, full.mean)
    torch.testing.assert_close(reduced.alignment, full.alignment)
    assert reduced.heads is None
    assert full.heads is attention


def test_without_a_head_choice_all_heads_align_words() -> None:
    attention = torch.rand(5, 2, 3, 4).softmax(-1)
    kept = AttentionReduction().maps(AttentionReduction().reduce(attention))
    torch.testing.assert_close(kept.alignment, kept.mean)
    torch.testing.assert_close(kept.mean, ALL_HEADS.mean(attention))
