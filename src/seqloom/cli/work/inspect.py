"""Where the words of outputs looked, in a terminal or a file."""

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from seqloom.cli.output import colour_allowed, put, put_now, tell, warn
from seqloom.cli.work.changes import changed_decoding
from seqloom.cli.work.lines import portions
from seqloom.cli.work.tables import stdout_console
from seqloom.cli.work.texts import checked
from seqloom.cli.work.view import View
from seqloom.core.storage import write_file
from seqloom.runs.options import PredictionOptions
from seqloom.runs.prediction import Prediction
from seqloom.runs.run import Run, load
from seqloom.runs.seeing import no_attention, refuse_sourceless
from seqloom.viz.attention_figure import AttentionPanel, save_attention_panels
from seqloom.viz.attention_page import AttentionCard, save_attention_page
from seqloom.viz.attention_terminal import Marks, draw_attention


@dataclass(frozen=True)
class Asked:
    """A text, and what came out; a blank text has no outputs."""

    number: int
    source: str
    outputs: Sequence[Prediction]

    @property
    def headings(self) -> list[str]:
        """What to call each output; a blank text has one heading all the same."""
        count = len(self.outputs)
        places = [f", output {place} of {count}" for place in range(1, count + 1)]
        return [f"{self.number}{place if count > 1 else ''}" for place in places or [""]]


def inspect(
    folders: Sequence[Path],
    texts: Sequence[str] | None,
    wanted: tuple[int, int | None, str | None, Sequence[str]],
    view: tuple[int | None, int | None, bool, bool],
    shown: tuple[Path | None, bool, bool],
) -> None:
    """wanted: --n-best, --beam, --to and --set; view: --layer, --head, whether that is "best", and
    --pieces; shown: --out, --plain and --json."""
    n_best, beam, to, overrides = wanted
    run = load(folders)
    refuse_sourceless(run)
    if run.heads_note:
        warn(run.heads_note)
    decoding = changed_decoding(run.config, overrides, beam)
    run.languages.path(to)  # a language it does not know is told before a line is read
    how = View.of(run, *view)
    out, plain, as_json = shown
    answers: list[Asked] = []
    first = 0
    for portion in portions([]) if texts is None else [checked(texts)]:
        wish = PredictionOptions(n_best, first=first, to=to, heads=True)
        found = run.predict(portion, wish, decoding=decoding)
        for source, outputs in zip(portion, found, strict=True):
            first += 1
            answer = Asked(first, source, _seeing(run, outputs))
            if out is not None:
                answers.append(answer)
            elif as_json:
                put(json.dumps(_record(answer, how), ensure_ascii=False))
            else:
                _show(answer, how, stdout_console(), _marks(plain))
        put_now()
    for note in how.notes():
        tell(f"note: {note}")
    if out is not None:
        _save(out, run.name, answers, how)
        tell(f"{out}: where each word looked")


def _seeing(run: Run, outputs: Sequence[Prediction]) -> list[Prediction]:
    """Those that something came out of, all of which looked somewhere."""
    spoken = [one for one in outputs if one.pieces]
    if any(one.heads is None for one in spoken):
        raise no_attention(run)
    return spoken


def _marks(plain: bool) -> Marks:
    return "numbers" if plain or not colour_allowed(sys.stdout) else "blocks"


def _note(output: Prediction) -> str:
    cut = "" if output.finished else "  (stopped at the length limit)"
    return f"score {output.score:.4f}{cut}"


def _show(answer: Asked, how: View, console: Console, marks: Marks) -> None:
    maps = [how.chosen(output) for output in answer.outputs]  # may refuse: before a word is said
    console.print(Text(f"{answer.number}  {answer.source}", "dim"), soft_wrap=True)
    if not answer.outputs:
        console.print(Text("   a blank line: nothing was read, nothing put out\n"), soft_wrap=True)
    for output, shown in zip(answer.outputs, maps, strict=True):
        line = Text.assemble("   ", (output.text, "bold"), (f"   {_note(output)}", "dim"))
        console.print(line, soft_wrap=True)
        put("")
        picture = draw_attention(
            shown.weights.tolist(), shown.outputs, shown.sources, width=console.width, marks=marks
        )
        console.print(picture, soft_wrap=True)


def _record(answer: Asked, how: View) -> dict[str, Any]:
    return {
        "id": answer.number - 1,
        "source": answer.source,
        "outputs": [_output_record(output, how) for output in answer.outputs],
    }


def _output_record(output: Prediction, how: View) -> dict[str, Any]:
    """All numbers: between words, or pieces, as they are shown; and what they were made from."""
    chosen, every = how.chosen(output), how.every(output)
    known = output.to_json()
    del known["attention"], known["heads"]
    return {
        **known,
        "word_of": output.word_of,
        "source_word_of": output.source_word_of,
        "view": how.name(output),
        "outputs": chosen.outputs,
        "sources": chosen.sources,
        "weights": chosen.weights.tolist(),
        "heads": every.weights.swapaxes(0, 1).swapaxes(1, 2).tolist(),
    }


def _save(out: Path, run: str, answers: Sequence[Asked], how: View) -> None:
    kind = out.suffix.lower()
    if kind == ".json":
        records = [_record(answer, how) for answer in answers]
        write_file(out, json.dumps(records, ensure_ascii=False).encode())
    elif kind == ".html":
        cards = [card for answer in answers for card in _cards(answer, how)]
        save_attention_page(out, f"Where the words of {run} looked", cards)
    else:
        save_attention_panels(out, [one for answer in answers for one in _matrices(answer, how)])


def _cards(answer: Asked, how: View) -> Iterator[AttentionCard]:
    if not answer.outputs:
        yield AttentionCard(answer.headings[0])
    for heading, output in zip(answer.headings, answer.outputs, strict=False):
        yield AttentionCard(
            heading,
            output.text,
            _note(output),
            how.name(output),
            how.chosen(output),
            how.every(output),
        )


def _matrices(answer: Asked, how: View) -> Iterator[AttentionPanel]:
    if not answer.outputs:
        yield AttentionPanel([], [], [], f"{answer.number}: a blank line")
    for output in answer.outputs:
        drawn = how.chosen(output)
        title = f"{answer.source}\n{output.text}"
        yield AttentionPanel(drawn.weights.tolist(), drawn.outputs, drawn.sources, title)
