"""Translates blocks of lines and writes them to the output folder."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from seqloom.config.schema.decoding import DecodingConfig, EngineConfig
from seqloom.inference.options import PredictionOptions
from seqloom.inference.run import Run, load
from seqloom.inference.source_tags import SourceTags
from seqloom.inference.texts.input_reports import InputReport, Problem
from seqloom.jobs.batch_translation.input_files import Block, InputFile, read_blocks
from seqloom.jobs.batch_translation.output_folder import OutputFolder
from seqloom.jobs.batch_translation.output_lines import TranslationFormatter, truncation_warning


@dataclass(frozen=True)
class Shard:
    """The part of the work that one command does, if several commands translate the same files.

    number: number of this part, from 1 to `count`
    count:  number of parts
    """

    number: int = 1
    count: int = 1

    def has(self, file: int, block: int) -> bool:
        """Return True if the block belongs to this shard.

        The blocks of a file are assigned to the shards in turn. The first blocks of the files are
        assigned in turn as well, so that files with only one block are spread over all shards.

        file:  index of the file among the input files
        block: index of the block in its file
        """
        return (file + block) % self.count == self.number - 1


@dataclass(frozen=True)
class FileEnd:
    """Reports that a process has read all blocks of a file.

    file:       index of the file among the input files
    blocks:     number of all blocks of the file
    unfinished: number of blocks that this process has to translate. Blocks that earlier commands
                translated are not included.
    """

    file: int
    blocks: int
    unfinished: int


@dataclass(frozen=True)
class TranslationJob:
    """Everything that a process needs to translate blocks of lines: run, options and files.

    A job can be sent to other processes.

    folders:     the run folder, or the run folders of an ensemble
    settings:    changes to the recipe, such as "model.decoder.attention.selection=argmax"
    block_lines: number of lines in a block, which are sorted by length and decoded together.
                 Without --input, `seqloom translate` also decodes this number of lines together, so
                 the outputs are equal
    """

    folders: Sequence[Path]
    settings: Sequence[str]
    engine: EngineConfig
    decoding: DecodingConfig
    options: PredictionOptions
    formatter: TranslationFormatter
    files: Sequence[InputFile]
    output: OutputFolder
    block_lines: int

    def with_absolute_paths(self) -> "TranslationJob":
        """Return a copy with absolute paths, for processes with another working directory."""
        return replace(
            self,
            folders=[folder.absolute() for folder in self.folders],
            files=[replace(file, path=file.path.absolute()) for file in self.files],
            output=OutputFolder(self.output.path.absolute()),
        )

    def unfinished_blocks(self, file: int, shard: Shard) -> Iterator[Block | FileEnd]:
        """Yield the blocks of a file that belong to the shard and are not translated yet.

        The last item is a `FileEnd`, which contains the number of these blocks.

        file: index of the file among the input files
        """
        finished = self.output.finished_blocks(self.files[file])
        blocks = unfinished = 0
        for block in read_blocks(self.files[file], file, self.block_lines):
            blocks += 1
            if block.index not in finished and shard.has(file, block.index):
                unfinished += 1
                yield block
        yield FileEnd(file, blocks, unfinished)


@dataclass
class LineReport:
    """The lines of a file that need a warning. Line numbers are counted from 1.

    inputs:       problems such as unknown words in the source, with their line numbers
    total:        number of translated lines
    missing_tags: numbers of the source lines that contain no tag, although the run expects one of
                  its tags, such as <U>, in every line
    truncated:    numbers of the lines whose output reached the length limit
    """

    inputs: InputReport
    total: int = 0
    missing_tags: list[int] = field(default_factory=list)
    truncated: list[int] = field(default_factory=list)

    def add(self, other: "LineReport") -> None:
        """Add the contents of a report about other lines of the same file."""
        self.total += other.total
        self.inputs.total = self.total
        self.missing_tags += other.missing_tags
        self.truncated += other.truncated
        for kind, problem in other.inputs.problems.items():
            sum_of_blocks = self.inputs.problems.setdefault(kind, Problem())
            sum_of_blocks.numbers += problem.numbers
            sum_of_blocks.parts.update(problem.parts)

    def messages(self, tags: SourceTags) -> list[str]:
        """Return the warnings about the lines of this report."""
        messages = self.inputs.messages()
        if self.missing_tags:
            messages.append(tags.warning(self.missing_tags, self.total))
        if self.truncated:
            messages.append(truncation_warning(self.truncated, self.total))
        return messages


@dataclass(frozen=True)
class BlockReport:
    """Reports that a block of lines is translated.

    file:  index of the file among the input files
    index: index of the block in its file
    lines: the lines of the block that need a warning
    """

    file: int
    index: int
    lines: LineReport


class BlockTranslator:
    """Translates blocks of lines with a loaded run.

    job: describes the run, the options and the files
    run: the run, if it is loaded already. Default: load it from `job.folders`
    """

    def __init__(self, job: TranslationJob, run: Run | None = None) -> None:
        self._job = job
        self._run = load(list(job.folders), list(job.settings)) if run is None else run
        self._run.engine = job.engine

    def translate(self, block: Block) -> BlockReport:
        """Translate a block and write it to the output folder."""
        job, file = self._job, self._job.files[block.file]
        options = replace(job.options, first=block.first)
        outputs = self._run.predict(block.texts, options, decoding=job.decoding)
        lines: list[str] = []
        report = self.empty_report(block.first)
        missing = self._run.source_tags.missing(block.texts)
        report.missing_tags += [block.first + index + 1 for index in missing]
        for number, (text, predictions) in enumerate(
            zip(block.texts, outputs, strict=True), start=block.first
        ):
            if file.kind == "text":
                lines += job.formatter.lines(number, text, predictions)
            else:
                lines.append(job.formatter.fields(file.output_field, predictions[0]))
            report.inputs.add(predictions[0])
            if not predictions[0].finished:
                report.truncated.append(number + 1)
        report.total = len(block.texts)
        job.output.write_block(file, block.index, lines)
        return BlockReport(block.file, block.index, report)

    def empty_report(self, first: int = 0) -> LineReport:
        """Return an empty report, to which the lines of a block can be added.

        first: number of lines in the file before this block
        """
        tokenizer = self._run.task.source_tokenizer
        unknown_unit = "word" if tokenizer is None else tokenizer.unknown_unit
        return LineReport(InputReport(unknown_unit, total=first))
