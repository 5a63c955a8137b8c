"""seqloom translate"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seqloom.cli.options import (
    BeamWidth,
    Engine,
    EnsembleMembers,
    Json,
    RunFolder,
    TargetLanguage,
)
from seqloom.cli.output import flush_output, print_json, print_line, print_warning

if TYPE_CHECKING:
    from seqloom.runs.options import Probabilities
    from seqloom.runs.prediction import Prediction

MAX_LISTED_LINES = 5
"""Maximum number of line numbers in the warning about truncated outputs."""


def translate(
    run_folder: RunFolder,
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FILE]...",
            help="Text files with one text per line. - is standard input. Default: standard input.",
        ),
    ] = None,
    beam: BeamWidth = None,
    n_best: Annotated[
        int,
        typer.Option(
            metavar="N", min=1, max=1000, help="Number of translations per line, best first."
        ),
    ] = 1,
    scores: Annotated[
        bool, typer.Option("--scores", help="Print the score after each translation.")
    ] = False,
    alignments: Annotated[
        bool,
        typer.Option(
            "--alignments", help="Print the word alignment (0-0 1-2) after each translation."
        ),
    ] = False,
    json: Json = False,
    engine: Engine = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Override a decoding or engine setting, for example decoding.max_length=60 or "
            "engine.precision=float32, or how attention is computed, for example "
            "model.decoder.attention.selection=argmax. Can be repeated.",
        ),
    ] = None,
    ensemble: EnsembleMembers = None,
    to: TargetLanguage = None,
    through: Annotated[
        str | None,
        typer.Option(metavar="LANGUAGE", help="With --to: translate to this pivot language first."),
    ] = None,
    split: Annotated[
        bool | None,
        typer.Option(
            "--split/--no-split",
            help="Split each line into sentences and join their translations. "
            "Default: split if the run was trained on sentences.",
        ),
    ] = None,
    pass_through: Annotated[
        bool | None,
        typer.Option(
            "--pass-through/--no-pass-through",
            help="Copy URLs, e-mail addresses, emoji and unknown characters to the output. "
            "Default: copy if the run was trained on sentences.",
        ),
    ] = None,
) -> None:
    """Translate text: one output line for each input line, in the same order.

    Blank lines stay blank. A line can have several sentences. With --n-best N, the format of a line is
    `id ||| translation ||| log-probabilities ||| score`.
    """
    if through is not None and to is None:
        raise typer.BadParameter("--through requires --to, the final target language.")

    from seqloom.cli.engine import prepare_engine
    from seqloom.cli.inputs import read_portions
    from seqloom.cli.recipe_settings import change_recipe, load_run
    from seqloom.cli.source_warnings import SourceWarnings
    from seqloom.cli.tags import MissingTags
    from seqloom.runs.options import PredictionOptions, check_n_best

    portions = read_portions(files)
    run, settings = load_run([run_folder, *(ensemble or ())], settings)
    config = change_recipe(
        run.config, settings, beam=beam, engine=engine, sections=("decoding", "engine")
    )
    run.engine = config.engine
    check_n_best(config.decoding, n_best)
    languages = [language for language in (through, to) if language is not None] or None
    run.languages.path(languages)  # reports an unknown language before any input is read
    if alignments and run.heads_note:
        print_warning(run.heads_note)
    formatter = TranslationFormatter(n_best, scores=scores, alignments=alignments, json=json)
    options = PredictionOptions(
        n_best=n_best,
        attention=alignments,
        probabilities=formatter.probabilities,
        to=languages,
        split=split,
        pass_through=pass_through,
    )
    prepare_engine(run, options, config.decoding)

    line_number = 0
    truncated: list[int] = []
    missing_tags = MissingTags(run)
    source_warnings = SourceWarnings(run)
    for texts in portions:
        missing_tags.add(texts)
        options = replace(options, first=line_number)
        outputs = run.predict(texts, options, decoding=config.decoding)
        for text, predictions in zip(texts, outputs, strict=True):
            formatter.print(line_number, text, predictions)
            source_warnings.add(predictions[0])
            line_number += 1
            if not predictions[0].finished:
                truncated.append(line_number)
        flush_output()
    missing_tags.warn()
    source_warnings.warn()
    if truncated:
        listed = ", ".join(map(str, truncated[:MAX_LISTED_LINES]))
        more = ", …" if len(truncated) > MAX_LISTED_LINES else ""
        print_warning(
            f"{len(truncated):,} of {line_number:,} outputs reached the length limit "
            f"(line {listed}{more}). Raise it with --set decoding.max_length=…"
        )


@dataclass(frozen=True)
class TranslationFormatter:
    """Prints translations in the format that the options of the command select."""

    n_best: int
    scores: bool
    alignments: bool
    json: bool

    @property
    def probabilities(self) -> Probabilities:
        """The probabilities that the output contains. The search must compute them."""
        if self.json or self.n_best > 1:
            return "tokens"
        return "score" if self.scores else "none"

    def print(self, index: int, source: str, predictions: Sequence[Prediction]) -> None:
        """Print the translations of input line `index`, counted from 0."""
        if self.json:
            outputs = [self._to_json(prediction) for prediction in predictions]
            print_json({"id": index, "source": source, "outputs": outputs})
        elif self.n_best == 1:
            print_line(self._format_best(predictions[0]))
        else:
            for prediction in predictions:
                print_line(self._format_n_best(index, prediction))

    def _format_best(self, prediction: Prediction) -> str:
        fields = [prediction.text]
        if self.scores:
            fields.append(f"{prediction.score:.4f}")
        return " ||| ".join([*fields, *self._alignment_fields(prediction)])

    def _format_n_best(self, index: int, prediction: Prediction) -> str:
        steps = " ".join(f"{value:.4f}" for value in prediction.log_probabilities)
        fields = [str(index), prediction.text, steps, f"{prediction.score:.4f}"]
        return " ||| ".join([*fields, *self._alignment_fields(prediction)])

    def _alignment_fields(self, prediction: Prediction) -> list[str]:
        from seqloom.metrics.alignment import format_pharaoh

        return [format_pharaoh(prediction.alignment)] if self.alignments else []

    def _to_json(self, prediction: Prediction) -> dict[str, Any]:
        record = prediction.to_json()
        if not self.alignments:
            del record["attention"], record["alignment"]
        return record
