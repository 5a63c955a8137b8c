"""Checks lengths: sources and targets that are longer than a model allows, and the numbers of labels."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Literal

import numpy as np

from seqloom.config.schema.recipe import RunConfig
from seqloom.core.errors import DataError
from seqloom.data.batching.layout import size_chunks
from seqloom.data.corpus.dataset import IntArray
from seqloom.data.corpus.vocabularies import Tokenizers
from seqloom.data.example import Split
from seqloom.data.readers.splits import read_split

Side = Literal["source", "target"]


def max_length_problems(
    split: str,
    lengths: Mapping[Side, IntArray | None],
    limits: Mapping[Side, Mapping[str, int]],
    is_long_text: bool,
) -> list[str]:
    """Return one message for each side of a split that has texts longer than a limit.

    split:        "train", "dev" or "general"
    lengths:      (N,) numbers of tokens without END; None if the side has no lengths
    limits:       maximum numbers of tokens, END included, by the name of the setting
    is_long_text: the lengths are those of windows of a long text
    """
    problems = []
    for side, counts in lengths.items():
        if counts is None or not limits[side]:
            continue
        limit = min(limits[side].values())
        count = sum(int((sizes > limit).sum()) for sizes in size_chunks(None, counts))
        if not count:
            continue
        if is_long_text:
            remedy = f"set data.{split}.length = {limit}"
        elif split == "train":
            remedy = f"drop them with data.filter.max_{side}_tokens = {limit - 1}"
        else:
            remedy = "remove them from the file"  # filters apply to the training split only
        longest = int(counts.max()) + 1
        too_small = [setting for setting, size in limits[side].items() if size < longest]
        changes = " and ".join(f"{setting} = {longest}" for setting in too_small)
        problems.append(
            f"  {split}: {count} {side}s have more than {limit} tokens (END included), the "
            f"longest {longest}; "
            f"set {changes}, or {remedy}"
        )
    return problems


def max_length_error(problems: Sequence[str]) -> DataError | None:
    """Return the error for the messages of `max_length_problems`; None if there are none."""
    if not problems:
        return None
    return DataError(
        "some lines are longer than the model's maximum length:\n" + "\n".join(problems)
    )


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
