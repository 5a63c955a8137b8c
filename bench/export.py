"""Compares a run with its exported forms: python -m bench.export RUN [COUNT]

It exports the run to the Marian format of Hugging Face and converts that folder with CTranslate2's own
converter. Then it translates sentences of the run's test split with seqloom, transformers and
CTranslate2, with greedy search and with beam search, and prints how many outputs are equal, and every
output that differs.
"""

import sys
import warnings
from collections.abc import Sequence
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


def main() -> None:
    run = load(Path(sys.argv[1]), engine="torch")
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 500
    texts = [example.source for example in islice(read_split(run.config.data, "test"), count)]
    with TemporaryDirectory() as temporary:
        folder = Path(temporary) / "marian"
        print(export_run(run, "huggingface", folder))
        for beams in (1, 5):
            ours = translate_with_seqloom(run, texts, beams)
            report(f"transformers, beam {beams}", texts, ours, transformers(folder, texts, beams))
            report(f"CTranslate2, beam {beams}", texts, ours, ctranslate2(folder, texts, beams))


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


def report(
    name: str, texts: Sequence[str], ours: Sequence[Prediction], theirs: Sequence[Output]
) -> None:
    """Print the number of equal outputs, and each difference with both scores."""
    rows = list(zip(texts, ours, theirs, strict=True))
    different = [row for row in rows if row[1].text != row[2].text]
    print(f"{name}: {len(rows) - len(different)} of {len(rows)} outputs are equal")
    for text, prediction, output in different:
        limit = "" if prediction.finished else ", reached the length limit"
        print(f"  {text}\n    seqloom ({prediction.score:.4f}{limit}): {prediction.text}")
        score = "" if output.score is None else f" ({output.score:.4f})"
        print(f"    other{score}: {output.text}")


if __name__ == "__main__":
    main()
