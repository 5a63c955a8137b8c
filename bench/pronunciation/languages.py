"""The languages, and all of them as one data set in which a tag says which is meant."""

import gzip
from pathlib import Path

LANGUAGES = {
    "ady": "Adyghe",
    "arm": "Armenian",
    "bul": "Bulgarian",
    "dut": "Dutch",
    "fre": "French",
    "geo": "Georgian",
    "gre": "Greek",
    "hin": "Hindi",
    "hun": "Hungarian",
    "ice": "Icelandic",
    "jpn": "Japanese",
    "kor": "Korean",
    "lit": "Lithuanian",
    "rum": "Romanian",
    "vie": "Vietnamese",
}
TAGS = [f"<{language}>" for language in LANGUAGES]


def file_name(language: str, split: str) -> str:
    return f"{language}_{split}.tsv.gz"


def tagged(folder: Path, language: str, split: str) -> list[str]:
    """The lines of a file, each word with its language before it."""
    with gzip.open(folder / file_name(language, split), "rt", encoding="utf-8") as file:
        return [f"<{language}> {line}" for line in file]


def write_tagged(folder: Path, into: Path) -> None:
    """One file of all languages for each split, and the test words of each language alone."""
    into.mkdir(parents=True, exist_ok=True)
    for split in ("train", "dev", "test"):
        each = {language: tagged(folder, language, split) for language in LANGUAGES}
        lines = [line for several in each.values() for line in several]
        (into / f"{split}.tsv").write_text("".join(lines), encoding="utf-8")
        if split == "test":
            for language, several in each.items():
                (into / f"{language}_test.tsv").write_text("".join(several), encoding="utf-8")
