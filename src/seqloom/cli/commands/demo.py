"""The command `seqloom demo`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from seqloom.cli.options import Settings, flag, option
from seqloom.cli.output import print_line, print_message, program_name
from seqloom.cli.process.interrupts import (
    current_command,
    set_interruption_message,
    training_interrupted,
)
from seqloom.cli.process.progress import progress_bar
from seqloom.cli.tables import (
    format_score,
    make_table,
    metric_label,
    stdout_console,
    supports_unicode,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seqloom.config.schema.recipe import RunConfig
    from seqloom.inference.run import Run

SENTENCES = (
    "Das gefällt mir.",
    "Ich habe Hunger.",
    "Wo ist der Bahnhof?",
    "Er liest ein Buch.",
    "Wir haben keine Zeit.",
    "Kannst du mir helfen?",
    "Sie hat zwei Kinder.",
    "Es ist kalt heute.",
    "Ich weiß es nicht.",
    "Tom wartet auf dich.",
)

_COLUMN = 24
"""Width of a column of translations, in characters."""
QUICK_SETTINGS = (
    "text.tokenizer.size=1500",
    "model.encoder.width=96",
    "model.decoder.width=96",
    "training.steps=160",
    "training.batch_tokens=1024",
    "training.schedule.warmup=20",
    "training.optimizer.learning_rate=8e-3",
    "training.evaluate_every=160",
    "training.evaluate_examples=50",
    "training.checkpoint_every=160",
    "decoding.max_length=20",
)
"""Changes to the recipe of the demo for --quick."""
WITHOUT_ATTENTION = "model.decoder.attention={kind='none'}"
"""Change to the recipe of the demo for the second run of --compare."""
QUICK_NOTE = (
    "this quick demo trains a very small model for {steps:,} steps, so most of its translations are "
    "wrong; `{program} demo` trains a better model in a few minutes"
)


def demo(
    run_folder: Annotated[
        Path | None,
        option(
            "FOLDER",
            "Run folder to write. Default: runs/demo, or runs/demo-quick with --quick.",
            "--run",
        ),
    ] = None,
    settings: Settings = None,
    quick: Annotated[
        bool,
        flag(
            "--quick",
            "Train a very small model in less than a minute. Most of its translations are wrong.",
        ),
    ] = False,
    compare: Annotated[
        bool,
        flag(
            "--compare",
            "Train a second model without attention on the same data, and compare the two. "
            "Its run folder has the name of the first with -without-attention.",
        ),
    ] = False,
) -> None:
    """Train a small German-English model in minutes, then evaluate it and translate with it.

    The training data is bundled. If the folder contains an interrupted demo, the training resumes.
    """
    from seqloom.config.loading.loader import load_bundled_recipe

    run_folder = run_folder or Path("runs/demo-quick" if quick else "runs/demo")
    changes = [*(QUICK_SETTINGS if quick else ()), *(settings or ())]
    config = load_bundled_recipe("demo", changes).config
    configs = {run_folder: config}
    if compare:
        second_folder = run_folder.with_name(f"{run_folder.name}-without-attention")
        second_changes = [*changes, WITHOUT_ATTENTION]
        configs[second_folder] = load_bundled_recipe("demo", second_changes).config
    if quick:
        steps = config.training.steps
        print_message(f"note: {QUICK_NOTE.format(steps=steps, program=program_name())}")

    from seqloom.cli.training_display import next_commands
    from seqloom.inference.run import load

    for folder, each in configs.items():
        if compare:
            print_message(f"Training {folder}:")
        _train(each, folder)
    set_interruption_message(
        lambda: (
            f"Interrupted. The training is complete: {', '.join(map(str, configs))}. To repeat the evaluation, run: "
            f"{current_command()}"
        )
    )
    runs = [load(folder) for folder in configs]
    console = stdout_console()
    _evaluate(console, runs)
    _translate(console, runs)
    _draw_attention(console, runs[0])
    quoted = [shlex.quote(str(folder)) for folder in configs]
    found = "The runs are in" if compare else "The run is in"
    print_message(f"{found} {' and '.join(map(str, configs))}. Next, try:")
    for command in next_commands(config, quoted[0]):
        print_message(f"  {command.replace('…', 'Wie geht es dir?')}")
    print_message(f"  {program_name()} serve {' '.join(quoted)}")


def _train(config: RunConfig, run_folder: Path) -> None:
    """Train a run or resume its training. Exits if the training is interrupted or fails."""
    from seqloom.cli.training_display import exit_code, summary_lines, training_display
    from seqloom.runs.integrity import is_run
    from seqloom.training.loop import train

    set_interruption_message(
        lambda: training_interrupted(run_folder, current_command(), current_command())
    )
    with training_display() as report:
        summary = train(config, run_folder, resume=is_run(run_folder), report=report)
    if code := exit_code(summary):
        for line in summary_lines(config, summary):
            print_message(line)
        raise typer.Exit(code)


def _evaluate(console: Console, runs: Sequence[Run]) -> None:
    """Print the test scores of all runs and three examples. Saves the reports in the run folders."""
    from seqloom.cli.commands.evaluate import print_examples
    from seqloom.inference.evaluation.examples import evenly_spaced_examples

    reports = []
    for run in runs:
        with progress_bar("evaluating") as advance:
            report = run.evaluate("test", progress=advance)
        report.save(run.folder)
        reports.append(report)
    first = reports[0]
    print_line("")
    console.print(Text(f"{first.sentences:,} test sentences", "bold"))
    columns = ("score", *(run.folder.name for run in runs)) if len(runs) > 1 else ("score", "value")
    rows = [
        (metric_label(scores[0].name), *(format_score(score.name, score.value) for score in scores))
        for scores in zip(*(report.scores for report in reports), strict=True)
    ]
    console.print(make_table(columns, rows))
    for score in first.scores[:1]:
        console.print(Text(f"{score.name}: {score.signature}", "dim"), soft_wrap=True)
    print_line("")
    print_examples(console, reports, evenly_spaced_examples(first, 3))


def _translate(console: Console, runs: Sequence[Run]) -> None:
    """Print the translations of SENTENCES by all runs."""
    outputs = [run.translate(SENTENCES) for run in runs]
    if len(runs) > 1:
        names = (f"{run.folder.name:<{_COLUMN}}" for run in runs)
        console.print(Text(f"{'source':<{_COLUMN}}{' '.join(names).rstrip()}", "bold"))
    for source, *predictions in zip(SENTENCES, *outputs, strict=True):
        texts = [f"{prediction.text:<{_COLUMN}}" for prediction in predictions]
        line = Text.assemble((f"{source:<{_COLUMN}}", "dim"), " ".join(texts).rstrip())
        console.print(line, soft_wrap=True)


def _draw_attention(console: Console, run: Run) -> None:
    """Translate the first example sentence and print the attention map of the translation.

    Print nothing if the model has no attention.
    """
    from seqloom.viz.attention_terminal import draw_attention

    [first] = run.translate(SENTENCES[:1], attention=True)
    if first.attention is None:
        return
    print_line("")
    console.print(Text("attention of each output token", "bold"))
    attention_map = draw_attention(
        first.attention.tolist(),
        [_without_word_mark(piece) for piece in first.pieces],
        [_without_word_mark(piece) for piece in first.source_pieces],
        width=console.width,
        marks="blocks" if supports_unicode() else "letters",
    )
    console.print(attention_map, soft_wrap=True)


def _without_word_mark(piece: str) -> str:
    """Remove the "▁" that marks the start of a word. The piece "▁" itself is returned unchanged."""
    return piece.removeprefix("▁") or piece
