"""Tokenises examples and writes them to the folder of one shard."""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import groupby, islice
from pathlib import Path
from typing import IO, Any

from seqloom.config.schema.data import FilterConfig
from seqloom.core.storage import atomic_folder
from seqloom.data.corpus.dataset import CorpusReport
from seqloom.data.corpus.filters import PairLengths, empty_side, reason_to_drop
from seqloom.data.corpus.token_store import TokenWriter
from seqloom.data.example import Example, InvalidLine, Split
from seqloom.data.preparation.jobs import ShardJob
from seqloom.data.preparation.records import Records, held_out_file, write_record
from seqloom.data.preparation.request import CorpusRequest
from seqloom.data.readers.splits import InvalidLines, hold_out_rule
from seqloom.text.long_text import LongTextTokenizer
from seqloom.text.subwords import SampledSubwordTokenizer, encode_all, run_with_sampling_seed

REPORT = "report.json"
BLOCK_EXAMPLES = 1_000
"""Number of examples that are tokenised at once."""


@dataclass
class ShardReport:
    """Counts of the examples and tokens of one shard, and its invalid lines.

    source:  index of the corpus, in the order in which the corpora of the split are read
    report:  numbers of examples and tokens, without held-out examples and invalid lines
    records: number of examples and invalid lines that were read, including held-out examples
    invalid: the lines that cannot be used
    """

    source: int
    report: CorpusReport
    records: int = 0
    invalid: InvalidLines = field(default_factory=InvalidLines)

    def save(self, folder: Path) -> None:
        (folder / REPORT).write_text(json.dumps(asdict(self)))

    @classmethod
    def load(cls, folder: Path) -> "ShardReport":
        content = json.loads((folder / REPORT).read_bytes())
        first = [InvalidLine(**line) for line in content["invalid"]["first"]]
        parts = [tuple(part) for part in content["report"].pop("parts")]
        report = CorpusReport(**content["report"], parts=parts)
        invalid = InvalidLines(content["invalid"]["count"], first)
        return cls(content["source"], report, content["records"], invalid)


def write_shard(
    request: CorpusRequest,
    job: ShardJob,
    records: Records,
    folder: Path,
    progress: Callable[[int], None],
) -> int:
    """Tokenise examples and write a shard atomically. Return the number of records.

    records:  the examples and the invalid lines of the shard
    folder:   folder of the corpus
    progress: called at intervals with the number of records read so far
    """
    with atomic_folder(folder / job.name) as temporary:
        shard = _Shard(request, job, temporary)
        work = partial(shard.write, records, progress)
        if isinstance(request.target, SampledSubwordTokenizer):
            run_with_sampling_seed(_sampling_seed(request.target.seed, job.index), work)
        else:
            work()
        return shard.result.records


def _sampling_seed(seed: int, shard: int) -> int:
    """Return the random seed for the subword segmentation of a shard.

    seed:  seed of the corpus. The first shard uses it unchanged
    shard: index of the shard
    """
    if shard == 0:
        return seed
    return int.from_bytes(hashlib.sha256(f"{seed} shard {shard}".encode()).digest()[:4], "big")


