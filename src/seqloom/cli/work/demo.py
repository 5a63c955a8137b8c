"""From bundled pairs to translations, with everything shown on the way."""

import shlex
from pathlib import Path

from rich.text import Text

from seqloom.cli.output import program, put, tell
from seqloom.cli.work.examples import show_examples, spread
from seqloom.cli.work.tables import bar, draws_blocks, stdout_console, table
from seqloom.cli.work.train import ending, exit_code, next_commands, train_watched
from seqloom.cli.work.watch import named
from seqloom.config.schema.recipe import RunConfig
from seqloom.runs.folder.integrity import is_run
from seqloom.runs.run import Run, load
from seqloom.viz.attention_terminal import draw_attention

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


def demo(config: RunConfig, folder: Path) -> int:
    """Train, score, translate ten sentences, draw one attention map, say what comes next."""
    summary = train_watched(config, folder, is_run(folder), None)
    if code := exit_code(summary):
        for line in ending(config, summary):
            tell(line)
        return code
    run = load(folder)
    console = stdout_console()
    with bar("scoring") as advance:
        report = run.evaluate("test", progress=advance)
    report.save(folder)
    put("")
    console.print(Text(f"{report.sentences:,} test sentences", "bold"))
    rows = [(named(score.name), f"{score.value:.2f}") for score in report.scores]
    console.print(table(("score", "value"), rows))
    for score in report.scores[:1]:
        console.print(Text(f"{score.name}: {score.signature}", "dim"), soft_wrap=True)
    put("")
    show_examples(console, [report], spread(report, 3))
    _translate(run)
    tell(f"the run is in {folder}; next:")
    for command in next_commands(config, shlex.quote(str(folder))):
        tell(f"  {command.replace('…', 'Wie geht es dir?')}")
    tell(f"  {program()} serve {shlex.quote(str(folder))}")
    return 0


def _translate(run: Run) -> None:
    console = stdout_console()
    found = run.translate(SENTENCES)
    rows = [(source, each.text) for source, each in zip(SENTENCES, found, strict=True)]
    for source, text in rows:
        console.print(Text.assemble((f"{source:<24}", "dim"), text), soft_wrap=True)
    first = found[0]
    if first.attention is not None:
        put("")
        console.print(Text("where each output looked", "bold"))
        console.print(
            draw_attention(
                first.attention.tolist(),
                [readable(piece) for piece in first.pieces],
                [readable(piece) for piece in first.source_pieces],
                width=console.width,
                marks="blocks" if draws_blocks() else "letters",
            ),
            soft_wrap=True,
        )


def readable(piece: str) -> str:
    """A piece without the mark of a word's beginning, unless it is nothing else."""
    return piece.removeprefix("▁") or piece
