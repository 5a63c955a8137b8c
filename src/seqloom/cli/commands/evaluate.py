"""The command `seqloom evaluate`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rich.console import Console
from rich.text import Text

from seqloom.cli.options import EnsembleMembers, Json, RunFolder, Split, existing_run, flag, option
from seqloom.cli.output import print_json, print_message, print_warning
from seqloom.cli.parameters.completion import complete_run
from seqloom.cli.parameters.prediction_options import with_prediction_options
from seqloom.cli.process.interrupts import current_command, set_interruption_message
from seqloom.cli.process.progress import progress_bar
from seqloom.cli.tables import format_score, make_table, metric_label, stdout_console
from seqloom.config.schema.names import EngineKind
from seqloom.core.errors import ConfigError, StorageError
from seqloom.inference.options import DEFAULT_OPTIONS, PredictionOptions

if TYPE_CHECKING:
    from seqloom.config.schema.recipe import RunConfig
    from seqloom.inference.evaluation.report import EvaluationReport
    from seqloom.inference.forecaster import Forecaster
    from seqloom.inference.run import Run
    from seqloom.metrics.significance import PairedComparison

EXAMPLE_COUNT = 5


@with_prediction_options("evaluate")
def evaluate(
    run_folder: RunFolder,
    split: Split = "test",
    against: Annotated[
        Path | None,
        option(
            "RUN",
            "Compare with this run (paired bootstrap test).",
            "--against",
            callback=existing_run,
            autocompletion=complete_run,
        ),
    ] = None,
    options: PredictionOptions = DEFAULT_OPTIONS,
    json: Json = False,
    engine: Annotated[
        EngineKind | None,
        option(
            "ENGINE",
            "Inference engine: torch or ctranslate2. Default: torch.",
            "--engine",
            advanced=True,
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        option(
            "KEY=VALUE",
            "Override a setting of decoding, engine or data, for example "
            "decoding.max_length=60, data.folder=/path or data.test={kind='tsv', path='x.tsv'}, or "
            "how attention is computed, for example model.decoder.attention.selection=argmax. "
            "Can be repeated.",
            "--set",
        ),
    ] = None,
    ensemble: EnsembleMembers = None,
    lowercase: Annotated[
        bool, flag("--lowercase", "Also compute BLEU on lower-cased text.", advanced=True)
    ] = False,
) -> None:
    """Evaluate a run on held-out data: scores, scores by length, and the worst outputs.

    Uses the data of the recipe. Use --set data.folder=… if the data has moved, and --set
    data.test=… for another test set. The outputs and scores are saved in the run folder.
    """
    saved: list[Path] = []
    set_interruption_message(lambda: _interruption_message(saved))

    from seqloom.cli.recipe_settings import change_recipe, load_run, split_model_settings
    from seqloom.inference.evaluation.report import compare_reports
    from seqloom.inference.forecaster import is_forecaster, load_forecaster

    if against is None and is_forecaster(run_folder):
        of_model, others = split_model_settings(settings)
        forecaster = load_forecaster(run_folder, of_model)
        config = change_recipe(forecaster.config, others, sections=("data",))
        _evaluate_forecaster(forecaster, config, split, json)
        return

    runs = [] if against is None else [load_run([against], settings)[0]]
    run, others = load_run([run_folder, *(ensemble or ())], settings)
    runs.append(run)
    _check_same_task(runs)
    reports = []
    for run in runs:
        config = change_recipe(
            run.config,
            others,
            beam=options.beam,
            engine=engine,
            sections=("decoding", "engine", "data"),
        )
        reports.append(_evaluate_run(run, config, split, lowercase, saved))
    console = stdout_console()
    if against is None:
        [report] = reports
        if json:
            print_json(report.to_json(), indent=2)
        else:
            _print_report(console, report)
        return
    baseline, report = reports
    comparisons = compare_reports(baseline, report) if baseline.outputs else []
    if json:
        record = report.to_json()
        record["against"] = baseline.to_json()
        record["comparisons"] = [asdict(comparison) for comparison in comparisons]
        print_json(record, indent=2)
    else:
        _print_comparison(console, baseline, report, comparisons)


def _check_same_task(runs: Sequence[Run]) -> None:
    """Raise ConfigError if the runs have different tasks.

    Called before decoding, so that the error appears at once.
    """
    tasks = {run.config.task.kind: run.folder for run in runs}
    if len(tasks) > 1:
        listed = " and ".join(f"{folder} is for {task}" for task, folder in tasks.items())
        raise ConfigError(
            f"--against: the runs have different tasks: {listed}. Give two runs of the same task."
        )


def _interruption_message(saved: Sequence[Path]) -> str:
    """Return the message to print after Ctrl-C.

    saved: folders of the reports that were saved before the interruption
    """
    kept = "No scores were stored."
    if saved:
        kept = f"The scores in {' and '.join(map(str, saved))} are complete."
    return f"Interrupted. {kept} To repeat the evaluation, run: {current_command()}"


def _evaluate_run(
    run: Run, config: RunConfig, split: Split, lowercase: bool, saved: list[Path]
) -> EvaluationReport:
    """Evaluate a run on a split and save the report in its folder.

    saved: the folder of the report is appended to this list
    """
    from seqloom.cli.engine import prepare_engine
    from seqloom.inference.options import TEXT_ONLY

    run.engine = config.engine
    if run.engine.kind == "ctranslate2":
        prepare_engine(run, TEXT_ONLY, config.decoding)
    with progress_bar(run.name) as advance:
        report = run.evaluate(
            split,
            decoding=config.decoding,
            data=config.data,
            lowercase=lowercase,
            progress=advance,
        )
    if _stores_reports(run.folder):
        try:
            different = " and ".join(report.changed_settings(run.folder))
            replaced = f" They replace a report that differs in {different}." if different else ""
            saved.append(report.save(run.folder))
            print_message(f"Outputs and scores are in {saved[-1]}.{replaced}")
        except StorageError as error:
            print_warning(f"outputs and scores could not be saved: {error}")
    return report


def _stores_reports(folder: Path) -> bool:
    """Return True if a report can be stored in the folder.

    Returns False for a packed run, and prints a message that its reports are not stored.
    """
    from seqloom.runs.archive import is_extracted

    if not is_extracted(folder):
        return True
    print_message(
        "outputs and scores are not stored, because this is a packed run. To store them, extract it "
        "with `seqloom unpack` and evaluate the folder"
    )
    return False


def _evaluate_forecaster(
    forecaster: Forecaster, config: RunConfig, split: Split, json: bool
) -> None:
    """Evaluate a run that forecasts time series, save the report in its folder, and print scores.

    The printed table also contains the scores of simple baseline forecasts.
    """
    report = forecaster.evaluate(split, data=config.data)
    if _stores_reports(forecaster.folder):
        try:
            print_message(f"Forecasts and scores are in {report.save(forecaster.folder)}.")
        except StorageError as error:
            print_warning(f"forecasts and scores could not be saved: {error}")
    if json:
        print_json(report.to_json(), indent=2)
        return
    console = stdout_console()
    title = f"{report.run}: {len(report.windows):,} windows of {report.split}"
    console.print(Text(title, "bold"), soft_wrap=True)
    rows = [
        (
            score.name,
            format_score(score.name, score.value),
            *(
                format_score(score.name, scores[index].value)
                for scores in report.baselines.values()
            ),
        )
        for index, score in enumerate(report.scores)
    ]
    console.print(make_table(("score", "this run", *report.baselines), rows))
    for score in report.scores:
        if score.signature:
            console.print(Text(f"{score.name}: {score.signature}", "dim"), soft_wrap=True)


def _print_report(console: Console, report: EvaluationReport) -> None:
    """Print the scores, how they were computed, the scores by group and by length, and the worst
    examples.
    """
    from seqloom.inference.evaluation.examples import worst_examples

    title = f"{report.run}: {report.sentences:,} sentences of {report.split}"
    rows = [
        (metric_label(score.name), format_score(score.name, score.value)) for score in report.scores
    ]
    console.print(Text(title, "bold"), soft_wrap=True)
    console.print(make_table(("score", "value"), rows))
    if report.settings:
        changed = f"with the settings {', '.join(report.settings)}"
        console.print(Text(changed, "dim"), soft_wrap=True)
    _print_signatures(console, report)
    _print_group_scores(console, report)
    _print_truncated_and_empty(console, report)
    if len(report.by_length) > 1:
        metric = metric_label(report.by_length[0].score.name)
        rows_by_length = [
            (
                _format_range(bucket.shortest, bucket.longest),
                f"{bucket.sentences:,}",
                format_score(bucket.score.name, bucket.score.value),
            )
            for bucket in report.by_length
        ]
        console.print()
        console.print(make_table(("source words", "sentences", metric), rows_by_length))
    console.print()
    if indices := worst_examples(report, EXAMPLE_COUNT):
        heading = f"the {len(indices)} outputs with the least overlap with their references"
        console.print(Text(heading, "bold"), soft_wrap=True)
        print_examples(console, [report], indices)


def _format_range(shortest: int, longest: int) -> str:
    return str(shortest) if shortest == longest else f"{shortest} to {longest}"


def _print_group_scores(console: Console, report: EvaluationReport) -> None:
    """Print the scores of each group of the data (such as a language pair), and their mean."""
    from seqloom.inference.evaluation.groups import mean_scores

    if not report.parts:
        return
    metrics = [metric_label(score.name) for score in report.parts[0].scores]
    rows = [
        (
            group.part,
            f"{group.sentences:,}",
            *(format_score(score.name, score.value) for score in group.scores),
        )
        for group in report.parts
    ]
    means = [format_score(score.name, score.value) for score in mean_scores(report.parts)]
    console.print()
    console.print(make_table(("group", "sentences", *metrics), [*rows, ("mean", "", *means)]))


def _print_signatures(console: Console, report: EvaluationReport) -> None:
    """Print how the scores were computed. Scores that were computed alike share a line."""
    names: dict[str, list[str]] = {}
    for score in report.scores:
        if score.signature:
            names.setdefault(score.signature, []).append(metric_label(score.name))
    for signature, labels in names.items():
        console.print(Text(f"{', '.join(labels)}: {signature}", "dim"), soft_wrap=True)


def _print_truncated_and_empty(console: Console, *reports: EvaluationReport) -> None:
    for report in reports:
        if report.empty:
            console.print(
                f"{report.run}: {report.empty:,} of {report.sentences:,} outputs are empty.",
                soft_wrap=True,
            )
        if report.cut_off:
            console.print(
                f"{report.run}: {report.cut_off:,} outputs reached the length limit. Raise it with "
                "--set decoding.max_length=…",
                soft_wrap=True,
            )


def _print_comparison(
    console: Console,
    baseline: EvaluationReport,
    report: EvaluationReport,
    comparisons: Sequence[PairedComparison],
) -> None:
    """Print the scores of two runs side by side, the bootstrap test, and some differing outputs."""
    from seqloom.inference.evaluation.examples import differing_examples

    title = f"{baseline.sentences:,} sentences of {baseline.split}"
    baseline_scores = {
        score.name: format_score(score.name, score.value) for score in baseline.scores
    }
    rows = [
        (
            metric_label(score.name),
            baseline_scores.get(score.name, ""),
            format_score(score.name, score.value),
        )
        for score in report.scores
    ]
    console.print(Text(title, "bold"), soft_wrap=True)
    console.print(make_table(("score", baseline.run, report.run), rows))
    _print_signatures(console, report)
    _print_truncated_and_empty(console, baseline, report)
    if not comparisons:
        return
    console.print()
    _print_significance(console, baseline, report, comparisons)
    indices = differing_examples(baseline, report)
    console.print()
    heading = f"{len(indices):,} of {report.sentences:,} outputs differ"
    if indices:
        heading += f"; the {min(EXAMPLE_COUNT, len(indices))} with the largest change in overlap"
    console.print(Text(heading, "bold"), soft_wrap=True)
    print_examples(console, [baseline, report], indices[:EXAMPLE_COUNT])


def _print_significance(
    console: Console,
    baseline: EvaluationReport,
    report: EvaluationReport,
    comparisons: Sequence[PairedComparison],
) -> None:
    rows = [
        (
            metric_label(each.metric),
            f"{each.baseline.score:.2f} ± {each.baseline.interval:.2f}",
            f"{each.system.score:.2f} ± {each.system.interval:.2f}",
            f"{each.delta:+.2f}",
            f"{each.p_value:.4f}",
        )
        for each in comparisons
    ]
    console.print(make_table(("", baseline.run, report.run, "difference", "p"), rows))
    note = "paired bootstrap test; a difference with p < 0.05 is significant"
    console.print(Text(note, "dim"), soft_wrap=True)


def print_examples(
    console: Console, reports: Sequence[EvaluationReport], indices: Sequence[int]
) -> None:
    """For each index, print the source, the reference, and the output in every report."""
    names = ["output"] if len(reports) == 1 else [report.run for report in reports]
    width = max(len(name) for name in (*names, "reference")) + 2
    for index in indices:
        example = reports[0].examples[index]
        rows = [("source", example.source), ("reference", example.target)]
        rows += [(name, report.outputs[index]) for name, report in zip(names, reports, strict=True)]
        for name, text in rows:
            console.print(Text.assemble((f"{name:<{width}}", "dim"), text), soft_wrap=True)
        console.print()
