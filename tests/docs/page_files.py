"""Files, runs and servers that the commands and programs of the pages need."""

import shutil
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from itertools import pairwise, product
from pathlib import Path

import zstandard
from page_runner import SHORT, run_command, set_options

from support.server_process import start_server
from support.small_runs import image_bytes, train_language_model
from support.toy_languages import write_languages

SOURCE, TARGET = "Das gefällt mir .\nWo ist er ?\n", "I like it .\nWhere is he ?\n"
SMALL_RECIPE = """\
[data]
train = { kind = "tsv", path = "pairs.tsv" }
dev = { kind = "hold-out" }
test = { kind = "hold-out" }

[text]
tokenizer = { kind = "words" }

[model]
encoder = { kind = "recurrent", width = 16 }
decoder = { kind = "recurrent", width = 16 }

[training]
steps = 4
evaluate_every = 4
schedule = { kind = "constant" }
"""


def word_pairs() -> str:
    """300 lines of two words, and the same words in the opposite order."""
    words = ["".join(letters) for letters in product("bdkl", "aeio", "mnrt", "a")]
    return "".join(f"{first} {second}\t{second} {first}\n" for first, second in pairwise(words * 5))


FILES = {
    "pairs.tsv": word_pairs(),
    "source.txt": "bama dena\nkira loma\n",
    "english.txt": "bama dena\nkira loma\n",
    "sentences.txt": SOURCE,
    "letters.txt": SOURCE,
    "text.de": SOURCE,
    **{f"{name}.de": SOURCE for name in ("test", "dev")},
    **{f"{name}.en": TARGET for name in ("test", "dev")},
    **{f"{name}.align": "0-2 1-1\n0-0 1-1\n" for name in ("test", "dev")},
    "page.html": "<p>Das gefällt mir.</p>\n",
    "notes": "# Das gefällt mir.\n",
    "recipe.toml": SMALL_RECIPE,
    "en-yo.toml": SMALL_RECIPE,
}


def write_files(folder: Path) -> None:
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")


COPIES = {
    "docs/analysis/search.md": ["plain"],
    "docs/fine-tuning.md": ["parent"],
    "docs/serving.md": ["sentences"],
    "docs/tasks/pronunciation.md": ["english"],
}
"""Runs of a page for which a copy of the demo run is good enough."""


@contextmanager
def prepare_page(name: str, folder: Path) -> Iterator[str]:
    """Add the files and runs that one page needs.

    Gives the address of a server, if the page has clients.
    """
    for copy in COPIES.get(name, ()):
        shutil.copytree(folder / "runs" / "demo", folder / "runs" / copy)
    match name:
        case "docs/engines.md":
            _train_exportable(folder, "first")
        case "docs/interop.md":
            _train_exportable(folder, "mine")
        case "docs/fine-tuning.md":
            recipe = SMALL_RECIPE.partition("[text]")[0]
            (folder / "new.toml").write_text(recipe, encoding="utf-8")
        case "docs/scale.md":
            _write_inputs(folder / "in")
        case "docs/tasks/captions.md":
            _write_images(folder)
        case "docs/tasks/forecasting.md":
            _write_series(folder)
        case "docs/tasks/labels.md":
            _write_labels(folder)
        case "docs/tasks/language-models.md":
            book = "It was a dark night. The cat sat on the mat.\n" * 200
            (folder / "book.txt").write_text(book, encoding="utf-8")
        case "docs/tasks/many-languages.md":
            write_languages(folder / "multi30k", ["train", "val", "test"])
            for file, text in {
                "english": "dog runs",
                "german": "hund",
                "tagged": "<2fr> dog",
            }.items():
                (folder / f"{file}.txt").write_text(f"{text}\n", encoding="utf-8")
        case "docs/tasks/pronunciation.md":
            words = "".join(
                f"{first}{second}\t{first.upper()} {second.upper()}\n"
                for first, second in product("abcdefgh", repeat=2)
            )
            (folder / "mine.tsv").write_text(words, encoding="utf-8")
        case "docs/serving.md":
            (folder / "keys").write_text(f"{sha256(b'KEY').hexdigest()}\n", encoding="utf-8")
            novel = train_language_model(folder / "runs" / "novel")
            server = start_server([folder / "runs" / "demo", novel])
            try:
                yield server.url.removeprefix("http://")
            finally:
                server.stop()
            return
    yield ""


