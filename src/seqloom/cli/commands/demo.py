"""seqloom demo"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from seqloom.cli.options import Settings
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
    from seqloom.runs.run import Run

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
QUICK_NOTE = (
    "this quick demo trains a very small model for {steps:,} steps, so most of its translations are "
    "wrong; `{program} demo` trains a better model in a few minutes"
)


def demo(
    run_folder: Annotated[
        Path | None,
        typer.Option(
            "--run",
            metavar="FOLDER",
            help="Run folder to write. Default: runs/demo, or runs/demo-quick with --quick.",
        ),
    ] = None,
    settings: Settings = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Train a very small model in less than a minute. Most of its translations are "
            "wrong.",
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
    if quick:
        steps = config.training.steps
        print_message(f"note: {QUICK_NOTE.format(steps=steps, program=program_name())}")
    set_interruption_message(
        lambda: training_interrupted(run_folder, current_command(), current_command())
    )

    from seqloom.cli.training_display import (
        exit_code,
        next_commands,
        summary_lines,
        training_display,
    )
    from seqloom.runs.folder.integrity import is_run
    from seqloom.runs.run import load
    from seqloom.training.loop import train

    with training_display(None) as report:
        summary = train(config, run_folder, resume=is_run(run_folder), report=report)
    if code := exit_code(summary):
        for line in summary_lines(config, summary):
            print_message(line)
        raise typer.Exit(code)
    set_interruption_message(
        lambda: (
            f"Interrupted. The trained model is in {run_folder}. To repeat the evaluation, run: "
            f"{current_command()}"
        )
    )
    run = load(run_folder)
    console = stdout_console()
    _evaluate(console, run)
    _translate(console, run)
    folder = shlex.quote(str(run_folder))
    print_message(f"The run is in {run_folder}. Next, try:")
    for command in next_commands(config, folder):
        print_message(f"  {command.replace('…', 'Wie geht es dir?')}")
    print_message(f"  {program_name()} serve {folder}")


def _evaluate(console: Console, run: Run) -> None:
    """Print the test scores and three examples, and save the report in the run folder."""
    from seqloom.cli.examples import evenly_spaced_examples, print_examples

    with progress_bar("evaluating") as advance:
        report = run.evaluate("test", progress=advance)
    report.save(run.folder)
    print_line("")
    console.print(Text(f"{report.sentences:,} test sentences", "bold"))
    rows = [
        (metric_label(score.name), format_score(score.name, score.value)) for score in report.scores
    ]
    console.print(make_table(("score", "value"), rows))
    for score in report.scores[:1]:
        console.print(Text(f"{score.name}: {score.signature}", "dim"), soft_wrap=True)
    print_line("")
    print_examples(console, [report], evenly_spaced_examples(report, 3))


def _translate(console: Console, run: Run) -> None:
    """Print the translations of SENTENCES, and the attention map of the first one."""
    from seqloom.viz.attention_terminal import draw_attention

    predictions = run.translate(SENTENCES)
    for source, prediction in zip(SENTENCES, predictions, strict=True):
        line = Text.assemble((f"{source:<24}", "dim"), prediction.text)
        console.print(line, soft_wrap=True)
    first = predictions[0]
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
