"""The languages, and a data set of all languages in which a tag names the language."""

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


def read_tagged(folder: Path, language: str, split: str) -> list[str]:
    """The lines of a file with the language tag before each word."""
    with gzip.open(folder / file_name(language, split), "rt", encoding="utf-8") as file:
        return [f"<{language}> {line}" for line in file]


def write_tagged(folder: Path, output: Path) -> None:
    """Write one file of all languages for each split, and one test file per language."""
    output.mkdir(parents=True, exist_ok=True)
    for split in ("train", "dev", "test"):
        lines = {language: read_tagged(folder, language, split) for language in LANGUAGES}
        all_lines = [line for language_lines in lines.values() for line in language_lines]
        (output / f"{split}.tsv").write_text("".join(all_lines), encoding="utf-8")
        if split == "test":
            for language, language_lines in lines.items():
                path = output / f"{language}_test.tsv"
                path.write_text("".join(language_lines), encoding="utf-8")
