"""Tokenise a corpus once, for all systems.

FOLDER/train.source.ids, train.target.ids            ids, one sentence per line
FOLDER/pieces/train.source, train.target             the same as subword pieces
FOLDER/dev.…, FOLDER/pieces/dev.…                    a short dev split, which some peers require
FOLDER/vocabulary.txt                                pieces in the order of their ids
FOLDER/data.txt                                      the data that the files were made from
FOLDER/KIND.json                                     the workload of each kind of model
"""

import os
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.comparison.systems import ROOT
from bench.comparison.workload import MODEL_KINDS, default_workload

MULTI30K = ROOT.parent / "shared" / "data" / "multi30k"
"""Default folder of the raw Multi30k files."""
SUBWORDS = 8000
DEV_LINES = 200


def data_section(data: str) -> dict[str, Any]:
    """The `[data]` section of a recipe.

    data: `tatoeba` for the bundled pairs, or a folder with the files of Multi30k
    """
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
    """Write all files into `folder`, unless it exists."""
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
            _write(data, Path(temporary), folder)
            os.rename(temporary, folder)
            Path(temporary).mkdir()  # TemporaryDirectory removes it on exit
    return folder


def _write(data: str, temporary: Path, folder: Path) -> None:
    """Write the files into `temporary`. They will move to `folder`."""
    from bench.peers.seqloom_worker import config_for
    from seqloom.data.corpus.corpus import build_corpus
    from seqloom.data.corpus.vocabularies import train_tokenizers
    from seqloom.data.modalities.text import TextModality
    from seqloom.data.preparation.request import CorpusRequest

    config = config_for(default_workload("transformer", folder, SUBWORDS), data_section(data))
    source, target = train_tokenizers(config)
    assert source is not None
    assert source.digest == target.digest, "both sides share one vocabulary"
    pieces = source.pieces(range(source.size))
    (temporary / "vocabulary.txt").write_text("\n".join(pieces) + "\n", encoding="utf-8")
    (temporary / "pieces").mkdir()
    mean_lengths = {}
    for split in ("train", "dev"):
        corpus = build_corpus(CorpusRequest(config.data, split, TextModality(source), target))
        count = len(corpus) if split == "train" else min(len(corpus), DEV_LINES)
        for side, get_row in (("source", corpus.source), ("target", corpus.target)):
            rows = [get_row(index).tolist() for index in range(count)]
            if split == "train":
                mean_lengths[side] = 1 + sum(map(len, rows)) / len(rows)
            _write_lines(temporary / f"{split}.{side}.ids", [list(map(str, ids)) for ids in rows])
            _write_lines(
                temporary / "pieces" / f"{split}.{side}", [source.pieces(ids) for ids in rows]
            )
    origin = data if data == "tatoeba" else str(Path(data).resolve())
    (temporary / "data.txt").write_text(origin)
    for kind in MODEL_KINDS:
        workload = replace(
            default_workload(kind, folder, source.size),
            mean_source=mean_lengths["source"],
            mean_target=mean_lengths["target"],
        )
        workload.save(temporary / f"{kind}.json")


def _write_lines(path: Path, rows: list[list[str]]) -> None:
    path.write_text("".join(" ".join(row) + "\n" for row in rows), encoding="utf-8")
