"""Subword regularisation: a training split is segmented into subwords several times at random. The
epochs use these segmentations in turn.

Methods: Kudo 2018 for unigram subwords, and Provilkov et al. 2020 for BPE (BPE-dropout).
"""

import hashlib
from dataclasses import replace

from seqloom.config.schema.text import SubwordSamplingConfig
from seqloom.core.errors import ConfigError
from seqloom.data.corpus.corpus import Corpus, build_corpus
from seqloom.data.corpus.dataset import ProgressCallback
from seqloom.data.modalities.text import TextModality
from seqloom.data.preparation.request import CorpusRequest
from seqloom.text.subwords import SampledSubwordTokenizer, SubwordTokenizer
from seqloom.text.tokenizer import Tokenizer


def build_variants(
    request: CorpusRequest,
    sampling: SubwordSamplingConfig,
    seed: int,
    progress: ProgressCallback,
) -> Corpus:
    """Build `sampling.variants` corpora, each with a different segmentation. Return the first
    corpus; its method `for_epoch` cycles through all of them.

    All corpora are cached. They depend only on the request, the seed and `sampling.alpha`.
    """
    assert request.split == "train", "only training data is segmented at random"
    folders = []
    for index in range(sampling.variants):
        variant_seed = _variant_seed(seed, index)
        source = request.source
        if isinstance(source, TextModality):
            source = TextModality(_sampled(source.tokenizer, sampling, variant_seed))
        variant = replace(
            request,
            source=source,
            target=_sampled(request.target, sampling, variant_seed),
        )
        folders.append(build_corpus(variant, progress).folder)
    return Corpus(folders[0], folders[1:])


def _sampled(tokenizer: Tokenizer, sampling: SubwordSamplingConfig, seed: int) -> Tokenizer:
    if not isinstance(tokenizer, SubwordTokenizer):
        raise ConfigError(
            "text.sampling: requires a subword tokenizer; remove it, or set "
            "text.tokenizer.kind = 'subwords'"
        )
    return SampledSubwordTokenizer(tokenizer, sampling.alpha, seed)


def _variant_seed(seed: int, variant: int) -> int:
    """Derive the seed of a variant. The seed has 32 bits, because sentencepiece accepts no more."""
    digest = hashlib.sha256(f"{seed} {variant}".encode()).digest()
    return int.from_bytes(digest[:4], "big")
