"""A tokenised split on disk, read through memory maps."""

import json
import mmap
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
from numpy.typing import NDArray

from seqloom.config.schema.data import DataConfig
from seqloom.core.batch import Batch
from seqloom.core.errors import DataError
from seqloom.data.cache import cached_folder
from seqloom.data.clean import Lengths, emptiness, reason_to_drop
from seqloom.data.collate import Rows, collate_rows
from seqloom.data.example import Example, Split
from seqloom.data.examples import CorpusReport
from seqloom.data.fingerprint import digest_of, fingerprint
from seqloom.data.kept_images import IMAGES, ImageSide, ImageWriter
from seqloom.data.splits import corpora_of, read_split
from seqloom.text.long_text import encode_target
from seqloom.text.tokenizer import Tokenizer
from seqloom.text.vocabulary import UNKNOWN

FORMAT = 2
"""Raised when the files of a corpus change their meaning."""
REPORT = "report.json"
PROGRESS_EVERY = 1_000

Ids = NDArray[Any]
"""uint16 or int32."""
Sizes = NDArray[Any]
"""int32 or int64."""
NARROW = 2**16
"""Vocabularies up to this size are written in two bytes an id."""


@dataclass(frozen=True)
class CorpusRequest:
    """What makes up a corpus: its examples and how they are cut into tokens."""

    data: DataConfig
    split: Split
    source: Tokenizer | None
    """None: no text is read."""
    target: Tokenizer
    image_size: int | None = None
    """None: no images are read."""
    tag_side: Literal["source", "target"] = "source"
    """Where tags go: they stay before the source, or begin the target."""

    def digest(self) -> str:
        filters = self.data.filter.model_dump(mode="json") if self.split == "train" else {}
        source = None if self.source is None else self.source.digest
        examples = fingerprint(self.data, self.split)
        parts = len(corpora_of(self.data, self.split))
        # What most corpora do without is not mentioned, so that they keep their digests.
        more: list[Any] = [] if self.image_size is None else [self.image_size]
        more += [f"{parts} parts"] if parts > 1 else []
        more += ["tagged targets"] if self.tag_side == "target" else []
        return digest_of([FORMAT, examples, source, self.target.digest, filters, *more])


class Side:
    """Token ids of many texts: text i is ids[offsets[i]:offsets[i + 1]]."""

    def __init__(self, folder: Path, name: str) -> None:
        self._maps: list[np.memmap[Any, Any]] = []
        self.offsets: Sizes = self._map(folder / f"{name}.offsets", np.int64)
        tokens = int(self.offsets[-1])
        # Ids of a small vocabulary take two bytes each, others four.
        narrow = tokens and (folder / f"{name}.ids").stat().st_size == 2 * tokens
        self.ids: Ids = self._map(folder / f"{name}.ids", np.uint16 if narrow else np.int32)
        self.lengths: Sizes = np.diff(self.offsets).astype(np.int32)

    def _map(self, path: Path, kind: type[Any]) -> NDArray[Any]:
        if path.stat().st_size == 0:  # which cannot be mapped
            return np.zeros(0, dtype=kind)
        self._maps.append(np.memmap(path, dtype=kind, mode="r"))
        # A plain array over the map: np.memmap's own class makes every slice ten times slower.
        return np.asarray(self._maps[-1])

    def __getitem__(self, index: int) -> Ids:
        return self.ids[self.offsets[index] : self.offsets[index + 1]]

    def take(self, indices: Sizes) -> Rows:
        """Some texts, in this order, with no loop over them."""
        lengths = self.lengths[indices].astype(np.int64)
        ends = np.cumsum(lengths)
        # Text n begins at ends[n] - lengths[n] here and at offsets[indices[n]] there.
        shifts = self.offsets[indices] - (ends - lengths)
        return Rows(self.ids[np.arange(ends[-1]) + np.repeat(shifts, lengths)], lengths)

    def release(self) -> None:
        """Hand the pages read so far back to the system; they are mapped again when needed."""
        for each in self._maps:
            each._mmap.madvise(mmap.MADV_DONTNEED)  # type: ignore[attr-defined]


class Corpus:
    """The examples of a split as ids, without START and END, in the order they were read."""

    def __init__(self, folder: Path, others: Sequence[Path] = ()) -> None:
        """others: the same split, cut into tokens in other ways, for the epochs to come"""
        self.folder = folder
        self._others = tuple(others)
        self._opened: Corpus | None = None
        self.report = CorpusReport(**json.loads((folder / REPORT).read_bytes()))
        self.target_side = Side(folder, "target")
        self.source_side = self._source_side()
        self.release()

    def __len__(self) -> int:
        return len(self.target_lengths)

    def _source_side(self) -> Side | ImageSide | None:
        if (self.folder / IMAGES).exists():
            return ImageSide(self.folder)
        return Side(self.folder, "source") if (self.folder / "source.offsets").exists() else None

    @property
    def source_lengths(self) -> Sizes | None:
        """None where no text is read."""
        return self.source_side.lengths if isinstance(self.source_side, Side) else None

    @property
    def target_lengths(self) -> Sizes:
        return self.target_side.lengths

    def source(self, index: int) -> Ids:
        assert isinstance(self.source_side, Side), "no text is read"
        return self.source_side[index]

    def target(self, index: int) -> Ids:
        return self.target_side[index]

    @property
    def digest(self) -> str:
        return self.folder.name

    def gather(self, indices: Sizes) -> Batch:
        source = self.source_side
        sources = None if source is None else source.take(indices)
        return collate_rows(sources, self.target_side.take(indices))

    def for_epoch(self, epoch: int) -> "Corpus":
        """The same examples as they are cut into tokens in this epoch."""
        place = epoch % (1 + len(self._others))
        if place == 0:
            return self
        folder = self._others[place - 1]
        if self._opened is None or self._opened.folder != folder:
            self._opened = Corpus(folder)
        return self._opened

    def variants(self) -> Iterator["Corpus"]:
        """The corpora of all epochs, each once."""
        return (self.for_epoch(epoch) for epoch in range(1 + len(self._others)))

    def release(self) -> None:
        """Hand the pages read so far back to the system."""
        for side in (self.source_side, self.target_side):
            if side is not None:
                side.release()


