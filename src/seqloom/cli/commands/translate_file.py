"""The command `seqloom translate-file`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from seqloom.cli.options import Engine, RunFolder, RunSettings, argument, flag, option
from seqloom.cli.output import print_warning, print_warnings
from seqloom.cli.parameters.prediction_options import with_prediction_options
from seqloom.core.errors import ConfigError, NotFoundError
from seqloom.inference.options import DEFAULT_OPTIONS, PredictionOptions


@with_prediction_options("translate-file")
def translate_file(
    run_folder: RunFolder,
    file: Annotated[Path, argument("FILE", "Document to translate.")],
    output: Annotated[
        Path | None, option("FILE", "File to write. Default: standard output.")
    ] = None,
    overwrite: Annotated[
        bool, flag("--overwrite", "With --output: replace an existing file.")
    ] = False,
    format: Annotated[
        str | None,
        option(
            "FORMAT",
            "Format of the document: text, markdown, html or srt. Default: by the suffix of "
            "the file.",
        ),
    ] = None,
    options: PredictionOptions = DEFAULT_OPTIONS,
    engine: Engine = None,
    settings: RunSettings = None,
) -> None:
    """Translate a document and keep its structure: plain text, Markdown, HTML or SRT subtitles.

    Code, tags, attributes, URLs, and the numbers and times of subtitles do not change.
    """
    from seqloom.text.documents.formats import document_format, read_document
    from seqloom.text.documents.srt import srt_text

    if overwrite and output is None:
        raise typer.BadParameter("--overwrite requires --output, the file to replace.")
    kind = document_format(str(file), format)
    try:
        content = file.read_bytes()
    except OSError as error:
        raise NotFoundError(f"{file}: cannot be read: {error.strerror}") from error
    if output is not None and output.exists() and not overwrite:
        raise ConfigError(f"{output}: exists already; replace it with --overwrite")
    document = read_document(content, str(file), kind)

    from seqloom.cli.engine import load_translator
    from seqloom.core.storage import write_file
    from seqloom.inference.texts.input_reports import report_messages

    translator = load_translator([run_folder], settings, options, engine)
    run = translator.run
    outputs = run.predict(document.sources, translator.options)
    best = [predictions[0] for predictions in outputs]
    translated = document.fill([prediction.text for prediction in best])
    if output is None:
        sys.stdout.write(translated.decode())
    else:
        write_file(output, translated)
    tokenizer = run.task.source_tokenizer
    unknown_unit = "word" if tokenizer is None else tokenizer.unknown_unit
    print_warnings(report_messages(best, unknown_unit, "text"))
    truncated = [
        source
        for source, prediction in zip(document.sources, best, strict=True)
        if not prediction.finished
    ]
    removed = [each.text for each in best if srt_text(each.text) != each.text.lstrip()]
    if kind == "srt" and removed:
        print_warning(
            f"{len(removed):,} of {len(best):,} translations contained <, >, {{ or }}, or started with "
            f"a dash, the first is {removed[0]!r:.60}. These characters have a meaning in SRT and "
            "were removed. Check these translations."
        )
    if truncated:
        print_warning(
            f"{len(truncated):,} of {len(best):,} translations reached the length limit, the first "
            f"of {truncated[0]!r:.60}. Raise it with --set decoding.max_length=…"
        )
