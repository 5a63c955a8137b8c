"""Reads and writes JSONL files with the records of a corpus, one record per line.

A record is an example, or an `InvalidLine`: a line of the corpus that could not be read. The files
are temporary, or part of a shard. A shard is a folder with a part of a corpus.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, astuple
from pathlib import Path
from typing import IO

from seqloom.data.example import Example, InvalidLine, Split

Records = Iterator[Example | InvalidLine]


def held_out_file(shard: Path, split: Split) -> Path:
    """Return the file with the examples that are held out for `split`, the dev or test split.

    shard: folder with a part of the training corpus
    """
    return shard / f"{split}.jsonl"


def write_record(file: IO[str], record: Example | InvalidLine) -> None:
    content = astuple(record) if isinstance(record, Example) else asdict(record)
    file.write(json.dumps(content, ensure_ascii=False) + "\n")


def write_records(path: Path, records: Records) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for record in records:
            write_record(file, record)


def read_records(path: Path) -> Records:
    """Yield the examples and invalid lines of a file that `write_records` wrote."""
    with path.open(encoding="utf-8", newline="\n") as file:
        for line in file:
            content = json.loads(line)
            if isinstance(content, dict):
                yield InvalidLine(**content)
            else:
                source, target, references, *others = content
                yield Example(source, target, tuple(references), *others)


def read_examples(path: Path) -> Iterator[Example]:
    """Yield the examples of a file, without its invalid lines."""
    return (record for record in read_records(path) if isinstance(record, Example))
