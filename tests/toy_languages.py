"""Four languages of a few words each, in files of the kind that Multi30k has."""

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


def translated(sentence: str, source: str, target: str) -> str:
    """Word by word, as everything is here."""
    return " ".join(WORDS[target][WORDS[source].index(word)] for word in sentence.split())


def write_languages(folder: Path, files: Sequence[str], lines: int = 200) -> Path:
    """<file>.<language>.gz in all four languages; line n of one is the translation of the others'."""
    folder.mkdir(exist_ok=True)
    for number, name in enumerate(files):
        draw = Random(number)
        sentences = [draw.choices(range(8), k=draw.randint(1, 4)) for _ in range(lines)]
        for language, words in WORDS.items():
            text = "".join(" ".join(words[place] for place in one) + "\n" for one in sentences)
            (folder / f"{name}.{language}.gz").write_bytes(gzip.compress(text.encode()))
    return folder
