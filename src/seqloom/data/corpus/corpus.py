"""Corpus: a tokenised split on disk, built once and read through memory maps."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from seqloom.config.schema.data import DataConfig
from seqloom.core.batch import Batch
from seqloom.core.errors import DataError
from seqloom.data.batching.collate import collate_rows
from seqloom.data.corpus.dataset import CorpusReport, IntArray
from seqloom.data.corpus.disk_cache import cached_folder
from seqloom.data.corpus.filters import INVALID_LINE, PairLengths, empty_side, reason_to_drop
from seqloom.data.corpus.fingerprint import fingerprint, json_digest
from seqloom.data.corpus.frame_store import VALUES_FILE, FrameScale, FrameStore, FrameWriter
from seqloom.data.corpus.image_store import PIXELS_FILE, ImageStore, ImageWriter
from seqloom.data.corpus.token_store import TokenStore, TokenWriter
from seqloom.data.example import Example, InvalidLine, Split
from seqloom.data.readers.splits import corpora_of, read_split
from seqloom.text.long_text import encode_target
from seqloom.text.tokenizer import Tokenizer

FORMAT = 2
"""Part of the cache key. Increase it when the format of a corpus' files changes."""
REPORT = "report.json"
PROGRESS_EVERY = 1_000


@dataclass(frozen=True)
class CorpusRequest:
    """Everything that determines a corpus: its examples and how they are tokenised.

    source:     tokenizer of the sources; None if the sources are not text
    target:     tokenizer of the targets
    image_size: height and width of the images in pixels; None if the sources are not images
    frames:     normalisation of the sources if they are sequences of vectors (frames); otherwise
                None
    tag_side:   "source": a tag (such as the target language) stays at the start of the source;
                "target": it is moved to the start of the target
    """

    data: DataConfig
    split: Split
    source: Tokenizer | None
    target: Tokenizer
    image_size: int | None = None
    tag_side: Literal["source", "target"] = "source"
    frames: FrameScale | None = None

    def digest(self) -> str:
        """Return the cache key of the corpus."""
        filters = self.data.filter.model_dump(mode="json") if self.split == "train" else {}
        source = None if self.source is None else self.source.digest
        examples = fingerprint(self.data, self.split)
        corpora = len(corpora_of(self.data, self.split))
        # A feature that is not used adds nothing to the key. The strings below must not be changed:
        # existing caches would become invalid.
        extra: list[Any] = [] if self.image_size is None else [self.image_size]
        extra += [f"{corpora} parts"] if corpora > 1 else []
        extra += [] if self.frames is None else ["frames", self.frames.to_json()]
        extra += ["tagged targets"] if self.tag_side == "target" else []
        return json_digest([FORMAT, examples, source, self.target.digest, filters, *extra])


class Corpus:
    """The examples of a split in the order in which they were read. Texts are stored as token ids
    without START and END. Sources can also be images or sequences of vectors (frames)."""

    def __init__(self, folder: Path, other_folders: Sequence[Path] = ()) -> None:
        """
        folder:        folder of the corpus used in the first epoch
        other_folders: folders of the same split in other subword segmentations, used in turn in
                       the following epochs
        """
        self.folder = folder
        self._other_folders = tuple(other_folders)
        self._variant: Corpus | None = None
        self.report = CorpusReport(**json.loads((folder / REPORT).read_bytes()))
        self.targets = TokenStore(folder, "target")
        self.sources = self._open_sources()
        self.release()

    def __len__(self) -> int:
        return len(self.target_lengths)

    def _open_sources(self) -> TokenStore | ImageStore | FrameStore | None:
        if (self.folder / PIXELS_FILE).exists():
            return ImageStore(self.folder)
        if (self.folder / VALUES_FILE).exists():
            return FrameStore(self.folder)
        has_text = (self.folder / "source.offsets").exists()
        return TokenStore(self.folder, "source") if has_text else None

    @property
    def source_lengths(self) -> IntArray | None:
        """The source length of each of the N examples, without END: (N,).

        None if the sources are neither text nor frames.
        """
        sources = self.sources
        return sources.lengths if isinstance(sources, TokenStore | FrameStore) else None

    @property
    def target_lengths(self) -> IntArray:
        return self.targets.lengths

    def source(self, index: int) -> IntArray:
        """Return the ids of one source."""
        assert isinstance(self.sources, TokenStore), "the sources are not text"
        return self.sources[index]

    def target(self, index: int) -> IntArray:
        """Return the ids of one target."""
        return self.targets[index]

    @property
    def digest(self) -> str:
        return self.folder.name

    def gather(self, indices: IntArray) -> Batch:
        sources = None if self.sources is None else self.sources.take(indices)
        return collate_rows(sources, self.targets.take(indices))

    def for_epoch(self, epoch: int) -> "Corpus":
        """Return the corpus to use in an epoch: the same examples, possibly in another subword
        segmentation."""
        index = epoch % (1 + len(self._other_folders))
        if index == 0:
            return self
        folder = self._other_folders[index - 1]
        if self._variant is None or self._variant.folder != folder:
            self._variant = Corpus(folder)
        return self._variant

    def variants(self) -> Iterator["Corpus"]:
        return (self.for_epoch(epoch) for epoch in range(1 + len(self._other_folders)))

    def release(self) -> None:
        for store in (self.sources, self.targets):
            if store is not None:
                store.release()


