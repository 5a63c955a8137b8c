"""The command `seqloom label`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any

from rich.cells import cell_len, set_cell_size

from seqloom.cli.options import EnsembleMembers, Json, RunFolder, argument, flag
from seqloom.cli.output import flush_output, print_json, print_line, print_warnings
from seqloom.cli.process.progress import progress_bar
from seqloom.core.errors import ConfigError


def label(
    run_folder: RunFolder,
    texts: Annotated[
        list[str] | None,
        argument(
            "[TEXT]...",
            "Texts to label. Default: the lines of standard input. For a run that reads "
            "vectors: CSV files with one row per frame, or frames such as '0.5,-1.2 0.6,-1.1'.",
        ),
    ] = None,
    every: Annotated[
        bool, flag("--all", "Print every label of a text with its probability.")
    ] = False,
    json: Json = False,
    ensemble: EnsembleMembers = None,
) -> None:
    """Label texts or sequences of vectors: as a whole, or each token or frame separately.

    If a text has one label, the output is one line `label<TAB>probability`. If each token has a
    label, the output is two lines: the tokens, and below them their labels. For a CSV file, a line
    starts with the name of the sequence and, if each frame has a label, the number of the frame.
    """
    from seqloom.cli.inputs import check_texts, read_portions
    from seqloom.inference.labels import read_sequences, text_labels, token_labels
    from seqloom.inference.run import load
    from seqloom.jobs.batch_translation.line_report import LineReport

    run = load([run_folder, *(ensemble or ())])
    per_token = run.config.model.decoder.labels_each_position
    if every and per_token:
        raise ConfigError(
            f"--all: {run.name} labels each token, so a text has too many possible label "
            "sequences to print. Remove --all."
        )
    names: list[str | None] = []
    if texts is None:
        portions: Iterable[Sequence[str]] = read_portions(None)
    elif run.config.modality == "frames":
        sequences = [each for text in texts for each in read_sequences(run, text)]
        names = [name for name, _ in sequences]
        portions = [[text for _, text in sequences]]
    else:
        portions = [check_texts(texts)]
    index = 0
    report = LineReport.of(run)
    total = None if texts is None else len(texts)
    with progress_bar("labelling", "texts", prints=True) as show:
        for portion in portions:
            outputs = run.label(portion, every=every)
            report.add_lines(portion, [predictions[0] for predictions in outputs])
            for text, predictions in zip(portion, outputs, strict=True):
                name = names[index] if names else None
                labels = token_labels(predictions[0]) if per_token else text_labels(predictions)
                if json:
                    sequence = {"sequence": name} if names else {}
                    print_json({"id": index, **sequence, "source": text, "labels": labels})
                elif per_token and not names:
                    for line in _aligned_lines(labels):
                        print_line(line)
                else:
                    for line in _rows(labels, per_token):
                        print_line(line if name is None else f"{name}\t{line}")
                index += 1
            flush_output()
            show(index, total)
    print_warnings(report.messages())


def _rows(labels: Sequence[dict[str, Any]], per_token: bool) -> list[str]:
    """Return the labels of a text in one line, or those of frames in one line each."""
    if per_token:
        return [f"{each['token']}\t{each['label']}\t{each['probability']:.4f}" for each in labels]
    return ["\t".join(f"{each['label']}\t{each['probability']:.4f}" for each in labels)]


def _aligned_lines(labels: Sequence[dict[str, Any]]) -> list[str]:
    """Return a line of tokens and a line of labels. Each label is below its token.

    Tokens are separated by spaces, unless every token and every label is one character wide.
    """
    pairs = [(each["token"], each["label"]) for each in labels]
    widths = [max(cell_len(token), cell_len(name)) for token, name in pairs]
    gap = "" if set(widths) <= {1} else " "
    return [
        _padded_line([token for token, _ in pairs], widths, gap),
        _padded_line([name for _, name in pairs], widths, gap),
    ]


def _padded_line(cells: Iterable[str], widths: Sequence[int], gap: str) -> str:
    padded = (set_cell_size(cell, width) for cell, width in zip(cells, widths, strict=True))
    return gap.join(padded).rstrip()
