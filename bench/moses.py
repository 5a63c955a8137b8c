"""BLEU of lower-cased, Moses-tokenised text, as published for Multi30k. Requires sacremoses.

Outputs and references are lower-cased, their punctuation is normalised, and the Moses tokeniser
splits them, as in the script of the data set. BLEU is computed on the tokens between spaces.
"""

from collections.abc import Sequence

from seqloom.config.schema.corpora import ParallelConfig
from seqloom.config.schema.recipe import RunConfig
from seqloom.data.readers.splits import read_split
from seqloom.metrics.bleu import bleu


def moses_tokenise(lines: Sequence[str], language: str) -> list[str] | None:
    """Lower-case, normalise and tokenise each line. None if sacremoses is not installed."""
    try:
        from sacremoses import MosesPunctNormalizer, MosesTokenizer
    except ImportError:
        return None
    normaliser, tokeniser = MosesPunctNormalizer(lang=language), MosesTokenizer(lang=language)
    normalised = [normaliser.normalize(line.lower()) for line in lines]
    return [tokeniser.tokenize(line, return_str=True) for line in normalised]


def multi30k_score(outputs: Sequence[str], config: RunConfig) -> tuple[float, str] | None:
    """BLEU and its signature. None for other data or without sacremoses."""
    corpus = config.data.test[0] if config.data.test else None
    if not isinstance(corpus, ParallelConfig) or not isinstance(corpus.target, str):
        return None
    if "test_2016" not in corpus.target:
        return None
    language = corpus.target.split(".")[1]
    references = [example.target for example in read_split(config.data, "test")]
    hypotheses = moses_tokenise(outputs, language)
    targets = moses_tokenise(references, language)
    if hypotheses is None or targets is None:
        return None
    result = bleu(hypotheses, [[line] for line in targets], tokenize="none")
    signature = f"{result.signature}, lower-cased, normalised and tokenised by sacremoses"
    return result.value, signature
