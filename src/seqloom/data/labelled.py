"""Labels and what they are for: there must be as many as there is to label, in every example."""

from collections.abc import Iterator
from itertools import islice

import numpy as np

from seqloom.config.schema.labels import LabelsDecoderConfig
from seqloom.config.schema.recipe import RunConfig
from seqloom.core.errors import DataError
from seqloom.data.batching import Sizes
from seqloom.data.example import Split
from seqloom.data.splits import read_split
from seqloom.data.survey import Tokenizers

SHOWN = 5


def label_problem(
    config: RunConfig,
    tokenizers: Tokenizers,
    split: Split,
    source_lengths: Sizes | None,
    target_lengths: Sizes,
) -> DataError | None:
    """What is wrong with the labels of a split, whose lengths are known; None if nothing is, or if
    its targets are no labels."""
    decoder = config.model.decoder
    if not isinstance(decoder, LabelsDecoderConfig):
        return None
    assert source_lengths is not None, "labels are for a source"
    wanted = source_lengths if decoder.labels_each_position else np.ones_like(target_lengths)
    wrong = int((target_lengths != wanted).sum())
    if not wrong:
        return None
    places = islice(_misfits(config, tokenizers, split, decoder.labels_each_position), SHOWN)
    more = f"\n  and {wrong - SHOWN:,} more" if wrong > SHOWN else ""
    if decoder.labels_each_position:
        words = (
            "labels must be as many as the tokens of the source, spaces between characters "
            "included; choose text.tokenizer.kind = 'characters' or 'whitespace' as they were made"
        )
    else:
        words = "a source has one label; join the parts of a longer one by _, or leave the line out"
    return DataError(f"data.{split}: {words}:\n" + "\n".join(places) + more)


def _misfits(
    config: RunConfig, tokenizers: Tokenizers, split: Split, each_position: bool
) -> Iterator[str]:
    """Every line whose labels are too many or too few."""
    assert tokenizers.source is not None
    for example in read_split(config.data, split):
        tokens = len(tokenizers.source.encode(example.source.strip()))
        labels = len(tokenizers.target.encode(example.target.strip()))
        if labels != (tokens if each_position else 1):
            of = f" for {tokens} tokens" if each_position else ""
            yield f"  {example.where}: {labels} labels{of}"
