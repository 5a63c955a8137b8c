"""Outputs of a run, compared with those of its exported forms.

Exports the run to the Marian format of Hugging Face and converts that folder with CTranslate2's own
converter. Then it translates sentences of the run's test split with seqloom, transformers and
CTranslate2, with greedy search and with beam search, and shows how many outputs are equal, and every
output that differs.
"""

import argparse
import warnings
from argparse import Namespace
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from seqloom.config.schema.decoding import BeamConfig, DecodingConfig, GreedyConfig
from seqloom.data.readers.splits import read_split
from seqloom.inference.prediction import Prediction
from seqloom.inference.run import Run, load
from seqloom.interop.exporter import export_run

MAX_LENGTH = 100
BATCH = 50


class Output(NamedTuple):
    """An output of another toolkit. The score is None for greedy search."""

    text: str
    score: float | None


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", type=Path)
    parser.add_argument(
        "--sentences", type=int, default=500, help="of the test split (default: 500)"
    )


def measure(options: Namespace) -> Iterator[dict[str, Any]]:
    run = load(options.run, engine="torch")
    pairs = islice(read_split(run.config.data, "test"), options.sentences)
    texts = [example.source for example in pairs]
    results: dict[str, Any] = {}
    with TemporaryDirectory() as temporary:
        folder = Path(temporary) / "marian"
        print(export_run(run, "huggingface", folder))
        for beams in (1, 5):
            ours = translate_with_seqloom(run, texts, beams)
            for name, translate in (("transformers", transformers), ("CTranslate2", ctranslate2)):
                theirs = translate(folder, texts, beams)
                results[f"{name}, beam {beams}"] = compare(texts, ours, theirs)
    yield results


def translate_with_seqloom(run: Run, texts: Sequence[str], beams: int) -> list[Prediction]:
    rules: dict[str, Any] = {"max_length": MAX_LENGTH, "length_counts_end": True}
    decoding: DecodingConfig = GreedyConfig(**rules)
    if beams > 1:
        # The search of transformers with early_stopping=True, and of CTranslate2.
        decoding = BeamConfig(width=beams, extra_candidate=True, rank_unfinished=True, **rules)
    return run.translate(texts, decoding=decoding, attention=False, split=False, pass_through=False)


def marian_tokenizer(folder: Path) -> Any:
    from transformers import MarianTokenizer

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it recommends sacremoses
        return MarianTokenizer.from_pretrained(str(folder))


def transformers(folder: Path, texts: Sequence[str], beams: int) -> list[Output]:
    """Translate with `MarianMTModel.generate`. early_stopping=True is decoding.stopping = "count"."""
    from transformers import MarianMTModel

    tokenizer, model = marian_tokenizer(folder), MarianMTModel.from_pretrained(str(folder)).eval()
    outputs: list[Output] = []
    for start in range(0, len(texts), BATCH):
        batch = tokenizer(list(texts[start : start + BATCH]), return_tensors="pt", padding=True)
        found = model.generate(
            **batch,
            num_beams=beams,
            early_stopping=beams > 1,
            max_length=None,
            max_new_tokens=MAX_LENGTH,
            return_dict_in_generate=True,
            output_scores=beams > 1,
        )
        scores = found.sequences_scores.tolist() if beams > 1 else [None] * len(found.sequences)
        decoded = tokenizer.batch_decode(found.sequences, skip_special_tokens=True)
        outputs += map(Output, decoded, scores)
    return outputs


def ctranslate2(folder: Path, texts: Sequence[str], beams: int) -> list[Output]:
    """Convert the Marian folder with the converter of CTranslate2, and translate with it."""
    from ctranslate2 import Translator
    from ctranslate2.converters import TransformersConverter

    converted = folder.parent / f"converted-{beams}"
    TransformersConverter(str(folder)).convert(str(converted))
    tokenizer = marian_tokenizer(folder)
    translator = Translator(str(converted), compute_type="float32")
    results = translator.translate_batch(
        [tokenizer.convert_ids_to_tokens(tokenizer(text)["input_ids"]) for text in texts],
        beam_size=beams,
        length_penalty=1.0,
        min_decoding_length=0,
        max_decoding_length=MAX_LENGTH,
        return_scores=beams > 1,
        suppress_sequences=[["<unk>"]],
    )
    return [
        Output(
            tokenizer.decode(
                tokenizer.convert_tokens_to_ids(result.hypotheses[0]), skip_special_tokens=True
            ),
            result.scores[0] if beams > 1 else None,
        )
        for result in results
    ]


def compare(
    texts: Sequence[str], ours: Sequence[Prediction], theirs: Sequence[Output]
) -> dict[str, Any]:
    """The number of equal outputs, and each difference with both scores."""
    different = [
        {
            "source": text,
            "seqloom": prediction.text,
            "score": prediction.score,
            "finished": prediction.finished,
            "other": output.text,
            "other score": output.score,
        }
        for text, prediction, output in zip(texts, ours, theirs, strict=True)
        if prediction.text != output.text
    ]
    return {"equal": len(texts) - len(different), "outputs": len(texts), "different": different}


def table(results: dict[str, Any]) -> str:
    lines = []
    for name, result in results.items():
        if name != "about":
            lines.append(f"{name}: {result['equal']} of {result['outputs']} outputs are equal")
            lines += [f"  {each}" for each in result["different"]]
    return "\n".join(lines)
