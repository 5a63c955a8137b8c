"""Cut a corpus into pieces once, for everybody.

FOLDER/train.source.ids, train.target.ids            ids, a sentence a line
FOLDER/train.source.pieces, train.target.pieces      the same as pieces
FOLDER/dev.…                                         some peers insist on a dev split
FOLDER/vocabulary.txt                                pieces in the order of their ids
FOLDER/KIND.json                                     the workload
"""

import os
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.workload import KINDS, sized

ROOT = Path(__file__).parents[1]
MULTI30K = ROOT.parent / "shared" / "data" / "multi30k"
"""Where the raw Multi30k files lie unless said otherwise."""
SUBWORDS = 8000
DEV_LINES = 200


def data_section(data: str) -> dict[str, Any]:
    """`tatoeba`: the bundled pairs; anything else is a folder with Multi30k's files."""
    if data == "tatoeba":
        split = {"kind": "bundled", "source": "de", "target": "en"}
        return {"train": split, "dev": split}
    names = {"train": "train", "dev": "val"}
    return {
        "folder": str(Path(data).resolve()),
        **{
            split: {"kind": "parallel", "source": f"{name}.de.gz", "target": f"{name}.en.gz"}
            for split, name in names.items()
        },
    }


def prepare(data: str, folder: Path) -> Path:
    """Write everything into `folder`, unless it is there already."""
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as place:
            _write(data, Path(place), folder)
            os.rename(place, folder)
            Path(place).mkdir()  # for whoever cleans up
    return folder


def _write(data: str, place: Path, final: Path) -> None:
    from bench.peers.seqloom.recipe import config_for
    from seqloom.data.corpus.corpus import CorpusRequest, build_corpus
    from seqloom.data.corpus.vocabularies import train_tokenizers

    config = config_for(sized("transformer", final, SUBWORDS), data_section(data))
    source, target = train_tokenizers(config)
    assert source is not None
    assert source.digest == target.digest, "one vocabulary for both sides"
    pieces = source.pieces(range(source.size))
    (place / "vocabulary.txt").write_text("\n".join(pieces) + "\n", encoding="utf-8")
    (place / "pieces").mkdir()
    means = {}
    for split in ("train", "dev"):
        corpus = build_corpus(CorpusRequest(config.data, split, source, target))
        count = len(corpus) if split == "train" else min(len(corpus), DEV_LINES)
        for side, row in (("source", corpus.source), ("target", corpus.target)):
            rows = [row(index).tolist() for index in range(count)]
            if split == "train":
                means[side] = 1 + sum(map(len, rows)) / len(rows)
            _lines(place / f"{split}.{side}.ids", [list(map(str, ids)) for ids in rows])
            _lines(place / "pieces" / f"{split}.{side}", [source.pieces(ids) for ids in rows])
    (place / "data.txt").write_text(data if data == "tatoeba" else str(Path(data).resolve()))
    for kind in KINDS:
        workload = replace(
            sized(kind, final, source.size),
            mean_source=means["source"],
            mean_target=means["target"],
        )
        workload.save(place / f"{kind}.json")


def _lines(path: Path, rows: list[list[str]]) -> None:
    path.write_text("".join(" ".join(row) + "\n" for row in rows), encoding="utf-8")