def _train_exportable(folder: Path, run: str) -> None:
    """A small Transformer that other toolkits can load."""
    recipe = 'preset = "exportable"\n' + SMALL_RECIPE.partition("[text]")[0]
    (folder / "exportable.toml").write_text(recipe, encoding="utf-8")
    sizes = (
        "text.tokenizer.size=90",
        *(
            f"model.{side}.{size}"
            for side in ("encoder", "decoder")
            for size in ("width=16", "layers=1", "feedforward=16", "attention.heads=2")
        ),
    )
    settings = set_options(*SHORT, *sizes)
    run_command(f"seqloom train exportable.toml --run runs/{run}{settings}", folder)


def _write_inputs(folder: Path) -> None:
    """Text files and compressed JSON lines."""
    folder.mkdir()
    for number in range(2):
        (folder / f"{number}.txt").write_text(SOURCE, encoding="utf-8")
    lines = "".join(f'{{"text": "{line}"}}\n' for line in SOURCE.splitlines())
    (folder / "lines.jsonl.zst").write_bytes(zstandard.compress(lines.encode()))


def _write_images(folder: Path) -> None:
    """Images of one colour, with captions."""
    colours = {f"photo{number}": ("red", "blue")[number % 2] for number in range(100)}
    with zipfile.ZipFile(folder / "photos.zip", "w") as archive:
        for name, colour in colours.items():
            archive.writestr(f"{name}.jpg", image_bytes(colour, form="JPEG"))
    (folder / "more").mkdir()
    (folder / "more" / "other.jpg").write_bytes(image_bytes("red", form="JPEG"))
    captions = {**colours, "other": "red"}.items()
    text = "".join(f"{name}.jpg\ta {colour} wall\n" for name, colour in captions)
    (folder / "captions.txt").write_text(text, encoding="utf-8")
    for split, names in (("train", [*colours][:90]), ("test", [*colours][90:])):
        lines = "".join(f"{name}.jpg\n" for name in names)
        (folder / f"{split}.txt").write_text(lines, encoding="utf-8")
    (folder / "dog.jpg").write_bytes(image_bytes("red", form="JPEG"))
    with zipfile.ZipFile(folder / "beach.zip", "w") as archive:
        archive.writestr("cat.jpg", image_bytes("blue", form="JPEG"))


def _write_series(folder: Path) -> None:
    """Hourly rows, and an observation with the context of the rows to forecast."""
    rows = [f"{hour % 24},{hour % 7}\n" for hour in range(14400)]
    header = "temperature,load\n"
    (folder / "temperature.csv").write_text(header + "".join(rows), encoding="utf-8")
    future = [f",{hour % 7}\n" for hour in range(24)]
    (folder / "now.csv").write_text(header + "".join(rows[:96] + future), encoding="utf-8")


def _write_labels(folder: Path) -> None:
    """Texts, tagged sentences and frames, each with labels."""
    (folder / "lines.txt").write_text(SOURCE, encoding="utf-8")
    topics = [
        f"{source} {number}\t{label}\n"
        for number in range(40)
        for source, label in (("Das gefällt mir.", "de"), ("I like it.", "en"))
    ]
    (folder / "topics.tsv").write_text("".join(topics), encoding="utf-8")
    tags = [
        f"the {noun} {verb} .\tDET NOUN VERB PUNCT\n"
        for noun in ("dog", "cat", "man", "cow", "hen", "fox")
        for verb in ("runs", "sits", "eats", "naps", "hops")
    ]
    (folder / "tags.tsv").write_text("".join(tags), encoding="utf-8")
    frames = [
        f"{sequence},{'wave' if sequence % 2 else 'rest'},{sequence % 2}.{sequence},-{frame}.2\n"
        for sequence in range(40)
        for frame in range(3)
    ]
    header = "sequence,label,x1,x2\n"
    (folder / "frames.csv").write_text(header + "".join(frames), encoding="utf-8")
    (folder / "movements.csv").write_text(header + "".join(frames[:6]), encoding="utf-8")