def _ignore_progress(examples: int) -> None:
    """The default progress callback. It does nothing."""


def build_corpus(
    request: CorpusRequest, progress: Callable[[int], None] = _ignore_progress
) -> Corpus:
    """Tokenise a split, or load it from the cache. Runs in constant memory.

    progress: called at intervals with the number of examples read so far
    """

    def fill(folder: Path) -> None:
        report = _write(request, folder, progress)
        (folder / REPORT).write_text(json.dumps(asdict(report)))

    return Corpus(cached_folder("corpora", request.digest(), fill))


def _write(request: CorpusRequest, folder: Path, progress: Callable[[int], None]) -> CorpusReport:
    report = CorpusReport(request.split)
    with (
        (folder / "target.ids").open("wb") as target_ids,
        (folder / "target.offsets").open("wb") as target_offsets,
    ):
        targets = TokenWriter(target_ids, target_offsets, request.target.size)
        if request.image_size is not None:
            images = ImageWriter(folder, request.image_size)
            _write_examples(request, report, images, targets, progress)
            images.close()
        elif request.frames is not None:
            frames = FrameWriter(folder, request.frames)
            _write_examples(request, report, frames, targets, progress)
            frames.close()
        elif request.source is None:
            _write_examples(request, report, None, targets, progress)
        else:
            with (
                (folder / "source.ids").open("wb") as source_ids,
                (folder / "source.offsets").open("wb") as source_offsets,
            ):
                sources = TokenWriter(source_ids, source_offsets, request.source.size)
                _write_examples(request, report, sources, targets, progress)
            report.source_tokens, report.source_unknown = sources.total, sources.unknown
    report.target_tokens, report.target_unknown = targets.total, targets.unknown
    if not report.kept:
        reasons = "; ".join(f"{reason}: {n}" for reason, n in report.dropped.items())
        raise DataError(
            f"data.{request.split}: all {report.read} examples were dropped ({reasons}); "
            "check the data, or relax data.filter"
        )
    return report


def _write_examples(
    request: CorpusRequest,
    report: CorpusReport,
    sources: TokenWriter | ImageWriter | FrameWriter | None,
    targets: TokenWriter,
    progress: Callable[[int], None],
) -> None:
    """Write the examples to `sources` and `targets`. In the training split, leave out the examples
    that a filter drops. Add the numbers of kept and dropped examples to `report`."""

    def count_skipped(line: InvalidLine) -> None:
        report.read += 1
        report.dropped[INVALID_LINE] = report.dropped.get(INVALID_LINE, 0) + 1

    for example, source, target in _encode(request, count_skipped):
        report.read += 1
        if report.read % PROGRESS_EVERY == 0:
            progress(report.read)
        match sources:
            case TokenWriter():
                source_length: int | None = len(source)
            case FrameWriter():
                source_length = len(example.source.split())
            case _:
                source_length = None
        lengths = PairLengths(source_length, len(target))
        if empty := empty_side(lengths):
            report.empty[empty] = report.empty.get(empty, 0) + 1
        if request.split == "train":
            reason = reason_to_drop(lengths, request.data.filter)
            if reason is not None:
                report.dropped[reason] = report.dropped.get(reason, 0) + 1
                continue
        report.kept += 1
        _count_group(report.parts, example.corpus)
        targets.append(target)
        match sources:
            case TokenWriter():
                sources.append(source)
            case ImageWriter():
                sources.append(example.source)
            case FrameWriter():
                report.source_tokens += sources.append(example.source, example.where)
    progress(report.read)


def _count_group(counts: list[tuple[str, int]], group: str) -> None:
    """Count one example of `group`. `counts` has one entry (group, number of examples) for each
    sequence of consecutive examples of the same group. If the last entry is for another group, add
    a new entry. An example without a group ("") is not counted."""
    if counts and counts[-1][0] == group:
        counts[-1] = (group, counts[-1][1] + 1)
    elif group:
        counts.append((group, 1))


def _encode(
    request: CorpusRequest, on_skipped: Callable[[InvalidLine], None]
) -> Iterator[tuple[Example, list[int], list[int]]]:
    """Yield each example with its source ids and target ids."""
    for example in read_split(request.data, request.split, on_skipped):
        source = example.source.strip()
        target_ids = encode_target(request.target, example.target)
        if example.tag and request.tag_side == "target":
            source = source.removeprefix(example.tag).strip()
            # Do not add a tag to an empty target, so that the filters still drop it as empty.
            target_ids = [*request.target.encode(example.tag), *target_ids] if target_ids else []
        source_ids = [] if request.source is None else request.source.encode(source)
        yield example, source_ids, target_ids
