"""Scores of a run, and whether another is really better."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.text import Text

from seqloom.cli.output import put, tell, warn
from seqloom.cli.work.changes import changed
from seqloom.cli.work.engine import tell_engine
from seqloom.cli.work.examples import differing, show_examples, worst
from seqloom.cli.work.tables import bar, stdout_console, table
from seqloom.cli.work.watch import named
from seqloom.core.errors import ConfigError, StorageError
from seqloom.data.example import Split
from seqloom.metrics.significance import Comparison
from seqloom.runs.evaluation.groups import mean_scores
from seqloom.runs.evaluation.report import EvaluationReport, compare_reports
from seqloom.runs.forecaster import is_forecaster, load_forecaster
from seqloom.runs.options import TEXT_ONLY
from seqloom.runs.run import Run, load

EXAMPLES = 5


def evaluate(
    folders: Sequence[Path],
    against: Path | None,
    split: Split,
    changes: tuple[int | None, Sequence[str]],
    lowercase: bool,
    as_json: bool,
) -> None:
    """changes: --beam and --set."""
    if against is None and is_forecaster(folders[0]):
        _evaluate_forecaster(folders[0], split, changes[1], as_json)
        return
    runs = [load(each) for each in ([folders] if against is None else [[against], folders])]
    _refuse_different_tasks(runs)
    reports = [_report(run, split, changes, lowercase) for run in runs]
    comparable = against is not None and reports[0].outputs
    comparisons = compare_reports(*reports) if comparable else []
    if as_json:
        record = reports[-1].to_json()
        if against is not None:
            record["against"] = reports[0].to_json()
            record["comparisons"] = [asdict(each) for each in comparisons]
        put(json.dumps(record, ensure_ascii=False, indent=2))
    elif against is None:
        show_report(stdout_console(), reports[0])
    else:
        _show_both(stdout_console(), comparisons, reports)


def _evaluate_forecaster(
    folder: Path, split: Split, overrides: Sequence[str], as_json: bool
) -> None:
    run = load_forecaster(folder)
    config = changed(run.config, overrides, None, ("data",))
    report = run.evaluate(split, data=config.data)
    try:
        tell(f"forecasts and scores are in {report.save(run.folder)}")
    except StorageError as error:
        warn(f"forecasts and scores could not be saved: {error}")
    if as_json:
        put(json.dumps(report.to_json(), ensure_ascii=False, indent=2))
        return
    console = stdout_console()
    title = f"{report.run}: {len(report.windows):,} windows of {report.split}"
    console.print(Text(title, "bold"), soft_wrap=True)
    others = {name: [score.value for score in found] for name, found in report.baselines.items()}
    rows = [
        (score.name, f"{score.value:.4g}", *(f"{values[place]:.4g}" for values in others.values()))
        for place, score in enumerate(report.scores)
    ]
    console.print(table(("score", "this run", *others), rows))
    for score in report.scores:
        if score.signature:
            console.print(Text(f"{score.name}: {score.signature}", "dim"), soft_wrap=True)


def _refuse_different_tasks(runs: Sequence[Run]) -> None:
    """Told before anything is decoded, which may take long."""
    kinds = {run.config.task.kind: run.folder for run in runs}
    if len(kinds) > 1:
        listed = " and ".join(f"{folder} is for {kind}" for kind, folder in kinds.items())
        raise ConfigError(
            f"--against: {listed}, so their scores cannot be compared; give two runs of one task"
        )


def _report(
    run: Run, split: Split, changes: tuple[int | None, Sequence[str]], lowercase: bool
) -> EvaluationReport:
    beam, overrides = changes
    config = changed(run.config, overrides, beam, ("decoding", "engine", "data"))
    run.engine = config.engine
    if run.engine.kind == "ctranslate2":
        tell_engine(run.choose_engine(TEXT_ONLY, decoding=config.decoding))
    with bar(run.name) as advance:
        report = run.evaluate(
            split,
            decoding=config.decoding,
            data=config.data,
            lowercase=lowercase,
            progress=advance,
        )
    try:
        others = " and ".join(report.changed_settings(run.folder))
        instead = f", in place of those with other {others}" if others else ""
        tell(f"outputs and scores are in {report.save(run.folder)}{instead}")
    except StorageError as error:
        warn(f"outputs and scores could not be saved: {error}")
    return report


def show_report(console: Console, report: EvaluationReport) -> None:
    """Scores with their signatures, scores by length, the examples to look at."""
    title = f"{report.run}: {report.sentences:,} sentences of {report.split}"
    rows = [(named(score.name), f"{score.value:.4g}") for score in report.scores]
    console.print(Text(title, "bold"), soft_wrap=True)
    console.print(table(("score", "value"), rows))
    _show_signatures(console, report)
    _show_parts(console, report)
    _show_cut_off(console, [report])
    if len(report.by_length) > 1:
        head = named(report.by_length[0].score.name)
        lengths = [
            (_range(each.shortest, each.longest), f"{each.sentences:,}", f"{each.score.value:.4g}")
            for each in report.by_length
        ]
        console.print()
        console.print(table(("words in source", "sentences", head), lengths))
    console.print()
    if places := worst(report, EXAMPLES):
        words = f"the {len(places)} outputs least like their references"
        console.print(Text(words, "bold"), soft_wrap=True)
        show_examples(console, [report], places)


def _show_parts(console: Console, report: EvaluationReport) -> None:
    """The scores of each pair of languages, and their mean."""
    if not report.parts:
        return
    heads = [named(score.name) for score in report.parts[0].scores]
    rows = [
        (part.part, f"{part.sentences:,}", *(f"{score.value:.4g}" for score in part.scores))
        for part in report.parts
    ]
    mean = [f"{score.value:.4g}" for score in mean_scores(report.parts)]
    console.print()
    console.print(table(("part", "sentences", *heads), [*rows, ("mean", "", *mean)]))


def _show_signatures(console: Console, report: EvaluationReport) -> None:
    for score in report.scores:
        if score.signature:
            console.print(Text(f"{named(score.name)}: {score.signature}", "dim"), soft_wrap=True)


def _show_cut_off(console: Console, reports: Sequence[EvaluationReport]) -> None:
    for report in reports:
        if report.cut_off:
            console.print(
                f"{report.run}: {report.cut_off:,} outputs stopped at the length limit",
                soft_wrap=True,
            )


def _range(shortest: int, longest: int) -> str:
    return str(shortest) if shortest == longest else f"{shortest} to {longest}"


def _show_both(
    console: Console, comparisons: Sequence[Comparison], reports: Sequence[EvaluationReport]
) -> None:
    """The scores of two runs side by side, the bootstrap, and where the runs differ."""
    baseline, system = reports
    title = f"{baseline.sentences:,} sentences of {baseline.split}"
    theirs = {score.name: f"{score.value:.4g}" for score in baseline.scores}
    rows = [
        (named(score.name), theirs.get(score.name, ""), f"{score.value:.4g}")
        for score in system.scores
    ]
    console.print(Text(title, "bold"), soft_wrap=True)
    console.print(table(("score", baseline.run, system.run), rows))
    _show_signatures(console, system)
    _show_cut_off(console, reports)
    if not comparisons:
        return
    console.print()
    _show_comparisons(console, comparisons, reports)
    places = differing(baseline, system)
    console.print()
    words = f"{len(places):,} of {system.sentences:,} outputs differ"
    shown = f"; the {min(EXAMPLES, len(places))} that differ most in quality" if places else ""
    console.print(Text(words + shown, "bold"), soft_wrap=True)
    show_examples(console, reports, places[:EXAMPLES])


def _show_comparisons(
    console: Console, comparisons: Sequence[Comparison], reports: Sequence[EvaluationReport]
) -> None:
    rows = [
        (
            named(each.metric),
            f"{each.baseline.score:.2f} ± {each.baseline.interval:.2f}",
            f"{each.system.score:.2f} ± {each.system.interval:.2f}",
            f"{each.delta:+.2f}",
            f"{each.p_value:.4f}",
        )
        for each in comparisons
    ]
    console.print(table(("", reports[0].run, reports[1].run, "difference", "p"), rows))
    console.print(
        Text("paired bootstrap; p below 0.05: the difference is hardly chance", "dim"),
        soft_wrap=True,
    )
