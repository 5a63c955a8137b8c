"""Exports a run in the format of another toolkit."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from seqloom.core.storage import MANIFEST, atomic_folder
from seqloom.inference.run import Run
from seqloom.interop.ctranslate2_export import (
    check_ctranslate2,
    verify_ctranslate2,
    write_ctranslate2,
)
from seqloom.interop.foreign_model import check_unused
from seqloom.interop.marian_export import check_marian, verify_marian, write_marian
from seqloom.interop.model_card import model_card
from seqloom.interop.text_rules import raise_reasons
from seqloom.interop.verification_texts import verification_texts

ExportFormat = Literal["huggingface", "ctranslate2"]

MARIAN_USAGE = """
from transformers import MarianMTModel, MarianTokenizer

tokenizer = MarianTokenizer.from_pretrained("FOLDER")
model = MarianMTModel.from_pretrained("FOLDER")
batch = tokenizer(["A sentence."], return_tensors="pt", padding=True)
print(tokenizer.batch_decode(model.generate(**batch), skip_special_tokens=True))
"""
CTRANSLATE2_USAGE = """
import ctranslate2
import sentencepiece

translator = ctranslate2.Translator("FOLDER")
source = sentencepiece.SentencePieceProcessor("FOLDER/source.spm")
target = sentencepiece.SentencePieceProcessor("FOLDER/target.spm")
[result] = translator.translate_batch([source.encode("A sentence.", out_type=str)])
print(target.decode(result.hypotheses[0]))
"""


@dataclass(frozen=True)
class Exporter:
    """Functions that export to one format.

    name:    name of the format, for messages
    library: library that loads the exported model, for the model card
    usage:   example program for the model card. FOLDER stands for the name of the exported folder
    check:   lists the reasons why a run cannot be exported to the format
    write:   writes the files to an existing folder
    verify:  compares the files with the run on some texts, and returns a summary
    """

    name: str
    library: str
    usage: str
    check: Callable[[Run], list[str]]
    write: Callable[[Run, Path], None]
    verify: Callable[[Run, Path, Sequence[str]], str]


EXPORTERS: dict[ExportFormat, Exporter] = {
    "huggingface": Exporter(
        "the Marian format of Hugging Face",
        "transformers",
        MARIAN_USAGE,
        check_marian,
        write_marian,
        verify_marian,
    ),
    "ctranslate2": Exporter(
        "CTranslate2",
        "ctranslate2",
        CTRANSLATE2_USAGE,
        check_ctranslate2,
        write_ctranslate2,
        verify_ctranslate2,
    ),
}


def export_run(run: Run, to: ExportFormat, out: Path, license_: str | None = None) -> str:
    """Export a run to a new folder, and compare the result with the run.

    The folder appears only if the comparison succeeds. Returns a summary of the comparison.

    run:      a run that was loaded with the engine "torch"
    license_: identifier of the licence for the model card
    """
    exporter = EXPORTERS[to]
    check_unused(out)
    raise_reasons(run, exporter.name, exporter.check(run))
    texts = verification_texts(run)
    with atomic_folder(out) as temporary:
        exporter.write(run, temporary)
        verified = exporter.verify(run, temporary, texts)
        usage = exporter.usage.replace("FOLDER", out.name)
        card = model_card(run, exporter.library, usage, verified, license_)
        (temporary / "README.md").write_text(card, encoding="utf-8")
    # The manifest belongs to run folders. Other toolkits do not use it.
    (out / MANIFEST).unlink()
    return verified
