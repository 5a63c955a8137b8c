"""Installs an Argos package and translates texts with it.

It runs in an environment with argos-translate-lt, without seqloom:
python argos_program.py PACKAGE, with a JSON list of texts on standard input.
"""

import json
import sys
from pathlib import Path

import argostranslate.package  # type: ignore[import-not-found]
import argostranslate.sbd  # type: ignore[import-not-found]
import argostranslate.translate  # type: ignore[import-not-found]


def keep_whole(sentencizer: argostranslate.sbd.MiniSBDSentencizer, text: str) -> list[str]:
    """Replace the sentence splitter of Argos, which downloads a model on first use."""
    return [text]


argostranslate.sbd.MiniSBDSentencizer.split_sentences = keep_whole
argostranslate.package.install_from_path(Path(sys.argv[1]))
[package] = argostranslate.package.get_installed_packages()
outputs = [
    argostranslate.translate.translate(text, package.from_code, package.to_code)
    for text in json.load(sys.stdin)
]
json.dump({"name": str(package), "outputs": outputs}, sys.stdout)
