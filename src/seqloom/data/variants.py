"""A training split, cut into subwords in several random ways: one for each epoch in turn."""

import hashlib
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from seqloom.config.schema.text import SubwordSamplingConfig
from seqloom.core.errors import ConfigError
from seqloom.data.corpus import Corpus, CorpusRequest, build_corpus
from seqloom.text.subwords import SampledSubwordTokenizer, SubwordTokenizer, run_with_sampling_seed
from seqloom.text.tokenizer import Tokenizer


def build_variants(
    request: CorpusRequest,
    sampling: SubwordSamplingConfig,
    seed: int,
    progress: Callable[[int], None],
) -> Corpus:
    """The corpus of the first epoch, which knows those of the others. All are kept in the cache
    and depend on the text, the tokenizers, the seed and alpha alone."""
    assert request.split == "train", "what is scored is never drawn"
    folders = []
    for number in range(sampling.variants):
        drawn = _seed_of(seed, number)
        variant = replace(
            request,
            source=None if request.source is None else _sampled(request.source, sampling, drawn),
            target=_sampled(request.target, sampling, drawn),
        )
        folders.append(
            run_with_sampling_seed(drawn, partial(build_corpus, variant, progress)).folder
        )
    return Corpus(folders[0], folders[1:])


def _sampled(tokenizer: Tokenizer, sampling: SubwordSamplingConfig, seed: int) -> Tokenizer:
    if not isinstance(tokenizer, SubwordTokenizer):
        raise ConfigError(
            "text.sampling: only subwords can be cut in several ways; leave it out, or set "
            "text.tokenizer.kind = 'subwords'"
        )
    return SampledSubwordTokenizer(tokenizer, sampling.alpha, seed)


def _seed_of(seed: int, variant: int) -> int:
    """32 bits, which is what sentencepiece takes."""
    digest = hashlib.sha256(f"{seed} {variant}".encode()).digest()
    return int.from_bytes(digest[:4], "big")
