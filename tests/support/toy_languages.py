"""A parallel corpus of four languages with eight words each, in files as Multi30k has them."""

import gzip
from collections.abc import Sequence
from pathlib import Path
from random import Random

WORDS = {
    "en": ["dog", "cat", "man", "runs", "sits", "red", "big", "here"],
    "de": ["hund", "katze", "mann", "läuft", "sitzt", "rot", "groß", "hier"],
    "fr": ["chien", "chat", "homme", "court", "assis", "rouge", "grand", "ici"],
    "cs": ["pes", "kočka", "muž", "běží", "sedí", "červený", "velký", "zde"],
}


def translate_words(sentence: str, source: str, target: str) -> str:
    """The exact translation: word by word."""
    return " ".join(WORDS[target][WORDS[source].index(word)] for word in sentence.split())


def write_languages(folder: Path, files: Sequence[str], lines: int = 200) -> Path:
    """Write <file>.<language>.gz for each file and language; equal lines are translations."""
    folder.mkdir(exist_ok=True)
    for number, name in enumerate(files):
        random = Random(number)
        sentences = [random.choices(range(8), k=random.randint(1, 4)) for _ in range(lines)]
        for language, words in WORDS.items():
            text = "".join(" ".join(words[i] for i in sentence) + "\n" for sentence in sentences)
            (folder / f"{name}.{language}.gz").write_bytes(gzip.compress(text.encode()))
    return folder
