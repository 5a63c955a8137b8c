"""Decides from the training data whether texts are split into sentences before translation."""

from itertools import islice

from seqloom.config.schema.recipe import RunConfig
from seqloom.config.schema.task import TranslationConfig
from seqloom.data.readers.splits import first_of_each_group, read_split
from seqloom.text.sentences import ends_like_a_sentence, split_text

SAMPLE_SIZE = 1_000
"""Maximum number of training examples that are examined."""
MAX_READ = 20_000
"""Maximum number of training examples that are read to find examples of every group."""
MIN_SENTENCE_SHARE = 0.5
"""Minimum share of sources, and of targets, that end like a sentence. Most lines of code, tables,
labels and pronunciations do not end like a sentence."""
MAX_SPLIT_SHARE = 0.1
"""Maximum share of sources that contain several sentences. If there are more, the model has learned
to translate several sentences at once, and may need the other sentences as context."""


def resolve_sentence_splitting(config: RunConfig) -> RunConfig:
    """Return the recipe with text.split_sentences = "auto" replaced by true or false.

    The value is true if most training examples are single sentences. Only recipes for translation
    are changed, because other tasks never split texts into sentences.
    """
    if config.text.split_sentences != "auto" or not isinstance(config.task, TranslationConfig):
        return config
    text = config.text.model_copy(update={"split_sentences": _trains_on_sentences(config)})
    return config.model_copy(update={"text": text})


def _trains_on_sentences(config: RunConfig) -> bool:
    examples = first_of_each_group(islice(read_split(config.data, "train"), MAX_READ), SAMPLE_SIZE)
    sources = sum(ends_like_a_sentence(example.source) for example in examples)
    targets = sum(ends_like_a_sentence(example.target) for example in examples)
    split = sum(len(split_text(example.source).segments) > 1 for example in examples)
    required = MIN_SENTENCE_SHARE * len(examples)
    return sources >= required and targets >= required and split <= MAX_SPLIT_SHARE * len(examples)
