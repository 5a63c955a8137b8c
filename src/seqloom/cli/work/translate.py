"""Translate lines to lines."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from seqloom.cli.output import put, put_now, warn
from seqloom.cli.work.changes import changed
from seqloom.cli.work.engine import tell_engine, tell_of_compiling
from seqloom.cli.work.lines import portions
from seqloom.metrics.alignment import format_pharaoh
from seqloom.runs.options import PredictionOptions, Probabilities, check_n_best
from seqloom.runs.prediction import Prediction
from seqloom.runs.run import load

SHOWN = 5


@dataclass(frozen=True)
class Format:
    """What is written beside each text."""

    n_best: int
    scores: bool
    alignments: bool
    json: bool

    @property
    def probabilities(self) -> Probabilities:
        """What has to be known for it."""
        if self.json or self.n_best > 1:
            return "tokens"
        return "score" if self.scores else "none"

    def lines(self, number: int, source: str, outputs: Sequence[Prediction]) -> list[str]:
        """The answer to line `number`, counted from 0."""
        if self.json:
            record = {
                "id": number,
                "source": source,
                "outputs": [self._record(each) for each in outputs],
            }
            return [json.dumps(record, ensure_ascii=False)]
        if self.n_best == 1:
            return [self._one(outputs[0])]
        return [self._listed(number, output) for output in outputs]

    def _one(self, output: Prediction) -> str:
        fields = [output.text]
        fields += [f"{output.score:.4f}"] if self.scores else []
        fields += [format_pharaoh(output.alignment)] if self.alignments else []
        return " ||| ".join(fields)

    def _listed(self, number: int, output: Prediction) -> str:
        steps = " ".join(f"{value:.4f}" for value in output.log_probabilities)
        fields = [str(number), output.text, steps, f"{output.score:.4f}"]
        fields += [format_pharaoh(output.alignment)] if self.alignments else []
        return " ||| ".join(fields)

    def _record(self, output: Prediction) -> dict[str, Any]:
        record = output.to_json()
        if not self.alignments:
            del record["attention"], record["alignment"]
        return record


def translate(
    folders: Sequence[Path],
    files: Sequence[Path],
    overrides: Sequence[str],
    beam: int | None,
    wanted: tuple[int, list[str] | None],
    shown: tuple[bool, bool, bool],
) -> None:
    """wanted: --n-best, and the languages of --through and --to."""
    n_best, to = wanted
    lines = portions(files)
    run = load(folders)
    config = changed(run.config, overrides, beam, ("decoding", "engine"))
    decoding, run.engine = config.decoding, config.engine
    check_n_best(decoding, n_best)
    form = Format(n_best, *shown)
    wish = PredictionOptions(n_best, form.alignments, probabilities=form.probabilities, to=to)
    run.languages.path(to)  # a language it does not know is told before a line is read
    if form.alignments and run.heads_note:
        warn(run.heads_note)
    tell_of_compiling(run)
    tell_engine(run.choose_engine(wish, decoding=decoding))
    cut: list[int] = []
    number = 0
    for texts in lines:
        found = run.predict(texts, replace(wish, first=number), decoding=decoding)
        for source, outputs in zip(texts, found, strict=True):
            for line in form.lines(number, source, outputs):
                put(line)
            number += 1
            if not outputs[0].finished:
                cut.append(number)
        put_now()
    if cut:
        places = ", ".join(str(line) for line in cut[:SHOWN])
        warn(
            f"{len(cut):,} of {number:,} outputs stopped at the length limit "
            f"(line {places}{', …' if len(cut) > SHOWN else ''}); "
            "allow more with --set decoding.max_length=…"
        )
