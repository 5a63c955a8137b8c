"""The command `seqloom translate-files`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seqloom.cli.commands.translate import Alignments, Scores, Through, with_pivot
from seqloom.cli.options import (
    Engine,
    EngineSettings,
    EnsembleMembers,
    Json,
    RunFolder,
    argument,
    flag,
    option,
)
from seqloom.cli.output import print_message, print_warning, shows_progress
from seqloom.cli.parameters.prediction_options import with_prediction_options
from seqloom.cli.process.interrupts import current_command, set_interruption_message
from seqloom.cli.process.line_output import make_request
from seqloom.cli.process.progress import progress_bar
from seqloom.inference.options import DEFAULT_OPTIONS, PredictionOptions

if TYPE_CHECKING:
    from seqloom.jobs.batch_translation.line_report import LineReport


@with_prediction_options("translate-files")
def translate_files(
    context: typer.Context,
    run_folder: RunFolder,
    patterns: Annotated[
        list[str],
        argument(
            "PATTERN...",
            "Files to translate: text, .jsonl or .parquet, also .gz and .zst. Quote patterns such "
            "as 'in/*.jsonl'.",
        ),
    ],
    output: Annotated[
        Path,
        option(
            "FOLDER",
            "Folder of the translations. If the command is interrupted, the same command continues "
            "it.",
        ),
    ],
    field: Annotated[
        str | None,
        option("NAME", "Field of .jsonl files or column of .parquet files with the texts."),
    ] = None,
    output_field: Annotated[
        str, option("NAME", "Field or column that receives the translations.", advanced=True)
    ] = "translation",
    workers: Annotated[
        int | None,
        option(
            "N",
            "Number of processes. With several GPUs, each process uses one. Default: 1.",
            min=1,
        ),
    ] = None,
    options: PredictionOptions = DEFAULT_OPTIONS,
    scores: Scores = False,
    alignments: Alignments = False,
    json: Json = False,
    overwrite: Annotated[
        bool, flag("--overwrite", "Discard the outputs of an earlier command in the folder.")
    ] = False,
    settings: EngineSettings = None,
    shard: Annotated[
        str,
        option(
            "I/N",
            "Translate share I of N, for job arrays. All shares write the same folder.",
            advanced=True,
        ),
    ] = "1/1",
    ray: Annotated[
        str | None,
        option(
            "ADDRESS",
            "Translate on a Ray cluster with this address, for example auto. local starts a "
            "cluster on this machine. --workers is then the number of actors.",
            advanced=True,
        ),
    ] = None,
    through: Through = None,
    engine: Engine = None,
    ensemble: EnsembleMembers = None,
) -> None:
    """Translate many files into a folder, with several processes or machines.

    The translations are those of `seqloom translate`, line by line.
    """
    options = with_pivot(options, through)
    set_interruption_message(
        lambda: f"Interrupted before the first translation. To repeat it, run: {current_command()}"
    )

    from seqloom.cli.engine import load_translator
    from seqloom.jobs.batch_translation.block_translator import (
        BlockTranslator,
        Shard,
        TranslationJob,
        check_many_files,
    )
    from seqloom.jobs.batch_translation.input_files import find_input_files
    from seqloom.jobs.batch_translation.job_progress import JobProgress
    from seqloom.jobs.batch_translation.output_folder import OutputFolder
    from seqloom.jobs.batch_translation.output_lines import TranslationFormatter
    from seqloom.jobs.batch_translation.worker_processes import translate_blocks

    formatter = TranslationFormatter(
        options.n_best, scores=scores, alignments=alignments, json=json
    )
    share = Shard.parse(shard)
    files = find_input_files(patterns, field, output_field)
    check_many_files(output, files, formatter, share, overwrite=overwrite, uses_ray=ray is not None)
    translator = load_translator(
        [run_folder, *(ensemble or ())],
        settings,
        options,
        engine,
        attention=alignments,
        probabilities=formatter.probabilities,
    )
    run, options = translator.run, translator.options
    if alignments and run.heads_note:
        print_warning(run.heads_note)
    folder = OutputFolder(output)
    contents = {file.name: [file.size, file.time] for file in files}
    request = make_request(context, translator, contents, "block")
    folder.prepare(files, request, overwrite=overwrite)
    job = TranslationJob.of(run, options, formatter, files, folder)
    incomplete: list[str] = []

    def on_file(index: int, is_complete: bool, report: LineReport) -> None:
        if is_complete:
            print_message(f"{folder.output_path(files[index])}: complete")
        else:
            incomplete.append(files[index].name)
        for message in report.messages():
            print_warning(f"{files[index].path}: {message}")

    progress = JobProgress(job, request, share, run, on_file)
    set_interruption_message(
        lambda: (
            f"Interrupted. {output} keeps the finished blocks. To continue, run: "
            f"{current_command(without='--overwrite')}"
        )
    )
    finished, total = progress.count_lines() if shows_progress() else (0, 0)
    with progress_bar("translating", "lines") as show:
        show(finished, total)
        for lines in progress.watch(
            translate_blocks(job, BlockTranslator(job, run), progress, workers, ray)
        ):
            show(finished + lines, total)
    if not progress.unfinished_files:
        folder.remove_blocks(files, request)
    if incomplete:
        print_message(
            f"This shard is finished. {len(incomplete):,} of {len(files):,} files wait for blocks of "
            "other shards. The shard that finishes last writes them."
        )
