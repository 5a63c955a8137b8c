"""Builds the folder of a corpus from shards.

DIGEST/                 the corpus. DIGEST is the hash of its data, tokenizers and filters
    report.json         numbers of examples and tokens of all shards
    NAME.lengths        number of token ids of each text; NAME is "source" or "target"
    plan.json           sizes of the shards
    manifest.json       sizes and SHA-256 of all files
    00000/, 00001/ …    the shards
.build-DIGEST/          name of the corpus folder until it is complete. After an interruption, the
                        next build reuses the shards in it
"""

import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from seqloom.core.errors import DataError
from seqloom.core.processors import available_processors
from seqloom.core.storage import (
    find_damage,
    read_manifest,
    remove_leftovers,
    sync,
    write_manifest,
)
from seqloom.data.corpus.dataset import (
    CorpusReport,
    ProgressCallback,
    ReadingProgress,
    damage_note,
)
from seqloom.data.corpus.filters import INVALID_LINE
from seqloom.data.preparation import file_parts, jobs
from seqloom.data.preparation.jobs import SplitSource, input_bytes, shard_jobs, split_sources
from seqloom.data.preparation.request import CorpusRequest
from seqloom.data.preparation.shard import REPORT, ShardReport, count_group
from seqloom.data.preparation.workers import can_use_processes, write_shards
from seqloom.data.readers.splits import InvalidLines, empty_corpus_error

MIN_PARALLEL_BYTES = 2**23
"""Minimum size of the data files for which worker processes are started."""
PLAN = "plan.json"


def shard_folders(folder: Path) -> list[Path]:
    """Return the folders of the shards of a corpus, in order."""
    shards = (path for path in folder.iterdir() if path.is_dir() and path.name.isdigit())
    return sorted(shards, key=lambda path: int(path.name))


def write_corpus(
    request: CorpusRequest,
    folder: Path,
    training_shards: Sequence[Path],
    progress: ProgressCallback,
) -> None:
    """Write all shards of a corpus that are missing in `folder`. Then write the files that
    describe the whole corpus.

    training_shards: the shards of the training split. Each shard also has files with the examples
                     that are held out for dev and test. Empty if the training split has not been
                     prepared
    """
    _keep_shards_of_this_plan(folder)
    _remove_damaged_shards(folder, progress)
    sources = split_sources(request, training_shards)
    workers = _worker_count(request, sources)
    total = None
    if all(source.parts is not None for source in sources):
        total = sum(source.lines for source in sources)
    finished = sum(ShardReport.load(shard).records for shard in shard_folders(folder))
    write_shards(
        request,
        folder,
        shard_jobs(request, sources, folder, uses_files=workers > 1),
        workers,
        lambda read: progress(ReadingProgress(finished + read, total)),
    )
    report = _merge(request, sources, list(map(ShardReport.load, shard_folders(folder))))
    _finish(folder, report)
    progress(ReadingProgress(report.read, report.read))


def _keep_shards_of_this_plan(folder: Path) -> None:
    """Remove temporary files. Also remove all shards if they were cut with other shard sizes.

    The shard sizes can differ if another version of seqloom started to build the corpus.
    """
    remove_leftovers(folder)
    for path in folder.glob(f"{jobs.TEMPORARY_RECORDS}*"):
        path.unlink()
    plan = json.dumps({"part_bytes": file_parts.PART_BYTES, "shard_records": jobs.SHARD_RECORDS})
    path = folder / PLAN
    if not path.exists() or path.read_text() != plan:
        for shard in shard_folders(folder):
            shutil.rmtree(shard)
        path.write_text(plan)


def _remove_damaged_shards(folder: Path, progress: ProgressCallback) -> None:
    """Remove damaged shards of an earlier build: shards that do not match their manifest."""
    for shard in shard_folders(folder):
        if problems := find_damage(shard):
            progress(damage_note(problems))
            shutil.rmtree(shard)


def _worker_count(request: CorpusRequest, sources: Sequence[SplitSource]) -> int:
    """Return the number of processes that write shards.

    It is 1 if the data is small, if all examples must be in one shard, or if worker processes
    cannot be used. If the number of shards is known, it is at most this number.
    """
    if input_bytes(request) < MIN_PARALLEL_BYTES or sources[0].is_one_shard:
        return 1
    workers = request.data.workers or available_processors()
    if all(source.parts is not None for source in sources):
        workers = min(workers, sum(len(source.parts or ()) for source in sources))
    return workers if workers > 1 and can_use_processes(request) else 1


def _merge(
    request: CorpusRequest, sources: Sequence[SplitSource], shards: Sequence[ShardReport]
) -> CorpusReport:
    """Add up the reports of all shards.

    Raise a DataError if a corpus has no example, or if there are invalid lines and the setting
    data.invalid_lines does not skip them.
    """
    total = CorpusReport(request.split)
    invalid = InvalidLines()
    for number, source in enumerate(sources):
        before = total.read
        for shard in shards:
            if shard.source == number:
                _add_report(total, shard.report)
                invalid.extend(shard.invalid)
        is_error = invalid.count and request.data.invalid_lines == "error"
        if source.corpus is not None and total.read == before and not is_error:
            raise empty_corpus_error(request.data, source.corpus, request.split)
    if invalid.count:
        if request.data.invalid_lines == "error":
            raise invalid.error()
        total.read += invalid.count
        total.dropped[INVALID_LINE] = invalid.count
    return total


def _add_report(total: CorpusReport, report: CorpusReport) -> None:
    total.read += report.read
    total.kept += report.kept
    total.source_tokens += report.source_tokens
    total.target_tokens += report.target_tokens
    total.source_unknown += report.source_unknown
    total.target_unknown += report.target_unknown
    for counts, added in ((total.dropped, report.dropped), (total.empty, report.empty)):
        for reason, count in added.items():
            counts[reason] = counts.get(reason, 0) + count
    for group, count in report.parts:
        count_group(total.parts, group, count)


def _finish(folder: Path, report: CorpusReport) -> None:
    """Write the files that describe the whole corpus, then its manifest.

    The digests of files in a shard are copied from the shard's own manifest.
    """
    if not report.kept:
        reasons = "; ".join(f"{reason}: {n}" for reason, n in report.dropped.items())
        raise DataError(
            f"data.{report.split}: all {report.read} examples were dropped ({reasons}); "
            "check the data, or relax data.filter"
        )
    shards = shard_folders(folder)
    for name in ("source", "target"):
        if (shards[0] / f"{name}.offsets").exists():
            with (folder / f"{name}.lengths").open("wb") as file:
                for shard in shards:
                    offsets = np.fromfile(shard / f"{name}.offsets", np.int64)
                    file.write(np.diff(offsets).astype(np.int32).tobytes())
    (folder / REPORT).write_text(json.dumps(asdict(report)))
    for path in folder.iterdir():
        sync(path)
    listed = {
        f"{shard.name}/{name}": entry
        for shard in shards
        for name, entry in read_manifest(shard)["files"].items()
    }
    write_manifest(folder, listed)
