"""Writes a run as a package of Argos Translate, which LibreTranslate uses.

A package is a zip archive with one folder:

    translate-de_en-1_0/
        metadata.json          languages and versions
        model/                 a CTranslate2 model with sentencepiece pieces as vocabulary
        sentencepiece.model    the tokenizer of both languages
        README.md              the model card
"""

import json
import os
import re
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from seqloom.core.errors import ConfigError
from seqloom.core.storage import TEMPORARY_PREFIX, storage_errors
from seqloom.inference.run import Run
from seqloom.interop.ctranslate2_export import (
    check_ctranslate2,
    subword_tokenizers,
    verify_model,
    write_model,
)
from seqloom.interop.model_card import model_card
from seqloom.interop.text_rules import raise_reasons
from seqloom.interop.verification_texts import verification_texts
from seqloom.text.language_names import language_name

PACKAGE_VERSION = "1.0"
ARGOS_VERSION = "1.9.0"
"""The oldest version of Argos Translate that can load the package."""
USAGE = """
import argostranslate.package
import argostranslate.translate

argostranslate.package.install_from_path("FILE")
print(argostranslate.translate.translate("A sentence.", "SOURCE", "TARGET"))
"""


def export_argos(
    run: Run, out: Path, languages: tuple[str, str], license_: str | None = None
) -> str:
    """Write a run as a package of Argos Translate, and compare the packaged model with the run.

    The file appears only if the comparison succeeds. Returns a summary of the comparison.

    run:       a run that was loaded with the engine "torch"
    out:       the file to write, such as de_en.argosmodel
    languages: codes of the source and the target language
    license_:  identifier of the licence for the model card
    """
    if out.exists():
        raise ConfigError(f"{out}: already exists. Give the name of a new file.")
    raise_reasons(run, "the Argos format", check_argos(run))
    source, target = languages
    texts = verification_texts(run)
    with storage_errors(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=TEMPORARY_PREFIX, dir=out.parent) as temporary:
            name = f"translate-{source}_{target}-{PACKAGE_VERSION.replace('.', '_')}"
            folder = Path(temporary) / name
            (folder / "model").mkdir(parents=True)
            write_model(run, folder / "model")
            tokenizer = folder / "sentencepiece.model"
            tokenizer.write_bytes(subword_tokenizers(run)[0].model)
            verified = verify_model(run, folder / "model", tokenizer, texts)
            metadata = {
                "package_version": PACKAGE_VERSION,
                "argos_version": ARGOS_VERSION,
                "from_code": source,
                "from_name": language_name(source),
                "to_code": target,
                "to_name": language_name(target),
            }
            (folder / "metadata.json").write_text(json.dumps(metadata, indent=1), encoding="utf-8")
            usage = USAGE.replace("FILE", out.name)
            usage = usage.replace("SOURCE", source).replace("TARGET", target)
            card = model_card(run, "argostranslate", usage, verified, license_)
            (folder / "README.md").write_text(card, encoding="utf-8")
            archive = shutil.make_archive(f"{temporary}/package", "zip", temporary, name)
            os.replace(archive, out)
    return verified


def check_argos(run: Run) -> list[str]:
    """List the reasons why Argos Translate cannot run the model."""
    reasons = check_ctranslate2(run)
    source, target = run.task.source_tokenizer, run.task.target_tokenizer
    if source is None or source.digest != target.digest:
        reasons.append(
            "text.shared: Argos has one tokenizer for both languages; train with shared = true"
        )
    if run.languages.tags:
        reasons.append(
            "data: Argos cannot add the tag of a target language; export a run with one target "
            "language"
        )
    return reasons


def parse_languages(text: str) -> tuple[str, str]:
    """Parse the codes of the source and the target language, such as "de:en"."""
    match = re.fullmatch("([a-z]{2,3}):([a-z]{2,3})", text)
    if match is None:
        raise ConfigError(
            f"--languages {text!r}: must be the codes of the source and the target language, "
            "separated by a colon, for example de:en"
        )
    return match[1], match[2]
