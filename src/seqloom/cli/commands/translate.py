"""The command `seqloom translate`."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from seqloom.cli.options import (
    Engine,
    EnsembleMembers,
    Json,
    RunFolder,
)
from seqloom.cli.output import print_message, print_warning
from seqloom.cli.parameters.prediction_options import with_prediction_options
from seqloom.cli.process.interrupts import current_command, set_interruption_message
from seqloom.cli.process.many_files import (
    ONE_SHARD,
    ManyFiles,
    check_many_files_options,
    translate_many_files,
)
from seqloom.cli.process.progress import count_lines, portion_progress, progress_bar
from seqloom.cli.process.resumable_output import (
    OutputFile,
    OutputLines,
    StdoutLines,
    interruption_message,
    open_output_file,
    output_request,
)
from seqloom.inference.options import DEFAULT_OPTIONS, PredictionOptions

MANY_FILES = "Many files"
"""Panel of the help with the options of --input."""


@with_prediction_options("translate")
def translate(
    context: typer.Context,
    run_folder: RunFolder,
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FILE]...",
            help="Text files with one text per line. - is standard input. Default: standard input.",
        ),
    ] = None,
    options: PredictionOptions = DEFAULT_OPTIONS,
    scores: Annotated[
        bool, typer.Option("--scores", help="Print the score after each translation.")
    ] = False,
    alignments: Annotated[
        bool,
        typer.Option(
            "--alignments", help="Print the word alignment (0-0 1-2) after each translation."
        ),
    ] = False,
    json: Json = False,
    engine: Engine = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Override a decoding or engine setting, for example decoding.max_length=60 or "
            "engine.precision=float32, or how attention is computed, for example "
            "model.decoder.attention.selection=argmax. Can be repeated.",
        ),
    ] = None,
    ensemble: EnsembleMembers = None,
    through: Annotated[
        str | None,
        typer.Option(metavar="LANGUAGE", help="With --to: translate to this pivot language first."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write to this file instead of standard output. Until it is complete, its name is "
            "FILE.partial. If the command is interrupted, the same command continues it, unless "
            "the input is standard input. With --input: a folder.",
        ),
    ] = None,
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite",
            help="With --output: replace an existing file, and discard an unfinished one.",
        ),
    ] = False,
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            metavar="PATTERN",
            help="Translate these files into the folder of --output: text, .jsonl or .parquet, also "
            ".gz and .zst. Quote patterns such as 'in/*.jsonl'. Can be repeated.",
            rich_help_panel=MANY_FILES,
        ),
    ] = None,
    field: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Field of .jsonl files or column of .parquet files with the texts.",
            rich_help_panel=MANY_FILES,
        ),
    ] = None,
    output_field: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Field or column that receives the translations.",
            rich_help_panel=MANY_FILES,
        ),
    ] = "translation",
    workers: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Number of processes. With several GPUs, each process uses one. Default: 1.",
            rich_help_panel=MANY_FILES,
        ),
    ] = None,
    shard: Annotated[
        str,
        typer.Option(
            metavar="I/N",
            help="Translate share I of N, for job arrays. All shares write the same folder.",
            rich_help_panel=MANY_FILES,
        ),
    ] = ONE_SHARD,
    ray: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Translate on a Ray cluster with this address, for example auto. local starts a "
            "cluster on this machine. --workers is then the number of actors.",
            rich_help_panel=MANY_FILES,
        ),
    ] = None,
) -> None:
    """Translate text: one output line for each input line, in the same order.

    Blank lines stay blank. A line can have several sentences. With --n-best N, the format of a line is
    `id ||| translation ||| log-probabilities ||| score`.

    With --input, translate many files, with several processes or machines.
    """
    check_many_files_options(context, inputs)
    if through is not None and options.to is None:
        raise typer.BadParameter("--through requires --to, the final target language.")
    if overwrite and output is None:
        raise typer.BadParameter("--overwrite requires --output, the file to replace.")

    set_interruption_message(
        lambda: f"Interrupted before the first translation. To repeat it, run: {current_command()}"
    )

    from seqloom.cli.engine import prepare_engine
    from seqloom.cli.inputs import check_text_files, read_portions, skip_lines
    from seqloom.cli.recipe_settings import change_recipe, load_run
    from seqloom.cli.source_warnings import SourceWarnings
    from seqloom.cli.tags import MissingTags
    from seqloom.inference.search_settings import check_n_best
    from seqloom.jobs.batch_translation.output_lines import (
        TranslationFormatter,
        truncation_warning,
    )

    formatter = TranslationFormatter(
        options.n_best, scores=scores, alignments=alignments, json=json
    )
    many, output_file = None, None
    if inputs and output is not None:
        many = ManyFiles(inputs, output, overwrite, field, output_field, workers, shard, ray)
        input_files, job_share = many.check(formatter)
    else:
        check_text_files(files)
        output_file = None if output is None else OutputFile(output)
    if output_file is not None:
        output_file.check(files or (), overwrite)
    run, settings = load_run([run_folder, *(ensemble or ())], settings)
    config = change_recipe(
        run.config, settings, beam=options.beam, engine=engine, sections=("decoding", "engine")
    )
    run.engine = config.engine
    check_n_best(config.decoding, options.n_best)
    if through is not None and isinstance(options.to, str):
        options = replace(options, to=[through, options.to])
    run.languages.path(options.to)  # reports an unknown language before any input is read
    if alignments and run.heads_note:
        print_warning(run.heads_note)
    options = replace(
        options,
        decoding=config.decoding,
        attention=alignments,
        probabilities=formatter.probabilities,
    )
    engine_choice = prepare_engine(run, options, config.decoding)
    engine_name = f"{engine_choice.name} on {run.predictor.device.type}"

    if many is not None:
        translate_many_files(
            context,
            many,
            input_files,
            job_share,
            run,
            decoding=config.decoding,
            options=options,
            formatter=formatter,
            engine=engine_name,
        )
        return
    if output_file is None:
        target: AbstractContextManager[OutputLines] = nullcontext(StdoutLines())
    else:
        request = output_request(context, run, files, engine_name)
        if request is None:
            print_message(
                "The input is standard input, so this translation cannot be continued after an "
                "interruption. To be able to continue it, give an input file."
            )
        target = open_output_file(output_file, request, overwrite)

    prints = output_file is None
    with (
        target as lines,
        progress_bar("translating", "lines", prints=prints) as show,
    ):
        set_interruption_message(lambda: interruption_message(lines, output_file, files))
        total = count_lines(files, prints=prints)
        first_line = line_number = lines.finished
        if first_line and output is not None:
            print_message(f"{output}: continues after line {first_line:,} of the input.")
        truncated: list[int] = []
        missing_tags = MissingTags(run, total=first_line)
        source_warnings = SourceWarnings(run, first_line)
        portions = read_portions(files, run.predictor.device.type)
        for texts in skip_lines(portions, first_line):
            missing_tags.add(texts)
            options = replace(options, first=line_number)
            outputs = run.predict(
                texts,
                options,
                progress=portion_progress(show, line_number, total),
            )
            for text, predictions in zip(texts, outputs, strict=True):
                for line in formatter.lines(line_number, text, predictions):
                    lines.write(line)
                source_warnings.add(predictions[0])
                line_number += 1
                if not predictions[0].finished:
                    truncated.append(line_number)
            lines.end_portion(line_number)
            show(line_number, total)
    missing_tags.warn()
    source_warnings.warn()
    if truncated:
        print_warning(truncation_warning(truncated, line_number - first_line))
