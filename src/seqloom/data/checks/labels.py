"""Checks that every example has the right number of labels."""

from collections.abc import Iterator
from itertools import islice

import numpy as np

from seqloom.config.schema.recipe import RunConfig
from seqloom.core.errors import DataError
from seqloom.data.corpus.dataset import IntArray
from seqloom.data.corpus.vocabularies import Tokenizers
from seqloom.data.example import Split
from seqloom.data.readers.splits import read_split

MAX_LISTED = 5
"""Maximum number of examples listed in the error message."""


def frame_counts(config: RunConfig, split: Split) -> IntArray:
    """Return the number of frames of each example of a split."""
    return np.array([len(example.source.split()) for example in read_split(config.data, split)])


def label_count_error(
    config: RunConfig,
    tokenizers: Tokenizers,
    split: Split,
    source_lengths: IntArray | None,
    target_lengths: IntArray,
) -> DataError | None:
    """Return an error that lists the first MAX_LISTED examples with too many or too few labels.

    Return None if all examples have the right number of labels, or if the decoder does not predict
    labels.
    """
    decoder = config.model.decoder
    if not decoder.predicts_labels:
        return None
    if source_lengths is None:
        assert config.data.has_vectors, "labels need a source"
        source_lengths = frame_counts(config, split)
    expected = source_lengths if decoder.labels_each_position else np.ones_like(target_lengths)
    wrong = int((target_lengths != expected).sum())
    if not wrong:
        return None
    mismatches = _mismatches(config, tokenizers, split, decoder.labels_each_position)
    listed = "\n".join(islice(mismatches, MAX_LISTED))
    more = f"\n  and {wrong - MAX_LISTED:,} more" if wrong > MAX_LISTED else ""
    if decoder.labels_each_position and config.data.has_vectors:
        rule = (
            "each frame needs one label; set labels = 'frame' for the data, or "
            "model.decoder.pooling = 'last' or 'mean' for one label per sequence"
        )
    elif config.data.has_vectors:
        rule = (
            "each sequence needs one label; set labels = 'sequence' for the data, or "
            "model.decoder.pooling = 'none' for one label per frame"
        )
    elif decoder.labels_each_position:
        rule = (
            "each source token needs one label, spaces between characters included; set "
            "text.tokenizer.kind = 'characters' or 'whitespace' to match the labels"
        )
    else:
        rule = "each source needs one label; join the words of a label by _, or remove the line"
    return DataError(f"data.{split}: {rule}:\n{listed}{more}")


def _mismatches(
    config: RunConfig, tokenizers: Tokenizers, split: Split, one_per_token: bool
) -> Iterator[str]:
    """Yield a description of each example with too many or too few labels."""
    for example in read_split(config.data, split):
        source = example.source.strip()
        pieces = source.split() if tokenizers.source is None else tokenizers.source.encode(source)
        tokens = len(pieces)
        labels = len(tokenizers.target.encode(example.target.strip()))
        if labels != (tokens if one_per_token else 1):
            per_token = f" for {tokens} tokens" if one_per_token else ""
            yield f"  {example.where}: {labels} labels{per_token}"
