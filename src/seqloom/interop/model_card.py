"""Writes the model card of an exported model: README.md with a YAML header."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from seqloom import __version__
from seqloom.config.schema.recipe import RunConfig
from seqloom.data.readers.splits import readers_of
from seqloom.inference.run import Run
from seqloom.runs.integrity import EVALUATION

NOT_GIVEN = "not given"


def model_card(run: Run, library: str, usage: str, verified: str, license_: str | None) -> str:
    """Return the text of the model card.

    library:  name of the library that loads the model
    usage:    a program that translates a sentence
    verified: how the outputs of the exported model were compared with those of the run
    license_: identifier of the licence, such as "apache-2.0"
    """
    header = ["---", f"library_name: {library}", "pipeline_tag: translation"]
    header += [] if license_ is None else [f"license: {license_}"]
    header += ["tags:", "- translation", "- seqloom", "---"]
    parameters = sum(parameter.numel() for parameter in run.model.parameters())
    sections = [
        "\n".join(header),
        f"# {run.folder.resolve().name}",
        f"A translation model with {parameters:,} parameters, trained with seqloom {__version__} "
        f"and exported for {library}.",
        "## Use",
        f"```python\n{usage.strip()}\n```",
        "The model translates single sentences. Split longer texts into sentences first. It can "
        "omit or invent content, so check translations that matter. It has not been tested for "
        "texts that differ much from its training data.",
        "## Training data",
        "\n".join(f"- {line}" for line in _data_lines(run.config)),
        "## Scores",
        *_score_sections(run.folder),
        "## Licence",
        f"Licence of the model: {license_ or NOT_GIVEN}.",
        "## Comparison with the original",
        f"The exported model was {verified}. White space other than single spaces, such as tabs, "
        "must be replaced by spaces before tokenisation.",
        *_form_section(run),
    ]
    return "\n\n".join(sections) + "\n"


def _form_section(run: Run) -> Iterator[str]:
    tokenizer = run.task.source_tokenizer
    if tokenizer is not None and tokenizer.preprocessing.normalization == "nfc":
        yield (
            "seqloom converts texts to the Unicode form NFC, this model does not. Convert texts that "
            "may be in another form: `unicodedata.normalize('NFC', text)`."
        )


def _data_lines(config: RunConfig) -> Iterator[str]:
    for reader in readers_of(config.data, "train"):
        corpus, files = reader.corpus, reader.files
        # Only file names: the folders of the machine are not of interest.
        names = ", ".join(Path(name).name for name in files)
        settings = corpus.model_dump(include={"source", "target"}, exclude_none=True)
        languages = "" if files else " ".join(str(value) for value in settings.values())
        yield " ".join(part for part in (corpus.kind, names, languages) if part)
    expected = config.data.expected
    if expected is not None:
        yield f"{expected.source}; licence: {expected.licence}"


def _score_sections(folder: Path) -> Iterator[str]:
    """Yield a table of scores for each evaluation report in the run folder.

    If there are no reports, yield a sentence about how to compute scores.
    """
    reports = sorted((folder / EVALUATION).glob("[!.]*/report.json"))
    for path in reports:
        report = json.loads(path.read_bytes())
        title = f"{report['sentences']:,} sentences of the {report['split']} split"
        yield f"{title}:\n\n{_score_table(report['scores'])}"
    if not reports:
        yield "The run has no stored scores. `seqloom evaluate` computes them."


def _score_table(scores: Sequence[dict[str, Any]]) -> str:
    rows = [
        f"| {score['name']} | {score['value']:.4g} | {score.get('signature') or ''} |"
        for score in scores
    ]
    return "\n".join(["| score | value | signature |", "|---|---|---|", *rows])
