"""Two runs side by side, in a terminal or as a page."""

import json
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from seqloom.cli.output import put, tell
from seqloom.cli.work.changes import changed_decoding
from seqloom.cli.work.pairs import examples_of
from seqloom.cli.work.tables import stdout_console, table
from seqloom.cli.work.watch import named
from seqloom.core.storage import write_file
from seqloom.data.example import Example, Split
from seqloom.metrics.sentences import word_difference
from seqloom.runs.comparing import Comparison, Pair, compare_runs, refuse_unlike
from seqloom.runs.run import load
from seqloom.viz.comparison_page import save_comparison_page


def compare(
    folders: tuple[Path, Path],
    what: tuple[Sequence[Path], Sequence[str], Split],
    changes: tuple[int | None, Sequence[str]],
    shown: int,
    out: Path | None,
    as_json: bool,
) -> None:
    """what: files, --text and --split; changes: --beam and --set."""
    files, texts, split = what
    beam, overrides = changes
    runs = (load(folders[0]), load(folders[1]))
    refuse_unlike(runs)
    if texts:
        examples = [Example(text, "", (), "--text") for text in texts]
    else:
        examples = examples_of(files, runs[0].config.data, split)
    decodings = (
        changed_decoding(runs[0].config, overrides, beam),
        changed_decoding(runs[1].config, overrides, beam),
    )
    found = compare_runs(runs, examples, decodings)
    if out is not None:
        if out.suffix.lower() == ".json":
            write_file(out, json.dumps(found.to_json(), ensure_ascii=False, indent=1).encode())
            tell(f"{out}: {len(found.pairs):,} sentences of both runs")
        else:
            save_comparison_page(out, found, shown)
            tell(f"{out}: the {min(shown, len(found.pairs)):,} sentences that differ most")
    if as_json:
        put(json.dumps(found.to_json(), ensure_ascii=False))
    else:
        _show(stdout_console(), found, shown)


def _show(console: Console, found: Comparison, shown: int) -> None:
    total, differing = len(found.pairs), found.differing
    console.print(Text(f"{len(differing):,} of {total:,} outputs differ", "bold"))
    if found.scores[0]:
        rows = [
            (named(ours.name), f"{ours.value:.2f}", f"{theirs.value:.2f}")
            for ours, theirs in zip(*found.scores, strict=True)
        ]
        better = sum(pair.gain > 0 for pair in differing)
        worse = sum(pair.gain < 0 for pair in differing)
        rows.append(("better by chrF", f"{worse:,}", f"{better:,}"))
        console.print(table(("", *found.names), rows))
    for pair in (differing or found.pairs)[:shown]:
        console.print()
        _show_pair(console, pair, found.names)


def _show_pair(console: Console, pair: Pair, names: tuple[str, str]) -> None:
    column = max(len(name) for name in (*names, "reference")) + 2
    lines = [("source", Text(pair.source))]
    lines += [("reference", Text(reference)) for reference in pair.references]
    for place, (name, words) in enumerate(zip(names, difference(pair), strict=True)):
        quality = "" if pair.qualities is None else f"   chrF {pair.qualities[place]:.1f}"
        score = f"   log p {sum(pair.outputs[place].log_probabilities):.2f}"
        lines.append((name, words.append(f"{quality}{score}", "dim")))
    for name, words in lines:
        console.print(Text.assemble((f"{name:<{column}}", "dim"), words), soft_wrap=True)


def difference(pair: Pair) -> tuple[Text, Text]:
    """Both outputs; what the other does not say is in colour, and in brackets for those without."""
    ours, theirs = Text(), Text()
    parts = word_difference(pair.outputs[0].text, pair.outputs[1].text)
    for part in parts:
        for text, words, style in ((ours, part.ours, "red"), (theirs, part.theirs, "green")):
            if words:
                joined = " ".join(words)
                text.append(" " if text else "")
                text.append(joined if part.same else f"[{joined}]", "" if part.same else style)
    return ours, theirs
