"""Writes a run in the format of CTranslate2, and compares the result with the run."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import sentencepiece

from seqloom.config.schema.decoding import BeamConfig, GreedyConfig
from seqloom.config.schema.task import TranslationConfig
from seqloom.core.errors import StorageError
from seqloom.inference.engine.convert import TokenNames, convert, embedders, stored_positions
from seqloom.inference.engine.package import ctranslate2
from seqloom.inference.engine.support import unsupported_model
from seqloom.inference.options import PredictionOptions
from seqloom.inference.prediction import Prediction
from seqloom.inference.run import Run
from seqloom.interop.text_rules import tokenizer_reasons
from seqloom.text.subwords import SubwordTokenizer
from seqloom.text.vocabulary import END, SPECIAL_TOKENS, UNKNOWN

TOLERANCE = 1e-4
"""Maximum difference between log-probabilities of the run and of the exported model."""
OUTPUT_LIMIT = 64
"""Maximum length of the outputs that are compared."""
LIMITS = {"min_decoding_length": 0, "max_decoding_length": OUTPUT_LIMIT, "max_input_length": 0}


def check_ctranslate2(run: Run) -> list[str]:
    """List the reasons why a run cannot become a CTranslate2 model with sentencepiece tokenizers.

    The list is empty if the run can be exported.
    """
    task = run.config.task
    reasons = unsupported_model(run.model)
    if not isinstance(task, TranslationConfig):
        reasons.append(f"task.kind: '{task.kind}' is not translation")
    elif task.tag_side == "target":
        reasons.append(
            "task.tag_side: the tag must be in the source; train with tag_side = 'source'"
        )
    return [*reasons, *tokenizer_reasons(run.task.source_tokenizer, run.task.target_tokenizer)]


def write_ctranslate2(run: Run, folder: Path) -> None:
    """Write the model, its vocabularies and the sentencepiece models to a folder."""
    source, target = subword_tokenizers(run)
    write_model(run, folder)
    (folder / "source.spm").write_bytes(source.model)
    (folder / "target.spm").write_bytes(target.model)


def write_model(run: Run, folder: Path) -> None:
    """Write the model in float32 and its vocabularies to a folder.

    The model is configured so that CTranslate2 appends END to every source.
    """
    source, target = subword_tokenizers(run)
    names = TokenNames(
        source=source.pieces(range(source.size)),
        target=target.pieces(range(target.size)),
        add_source_end=True,
    )
    convert(run.model, folder, "float32", names)


def subword_tokenizers(run: Run) -> tuple[SubwordTokenizer, SubwordTokenizer]:
    source, target = run.task.source_tokenizer, run.task.target_tokenizer
    assert isinstance(source, SubwordTokenizer)
    assert isinstance(target, SubwordTokenizer)
    return source, target


def verify_ctranslate2(run: Run, folder: Path, texts: Sequence[str]) -> str:
    """Load the exported folder with CTranslate2 and sentencepiece, and compare it with the run.

    Returns a summary. If the two differ, raises a StorageError that says what differs.
    """
    return verify_model(run, folder, folder / "source.spm", texts)


def verify_model(run: Run, folder: Path, tokenizer: Path, texts: Sequence[str]) -> str:
    """Compare an exported model, in the format of CTranslate2, with the run.

    Returns a summary. If model and run differ, raises a StorageError that says what differs.

    folder:    folder of the CTranslate2 model
    tokenizer: sentencepiece model of the source
    texts:     source texts that the exported model and the run both translate
    """
    package = ctranslate2()
    translator = package.Translator(str(folder), device="cpu", compute_type="float32")
    processor = sentencepiece.SentencePieceProcessor(str(tokenizer))
    source, _ = subword_tokenizers(run)
    limit = stored_positions(embedders(run.model)[0])
    pieces = [processor.encode(text, out_type=str) for text in texts]
    known = set(source.pieces(range(source.size)))
    for text, found in zip(texts, pieces, strict=True):
        names = [piece if piece in known else SPECIAL_TOKENS[UNKNOWN] for piece in found]
        if names != source.pieces(source.encode(text)):
            raise _difference(f"the run and CTranslate2 tokenise {text!r} differently")
    compared = [i for i, found in enumerate(pieces) if 0 < len(found) < limit]
    sources, inputs = [pieces[i] for i in compared], [texts[i] for i in compared]
    greedy = GreedyConfig(max_length=OUTPUT_LIMIT, allow_unknown=True)
    expected = run.predict(inputs, PredictionOptions(attention=False), decoding=greedy)
    outputs = translator.translate_batch(sources, beam_size=1, **LIMITS)
    for text, [ours], result in zip(inputs, expected, outputs, strict=True):
        if result.hypotheses[0] != _pieces(ours):
            raise _difference(
                f"the greedy outputs of the run and of CTranslate2 differ for {text!r}"
            )
    largest = _probability_difference(translator, sources, [ours for [ours] in expected])
    if not largest <= TOLERANCE:
        raise _difference(
            f"the log-probabilities of the run and of CTranslate2 differ by {largest:.1e}"
        )
    same = _compare_beams(run, translator, inputs, sources)
    return (
        f"compared on {len(inputs)} sentences: same tokens, log-probabilities differ by at most "
        f"{largest:.0e}, same greedy outputs, {same} of {len(inputs)} beam search outputs are the "
        "same"
    )


def _difference(what: str) -> StorageError:
    return StorageError(
        f"the exported model differs from the run: {what}. Nothing was written. This is an error "
        "in seqloom; please report it with the recipe."
    )


def _pieces(prediction: Prediction) -> list[str]:
    """Return the pieces of an output, except END."""
    return [piece for piece in prediction.pieces if piece != SPECIAL_TOKENS[END]]


def _probability_difference(
    translator: Any, sources: Sequence[list[str]], outputs: Sequence[Prediction]
) -> float:
    """Return the maximum difference between the log-probabilities of the run and of CTranslate2.

    The maximum is over all tokens of all outputs.
    """
    scored = translator.score_batch(
        list(sources), [_pieces(output) for output in outputs], max_input_length=0
    )
    return max(
        abs(ours - theirs)
        for output, result in zip(outputs, scored, strict=True)
        # CTranslate2 also scores END after an output that reached the length limit.
        for ours, theirs in zip(output.log_probabilities, result.log_probs, strict=False)
    )


def _compare_beams(
    run: Run, translator: Any, texts: Sequence[str], sources: Sequence[list[str]]
) -> int:
    """Return how many beam search outputs of the run and of CTranslate2 are the same.

    An output may differ if it reaches the length limit, or if the scores of two hypotheses are
    equal up to rounding errors.
    """
    decoding = BeamConfig(
        width=5,
        max_length=OUTPUT_LIMIT,
        length_counts_end=True,
        allow_unknown=True,
        extra_candidate=True,
        rank_unfinished=True,
    )
    ours = run.translate(texts, decoding=decoding, attention=False, split=False, pass_through=False)
    found = translator.translate_batch(
        list(sources),
        beam_size=5,
        length_penalty=1.0,
        **LIMITS,
    )
    return sum(
        _pieces(prediction) == result.hypotheses[0]
        for prediction, result in zip(ours, found, strict=True)
    )
