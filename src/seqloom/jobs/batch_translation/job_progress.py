"""Progress of a batch translation: which files are read, translated and joined."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from seqloom.inference.run import Run
from seqloom.jobs.batch_translation.block_translator import (
    BlockReport,
    FileEnd,
    Shard,
    TranslationJob,
)
from seqloom.jobs.batch_translation.input_files import Block, block_sizes
from seqloom.jobs.batch_translation.line_report import LineReport
from seqloom.jobs.batch_translation.request import TranslationRequest

FileObserver = Callable[[int, bool, LineReport], None]
"""Called when this process has finished all its blocks of a file. Arguments: the index of the file,
whether its output is complete, and the report about the lines that this process translated."""


class JobProgress:
    """Counts the finished blocks of each file. Joins the blocks when all of them are finished.

    lines: number of lines that this process has translated so far
    """

    def __init__(
        self,
        job: TranslationJob,
        request: TranslationRequest,
        shard: Shard,
        run: Run,
        on_file: FileObserver,
    ) -> None:
        self._job, self._request, self._shard = job, request, shard
        self._run, self._on_file = run, on_file
        self._finished: Counter[int] = Counter()
        self._ends: dict[int, FileEnd] = {}
        self._reports: dict[int, LineReport] = {}
        self.lines = 0

    @property
    def unfinished_files(self) -> list[int]:
        """The indices of the files whose output is not complete."""
        output = self._job.output
        return [
            index
            for index, file in enumerate(self._job.files)
            if not output.output_path(file).exists()
        ]

    def blocks(self) -> Iterator[Block]:
        """Yield the blocks of this process that are not finished, file by file."""
        for file in self.unfinished_files:
            for item in self._job.unfinished_blocks(file, self._shard):
                if isinstance(item, FileEnd):
                    self._end_file(item)
                else:
                    yield item

    def watch(self, items: Iterable[BlockReport | FileEnd]) -> Iterator[int]:
        """Count finished blocks, and join the blocks of complete files.

        Yields the number of lines translated so far, after each finished block.

        items: reports about finished blocks and about files whose blocks have all been read
        """
        for item in items:
            if isinstance(item, FileEnd):
                self._end_file(item)
                continue
            self._finished[item.file] += 1
            self._reports.setdefault(item.file, LineReport.of(self._run)).add(item.lines)
            self.lines += item.lines.total
            self._join(item.file)
            yield self.lines

    def count_lines(self) -> tuple[int, int]:
        """Return how many lines of this process are finished, and how many it has in total.

        Reads all files to count their lines, but does not parse the lines.
        """
        finished = total = 0
        unfinished_files = {*self.unfinished_files}
        for index, file in enumerate(self._job.files):
            done = self._job.output.finished_blocks(file)
            for block, size in enumerate(block_sizes(file, self._job.block_lines)):
                if self._shard.has(index, block):
                    total += size
                    finished += size if block in done or index not in unfinished_files else 0
        return finished, total

    def _end_file(self, end: FileEnd) -> None:
        self._ends[end.file] = end
        self._join(end.file)

    def _join(self, file: int) -> None:
        """Join the blocks of a file and report the file, once this process has finished its blocks.

        Does nothing while this process still has blocks of the file to read or to translate. If
        other processes still have such blocks, reports the file as incomplete and does not join it.
        """
        end = self._ends.get(file)
        if end is None or self._finished[file] < end.unfinished:
            return
        is_complete = self._job.output.join(self._job.files[file], end.blocks, self._request)
        self._on_file(file, is_complete, self._reports.pop(file, LineReport.of(self._run)))
