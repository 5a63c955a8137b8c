"""`translate --input`: translates many files into an output folder."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from seqloom.cli.output import print_message, print_warning
from seqloom.cli.process.interrupts import current_command, set_interruption_message
from seqloom.cli.process.progress import progress_bar, shows_progress
from seqloom.cli.process.resumable_output import glossary_digest, named_options
from seqloom.core.errors import ConfigError
from seqloom.core.threads import configured_threads, threads_per_process

if TYPE_CHECKING:
    from seqloom.config.schema.decoding import DecodingConfig
    from seqloom.inference.options import PredictionOptions
    from seqloom.inference.run import Run
    from seqloom.jobs.batch_translation.block_translator import (
        BlockReport,
        BlockTranslator,
        FileEnd,
        LineReport,
        Shard,
        TranslationJob,
    )
    from seqloom.jobs.batch_translation.input_files import InputFile
    from seqloom.jobs.batch_translation.job_progress import JobProgress
    from seqloom.jobs.batch_translation.output_lines import TranslationFormatter
    from seqloom.jobs.batch_translation.request import TranslationRequest

ONE_SHARD = "1/1"


@dataclass(frozen=True)
class ManyFiles:
    """The options of `translate` for translating many files.

    inputs:       file names and patterns
    output:       folder of the translations
    field:        field of .jsonl files or column of .parquet files with the source texts
    output_field: field or column that receives the translations
    workers:      without Ray: number of worker processes. None: this process translates alone.
                  With Ray: number of actors. None: as many actors as fit on the cluster
    shard:        "I/N": this command translates shard I of N, counted from 1
    ray:          address of a Ray cluster. None: do not use Ray
    """

    inputs: Sequence[str]
    output: Path
    overwrite: bool
    field: str | None
    output_field: str
    workers: int | None
    shard: str
    ray: str | None

    def check(self, formatter: TranslationFormatter) -> tuple[list[InputFile], Shard]:
        """Check the options. Return all input files, and the value of --shard (shard I of N).

        Raises ConfigError if the options are not valid.
        """
        from seqloom.jobs.batch_translation.input_files import find_input_files

        if self.output.is_file():
            raise ConfigError(f"--output {self.output}: is a file. With --input, give a folder.")
        if self.shard != ONE_SHARD and self.overwrite:
            raise ConfigError(
                "--overwrite does not work with --shard. Delete the output folder first, or choose "
                "another one."
            )
        if self.shard != ONE_SHARD and self.ray is not None:
            raise ConfigError(
                "--shard does not work with --ray, because Ray itself distributes the work. Remove "
                "one of the two options."
            )
        files = find_input_files(self.inputs, self.field, self.output_field)
        if (formatter.json or formatter.n_best > 1) and any(file.kind != "text" for file in files):
            raise ConfigError(
                "--json and --n-best work only with plain text files. Remove these options to "
                "translate .jsonl or .parquet files."
            )
        return files, _parse_shard(self.shard)

    @property
    def threads(self) -> int:
        """Number of CPU threads of each worker.

        This is the value of --threads or OMP_NUM_THREADS. If neither is set, each worker gets an
        equal share of the cores that this process may use. If the number of workers is not given
        either, as is possible with Ray, each worker gets one thread.
        """
        if self.workers is None:
            return configured_threads() or 1
        return threads_per_process(self.workers)


def _parse_shard(text: str) -> Shard:
    from seqloom.jobs.batch_translation.block_translator import Shard

    match = re.fullmatch(r"(\d+)/(\d+)", text)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise ConfigError(
            f"--shard {text}: must be I/N, which means shard I of N, for example 1/8 for the first "
            "of 8 shards."
        )
    return Shard(int(match[1]), int(match[2]))


def check_many_files_options(context: typer.Context, inputs: Sequence[str] | None) -> None:
    """Raise a usage error if --input and the other options do not fit together.

    With --input, --output is required, and file arguments are not allowed. Without --input, the
    other options about many files are not allowed.
    """
    if inputs:
        if context.params["files"]:
            raise typer.BadParameter(
                "give input files either with --input or as arguments, not both."
            )
        if context.params["output"] is None:
            raise typer.BadParameter("--input requires --output, the folder of the translations.")
        return
    for name in ("field", "workers", "ray", "shard", "output_field"):
        parameter = next(one for one in context.command.params if one.name == name)
        if context.params[name] != parameter.default:
            raise typer.BadParameter(
                f"{parameter.opts[0]} requires --input, the files to translate."
            )


def translate_many_files(
    context: typer.Context,
    many: ManyFiles,
    files: Sequence[InputFile],
    shard: Shard,
    run: Run,
    *,
    decoding: DecodingConfig,
    options: PredictionOptions,
    formatter: TranslationFormatter,
    engine: str,
) -> None:
    """Translate files into the output folder and print a message about each finished file.

    engine: name of the engine and of the device
    """
    from seqloom.jobs.batch_translation.block_translator import BlockTranslator, TranslationJob
    from seqloom.jobs.batch_translation.job_progress import JobProgress
    from seqloom.jobs.batch_translation.output_folder import OutputFolder
    from seqloom.jobs.batch_translation.portions import portion_lines

    output = OutputFolder(many.output)
    request = _request(context, run, files, engine)
    output.prepare(files, request, overwrite=many.overwrite)
    folders = (run.folder, *run.partners)
    job = TranslationJob(
        folders,
        run.settings,
        run.engine,
        decoding,
        options,
        formatter,
        files,
        output,
        portion_lines(run.predictor.device.type),
    )
    translator = BlockTranslator(job, run)
    incomplete: list[str] = []

    def on_file(index: int, is_complete: bool, report: LineReport) -> None:
        if is_complete:
            print_message(f"{output.output_path(files[index])}: complete")
        else:
            incomplete.append(files[index].name)
        for message in report.messages(run.source_tags):
            print_warning(f"{files[index].path}: {message}")

    progress = JobProgress(job, request, shard, translator.empty_report, on_file)
    set_interruption_message(
        lambda: (
            f"Interrupted. {many.output} keeps the finished blocks. To continue, run: "
            f"{current_command(without='--overwrite')}"
        )
    )
    finished, total = progress.count_lines() if shows_progress() else (0, 0)
    with progress_bar("translating", "lines") as show:
        show(finished, total)
        for lines in progress.watch(_execute(many, job, translator, progress)):
            show(finished + lines, total)
    if not progress.unfinished_files:
        output.remove_blocks(files, request)
    if incomplete:
        print_message(
            f"This shard is finished. {len(incomplete):,} of {len(files):,} files wait for blocks of "
            "other shards. The shard that finishes last writes them."
        )


def _execute(
    many: ManyFiles, job: TranslationJob, translator: BlockTranslator, progress: JobProgress
) -> Iterable[BlockReport | FileEnd]:
    """Translate with this process, with worker processes, or with a Ray cluster.

    The input files are divided into blocks of lines. Returns an iterable over reports, one for each
    finished block. With Ray, it also contains a `FileEnd` object that marks the end of each file.
    """
    if many.ray is not None:
        from seqloom.jobs.batch_translation.ray_cluster import translate_with_ray

        files = progress.unfinished_files
        return translate_with_ray(job, files, many.ray, many.workers, many.threads)
    if many.workers is not None and many.workers > 1:
        from seqloom.jobs.batch_translation.worker_processes import translate_with_processes

        return translate_with_processes(job, progress.blocks(), many.workers, many.threads)
    return map(translator.translate, progress.blocks())


def _request(
    context: typer.Context, run: Run, files: Sequence[InputFile], engine: str
) -> TranslationRequest:
    """Return a dictionary of everything that determines the outputs.

    It describes the runs, the input files, the options and the versions. A command can continue the
    unfinished output of an earlier command only if this dictionary is the same for both.
    """
    from seqloom import __version__
    from seqloom.jobs.batch_translation.portions import portion_lines
    from seqloom.runs.bundle import run_digest

    block = portion_lines(run.predictor.device.type)
    return {
        "runs": [run_digest(folder) for folder in (run.folder, *run.partners)],
        "input files": {file.name: [file.size, file.time] for file in files},
        "options": named_options(context),
        **glossary_digest(context),
        "engine": engine,
        "seqloom version": f"{__version__}, {block} lines per block",
    }