class _Shard:
    """Tokenises the examples of one shard and writes its files."""

    def __init__(self, request: CorpusRequest, job: ShardJob, folder: Path) -> None:
        self.request = request
        self.folder = folder
        self.split_of = hold_out_rule(request.data) if job.assigns else None
        self.result = ShardReport(job.source, CorpusReport(request.split))
        self.has_limits = request.split == "train" and request.data.filter != FilterConfig()

    def write(self, records: Records, progress: Callable[[int], None]) -> None:
        report = self.result.report
        is_sampled = isinstance(self.request.target, SampledSubwordTokenizer)
        # A sampling tokenizer draws its random numbers pair by pair.
        block_size = 1 if is_sampled else BLOCK_EXAMPLES
        with ExitStack() as stack:
            self.targets = TokenWriter(self.folder, "target", self.request.target.size)
            stack.callback(self.targets.close)
            source = self.request.source
            self.sources = None if source is None else source.writer(self.folder)
            if self.sources is not None:
                stack.callback(self.sources.close)
            examples = self._own_examples(records, stack)
            while block := list(islice(examples, block_size)):
                self._write_block(block)
                progress(self.result.records)
        progress(self.result.records)
        report.target_tokens, report.target_unknown = self.targets.total, self.targets.unknown
        if self.sources is not None:
            report.source_tokens, report.source_unknown = self.sources.tokens, self.sources.unknown
        self.result.save(self.folder)

    def _own_examples(self, records: Records, stack: ExitStack) -> Iterator[Example]:
        """Yield the examples of the split. Count invalid lines. Write the examples that are held
        out for dev and test to their own files."""
        held_out: dict[Split, IO[str]] = {}
        if self.split_of is not None:
            for split in ("dev", "test"):
                path = held_out_file(self.folder, split)
                held_out[split] = stack.enter_context(
                    path.open("w", encoding="utf-8", newline="\n")
                )
        for record in records:
            self.result.records += 1
            if isinstance(record, InvalidLine):
                self.result.invalid.add(record)
            elif self.split_of is None or (split := self.split_of(record)) == "train":
                yield record
            else:
                write_record(held_out[split], record)

    def _write_block(self, examples: list[Example]) -> None:
        target_ids, sources = self._encode(examples)
        kept = self._kept(sources, target_ids)
        report = self.result.report
        report.read += len(examples)
        report.kept += len(kept)
        for group, rows in groupby(examples[index].corpus for index in kept):
            count_group(report.parts, group, len(list(rows)))
        if len(kept) < len(examples):
            target_ids = [target_ids[index] for index in kept]
            sources = [sources[index] for index in kept] if self.sources is not None else ()
            examples = [examples[index] for index in kept]
        self.targets.append(target_ids)
        if self.sources is not None:
            self.sources.append(sources, examples)

    def _encode(self, examples: list[Example]) -> tuple[list[list[int]], Sequence[Any]]:
        """Return the target ids and the encoded sources of several examples. If there are no
        sources, return an empty sequence instead of them."""
        request = self.request
        is_long_text = isinstance(request.target, LongTextTokenizer)
        targets = [example.target for example in examples]
        sources = [example.source.strip() for example in examples]
        target_ids = encode_all(
            request.target, targets if is_long_text else [text.strip() for text in targets]
        )
        if request.tag_side == "target":
            for index, tag in enumerate(example.tag for example in examples):
                if not tag:
                    continue
                sources[index] = sources[index].removeprefix(tag).strip()
                # Do not add a tag to an empty target, so that the filters still drop it as empty.
                if target_ids[index]:
                    target_ids[index] = [*request.target.encode(tag), *target_ids[index]]
        return target_ids, () if self.sources is None else self.sources.encode(sources)

    def _kept(self, sources: Sequence[Any], target_ids: list[list[int]]) -> list[int]:
        """Return the indices of the examples to keep. Count empty and dropped examples."""
        if not self.has_limits and all(target_ids) and all(sources):
            return list(range(len(target_ids)))  # nothing is empty or too long
        report, kept = self.result.report, []
        for index, target in enumerate(target_ids):
            length = None if self.sources is None else self.sources.length(sources[index])
            reason = count_pair(report, PairLengths(length, len(target)), self.request)
            if reason is None:
                kept.append(index)
        return kept


def count_pair(report: CorpusReport, lengths: PairLengths, request: CorpusRequest) -> str | None:
    """Return the reason to drop a pair; None if the pair is kept. Only training pairs are dropped.

    Also counts in `report` how many pairs are dropped, and how many have an empty source or target.
    """
    if empty := empty_side(lengths):
        report.empty[empty] = report.empty.get(empty, 0) + 1
    if request.split != "train":
        return None
    reason = reason_to_drop(lengths, request.data.filter)
    if reason is not None:
        report.dropped[reason] = report.dropped.get(reason, 0) + 1
    return reason


def count_group(counts: list[Any], group: str, examples: int = 1) -> None:
    """Count consecutive examples of one group.

    counts:   list of (group, number of consecutive examples). It is changed in place: if its last
              entry is for `group`, the number in this entry grows; otherwise an entry is added
    group:    name of the group. If it is "", nothing is counted
    examples: number of examples to count. Default: 1
    """
    if counts and counts[-1][0] == group:
        counts[-1] = (group, counts[-1][1] + examples)
    elif group:
        counts.append((group, examples))
