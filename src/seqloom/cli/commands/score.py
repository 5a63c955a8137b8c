"""The command `seqloom score`."""

from pathlib import Path
from typing import Annotated

from seqloom.cli.options import EnsembleMembers, RunFolder, argument
from seqloom.cli.output import flush_output, print_line, print_warnings
from seqloom.cli.process.progress import count_lines, progress_bar
from seqloom.core.errors import ConfigError


def score(
    run_folder: RunFolder,
    source: Annotated[
        Path, argument("SOURCE", "File of sources; for a language model, file of texts.")
    ],
    target: Annotated[
        Path | None, argument("[TARGET]", "File of targets; line n belongs to source n.")
    ] = None,
    ensemble: EnsembleMembers = None,
) -> None:
    """Print the log-probability of given targets, one number per line."""
    from seqloom.data.readers.example_files import check_files, read_aligned_lines
    from seqloom.inference.run import load
    from seqloom.jobs.batch_translation.line_report import LineReport

    run = load([run_folder, *(ensemble or ())])
    is_language_model = run.config.task.kind == "language-model"
    if is_language_model and target is not None:
        raise ConfigError(f"{run.name}: a language model has no source. Give one file.")
    if not is_language_model and target is None:
        raise ConfigError(f"{run.name}: give two files, sources and targets.")
    files = [source] if target is None else [source, target]
    check_files(files)
    report = LineReport.of(run)
    finished = 0
    with progress_bar("scoring", "lines", prints=True) as show:
        total = count_lines(files[:1], prints=True)
        for rows in read_aligned_lines(files):
            sources = ["" if is_language_model else row[0] for row in rows]
            predictions = run.score(sources, [row[-1] for row in rows], attention=False)
            report.add_lines(sources, predictions)
            for prediction in predictions:
                print_line(f"{sum(prediction.log_probabilities):.6f}")
            flush_output()
            finished += len(rows)
            show(finished, total)
    print_warnings(report.messages())
