"""Translates blocks of lines and writes them to the output folder."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from seqloom.config.schema.decoding import DecodingConfig, EngineConfig
from seqloom.core.errors import ConfigError
from seqloom.inference.options import PredictionOptions
from seqloom.inference.run import Run, load
from seqloom.jobs.batch_translation.input_files import Block, InputFile, read_blocks
from seqloom.jobs.batch_translation.line_report import LineReport
from seqloom.jobs.batch_translation.output_folder import OutputFolder
from seqloom.jobs.batch_translation.output_lines import TranslationFormatter
from seqloom.jobs.batch_translation.portions import portion_lines


@dataclass(frozen=True)
class Shard:
    """The part of the work that one command does, if several commands translate the same files.

    number: number of this part, from 1 to `count`
    count:  number of parts
    """

    number: int = 1
    count: int = 1

    @classmethod
    def parse(cls, text: str) -> "Shard":
        """Read a shard such as "1/8", the first of eight."""
        match = re.fullmatch(r"(\d+)/(\d+)", text)
        if match is None or not 1 <= int(match[1]) <= int(match[2]):
            raise ConfigError(
                f"--shard {text}: must be I/N, which means shard I of N, for example 1/8 for the "
                "first of 8 shards."
            )
        return cls(int(match[1]), int(match[2]))

    def has(self, file: int, block: int) -> bool:
        """Return True if the block belongs to this shard.

        The blocks of a file are assigned to the shards in turn. The first blocks of the files are
        assigned in turn as well, so that files with only one block are spread over all shards.

        file:  index of the file among the input files
        block: index of the block in its file
        """
        return (file + block) % self.count == self.number - 1


def check_many_files(
    output: Path,
    files: Sequence[InputFile],
    formatter: TranslationFormatter,
    shard: Shard,
    *,
    overwrite: bool,
    uses_ray: bool,
) -> None:
    """Raise ConfigError if the options of `seqloom translate-files` do not fit together."""
    if output.is_file():
        raise ConfigError(f"--output {output}: is a file. Give a folder.")
    if shard.count > 1 and overwrite:
        raise ConfigError(
            "--overwrite does not work with --shard. Delete the output folder first, or choose "
            "another one."
        )
    if shard.count > 1 and uses_ray:
        raise ConfigError(
            "--shard does not work with --ray, because Ray itself distributes the work. Remove one "
            "of the two options."
        )
    if (formatter.json or formatter.n_best > 1) and any(file.kind != "text" for file in files):
        raise ConfigError(
            "--json and --n-best work only with plain text files. Remove these options to translate "
            ".jsonl or .parquet files."
        )


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
                 `seqloom translate` also decodes this number of lines together, so
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

    @classmethod
    def of(
        cls,
        run: Run,
        options: PredictionOptions,
        formatter: TranslationFormatter,
        files: Sequence[InputFile],
        output: OutputFolder,
    ) -> "TranslationJob":
        """Return the job that translates files with a loaded run."""
        assert options.decoding is not None
        return cls(
            (run.folder, *run.partners),
            run.settings,
            run.engine,
            options.decoding,
            options,
            formatter,
            files,
            output,
            portion_lines(run.predictor.device.type),
        )

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
        for number, (text, predictions) in enumerate(
            zip(block.texts, outputs, strict=True), start=block.first
        ):
            if file.kind == "text":
                lines += job.formatter.lines(number, text, predictions)
            else:
                lines.append(job.formatter.fields(file.output_field, predictions[0]))
        report = LineReport.of(self._run, block.first)
        report.add_lines(block.texts, [predictions[0] for predictions in outputs])
        job.output.write_block(file, block.index, lines)
        return BlockReport(block.file, block.index, report)
