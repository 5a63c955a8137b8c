"""The command `seqloom compare`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from seqloom.cli.options import Json, RunFolder, RunSettings, Split, argument, option
from seqloom.cli.output import print_json, print_message, print_warnings, write_json
from seqloom.cli.parameters.prediction_options import with_prediction_options
from seqloom.cli.tables import format_score, make_table, metric_label, stdout_console
from seqloom.inference.options import DEFAULT_OPTIONS, PredictionOptions

if TYPE_CHECKING:
    from seqloom.analysis.comparison import OutputPair, RunComparison


@with_prediction_options("compare")
def compare(
    first_folder: RunFolder,
    second_folder: RunFolder,
    files: Annotated[
        list[Path] | None,
        argument(
            "[FILE]...",
            "File of sources; or two files, sources and references; or one .tsv file with "
            "both. Default: a split of the first run's data.",
        ),
    ] = None,
    texts: Annotated[
        list[str] | None,
        option("TEXT", "Source text, instead of files. Can be repeated.", "--text"),
    ] = None,
    split: Split = "test",
    shown: Annotated[
        int, option("N", "Number of sentences to print, largest difference first.", min=0)
    ] = 10,
    options: PredictionOptions = DEFAULT_OPTIONS,
    out: Annotated[
        Path | None,
        option("FILE", "Write a page with both attention maps (.html), or all data (.json)."),
    ] = None,
    json: Json = False,
    settings: RunSettings = None,
) -> None:
    """Compare the outputs of two runs sentence by sentence, with scores and attention."""
    if texts and files:
        raise typer.BadParameter("Give either files or --text, not both.")
    if out is not None and out.suffix.lower() not in (".html", ".json"):
        raise typer.BadParameter(f"--out {out}: the file name must end in .html or .json.")

    from seqloom.analysis.comparison import check_comparable, compare_runs
    from seqloom.cli.recipe_settings import change_decoding, load_run
    from seqloom.data.example import Example
    from seqloom.data.readers.example_files import read_example_files
    from seqloom.viz.pages import save_comparison_page

    first, others = load_run([first_folder], settings)
    second, _ = load_run([second_folder], settings)
    check_comparable((first, second))
    if texts:
        examples = [Example(text, "", (), "--text") for text in texts]
    else:
        examples = read_example_files(files, first.config.data, split)
    decodings = (
        change_decoding(first.config, others, options.beam),
        change_decoding(second.config, others, options.beam),
    )
    print_warnings(first.source_tags.warnings([example.source for example in examples], "text"))
    comparison = compare_runs((first, second), examples, decodings)
    if out is not None and out.suffix.lower() == ".json":
        write_json(out, comparison.to_json(), indent=1)
        print_message(f"{out}: {len(comparison.pairs):,} sentences of both runs")
    elif out is not None:
        save_comparison_page(out, comparison, shown)
        count = min(shown, len(comparison.pairs))
        print_message(f"{out}: the {count:,} sentences with the largest difference")
    if json:
        print_json(comparison.to_json())
    else:
        _print_comparison(stdout_console(), comparison, shown)


def _print_comparison(console: Console, comparison: RunComparison, shown: int) -> None:
    differing = comparison.differing
    total = len(comparison.pairs)
    console.print(Text(f"{len(differing):,} of {total:,} outputs differ", "bold"))
    first_scores, second_scores = comparison.scores
    if first_scores:
        rows = [
            (
                metric_label(first.name),
                format_score(first.name, first.value),
                format_score(second.name, second.value),
            )
            for first, second in zip(first_scores, second_scores, strict=True)
        ]
        second_better = sum(pair.gain > 0 for pair in differing)
        first_better = sum(pair.gain < 0 for pair in differing)
        rows.append(("sentences better by chrF", f"{first_better:,}", f"{second_better:,}"))
        console.print(make_table(("", *comparison.names), rows))
    for pair in (differing or comparison.pairs)[:shown]:
        console.print()
        _print_pair(console, pair, comparison.names)


def _print_pair(console: Console, pair: OutputPair, names: tuple[str, str]) -> None:
    width = max(len(name) for name in (*names, "reference")) + 2
    lines = [("source", Text(pair.source))]
    lines += [("reference", Text(reference)) for reference in pair.references]
    for index, (name, text) in enumerate(zip(names, _marked_outputs(pair), strict=True)):
        quality = "" if pair.qualities is None else f"   chrF {pair.qualities[index]:.1f}"
        score = f"   log p {sum(pair.outputs[index].log_probabilities):.2f}"
        lines.append((name, text.append(f"{quality}{score}", "dim")))
    for name, text in lines:
        console.print(Text.assemble((f"{name:<{width}}", "dim"), text), soft_wrap=True)


def _marked_outputs(pair: OutputPair) -> tuple[Text, Text]:
    """Return both outputs, with colour and brackets for the words that only one output contains."""
    from seqloom.metrics.sentence_scores import diff_words

    first, second = Text(), Text()
    for part in diff_words(pair.outputs[0].text, pair.outputs[1].text):
        for text, words, style in ((first, part.ours, "red"), (second, part.theirs, "green")):
            if words:
                joined = " ".join(words)
                text.append(" " if text else "")
                text.append(joined if part.same else f"[{joined}]", "" if part.same else style)
    return first, second