def _no_progress(examples: int) -> None:
    """Nobody is watching."""


def build_corpus(request: CorpusRequest, progress: Callable[[int], None] = _no_progress) -> Corpus:
    """The tokenised split, from the cache if it was built before.

    Built in constant memory. `progress` is told from time to time how many examples were read.
    """

    def fill(folder: Path) -> None:
        report = _write(request, folder, progress)
        (folder / REPORT).write_text(json.dumps(asdict(report)))

    return Corpus(cached_folder("corpora", request.digest(), fill))


class _Writer:
    """Appends texts to the two files of a side."""

    def __init__(self, ids: BinaryIO, offsets: BinaryIO, vocabulary: int) -> None:
        self._ids = ids
        self._kind = "H" if vocabulary <= NARROW else "i"
        self._offsets = offsets
        self.total = 0
        self.unknown = 0
        offsets.write(np.int64(0).tobytes())

    def append(self, ids: list[int]) -> None:
        self._ids.write(array(self._kind, ids).tobytes())
        self.total += len(ids)
        self.unknown += ids.count(UNKNOWN)
        self._offsets.write(self.total.to_bytes(8, "little"))


def _write(request: CorpusRequest, folder: Path, progress: Callable[[int], None]) -> CorpusReport:
    report = CorpusReport(request.split)
    with (
        (folder / "target.ids").open("wb") as target_ids,
        (folder / "target.offsets").open("wb") as target_offsets,
    ):
        targets = _Writer(target_ids, target_offsets, request.target.size)
        if request.image_size is not None:
            images = ImageWriter(folder, request.image_size)
            _write_kept(request, report, images, targets, progress)
            images.close()
        elif request.source is None:
            _write_kept(request, report, None, targets, progress)
        else:
            with (
                (folder / "source.ids").open("wb") as source_ids,
                (folder / "source.offsets").open("wb") as source_offsets,
            ):
                sources = _Writer(source_ids, source_offsets, request.source.size)
                _write_kept(request, report, sources, targets, progress)
            report.source_tokens, report.source_unknown = sources.total, sources.unknown
    report.target_tokens, report.target_unknown = targets.total, targets.unknown
    if not report.kept:
        reasons = "; ".join(f"{reason}: {n}" for reason, n in report.dropped.items())
        raise DataError(
            f"data.{request.split}: none of {report.read} examples is left ({reasons}); "
            "look at the data, or loosen data.filter"
        )
    return report


def _write_kept(
    request: CorpusRequest,
    report: CorpusReport,
    sources: _Writer | ImageWriter | None,
    targets: _Writer,
    progress: Callable[[int], None],
) -> None:
    for example, source, target in _encoded(request):
        report.read += 1
        if report.read % PROGRESS_EVERY == 0:
            progress(report.read)
        lengths = Lengths(len(source) if isinstance(sources, _Writer) else None, len(target))
        if empty := emptiness(lengths):
            report.empty[empty] = report.empty.get(empty, 0) + 1
        if request.split == "train":
            reason = reason_to_drop(lengths, request.data.filter)
            if reason is not None:
                report.dropped[reason] = report.dropped.get(reason, 0) + 1
                continue
        report.kept += 1
        _count(report.parts, example.part)
        targets.append(target)
        match sources:
            case _Writer():
                sources.append(source)
            case ImageWriter():
                sources.append(example.source)
    progress(report.read)


def _count(parts: list[tuple[str, int]], part: str) -> None:
    """One more of this part; what has no parts counts nothing."""
    if parts and parts[-1][0] == part:
        parts[-1] = (part, parts[-1][1] + 1)
    elif part:
        parts.append((part, 1))


def _encoded(request: CorpusRequest) -> Iterator[tuple[Example, list[int], list[int]]]:
    """Every example with its two sides."""
    read, write = request.source, request.target
    for example in read_split(request.data, request.split):
        source, target = example.source.strip(), encode_target(write, example.target)
        if example.tag and request.tag_side == "target":
            source = source.removeprefix(example.tag).strip()
            # What is empty stays so: a tag alone is nothing to learn from.
            target = [*write.encode(example.tag), *target] if target else []
        yield example, [] if read is None else read.encode(source), target
