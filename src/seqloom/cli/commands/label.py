"""The command `seqloom label`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from rich.cells import cell_len, set_cell_size

from seqloom.cli.options import EnsembleMembers, Json, RunFolder, argument, flag
from seqloom.cli.output import flush_output, print_json, print_line, print_warnings
from seqloom.cli.process.progress import progress_bar
from seqloom.core.errors import ConfigError

if TYPE_CHECKING:
    from seqloom.inference.prediction import Prediction
    from seqloom.inference.run import Run


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
    from seqloom.inference.run import load
    from seqloom.jobs.batch_translation.line_report import LineReport

    run = load([run_folder, *(ensemble or ())])
    per_token = run.config.model.decoder.labels_each_position
    if every and per_token:
        raise ConfigError(
            f"--all: {run.name} labels each token, so a text has too many possible label "
            "sequences to print. Remove --all."
        )
    if run.config.data.has_frames and texts is not None:
        _label_frames(run, texts, every=every, per_frame=per_token, json=json)
        return
    index = 0
    report = LineReport.of(run)
    total = None if texts is None else len(texts)
    with progress_bar("labelling", "texts", prints=True) as show:
        for portion in read_portions(None) if texts is None else [check_texts(texts)]:
            outputs = run.label(portion, every=every)
            report.add_lines(portion, [predictions[0] for predictions in outputs])
            for text, predictions in zip(portion, outputs, strict=True):
                if json:
                    labels = (
                        _token_labels(predictions[0]) if per_token else _text_labels(predictions)
                    )
                    print_json({"id": index, "source": text, "labels": labels})
                elif per_token:
                    for line in _aligned_lines(predictions[0]):
                        print_line(line)
                else:
                    fields = [
                        f"{each['label']}\t{each['probability']:.4f}"
                        for each in _text_labels(predictions)
                    ]
                    print_line("\t".join(fields))
                index += 1
            flush_output()
            show(index, total)
    print_warnings(report.messages())


def _label_frames(
    run: Run, inputs: Sequence[str], *, every: bool, per_frame: bool, json: bool
) -> None:
    """Label sequences of vectors, given as CSV files or as text, and print the labels."""
    sequences = [each for text in inputs for each in _read_sequences(run, text)]
    predicted = run.label([text for _, text in sequences], every=every)
    for index, ((name, text), predictions) in enumerate(zip(sequences, predicted, strict=True)):
        if json:
            labels = _token_labels(predictions[0]) if per_frame else _text_labels(predictions)
            print_json({"id": index, "sequence": name, "source": text, "labels": labels})
            continue
        start = "" if name is None else f"{name}\t"
        if per_frame:
            for each in _token_labels(predictions[0]):
                print_line(f"{start}{each['token']}\t{each['label']}\t{each['probability']:.4f}")
        else:
            fields = [
                f"{each['label']}\t{each['probability']:.4f}" for each in _text_labels(predictions)
            ]
            print_line(start + "\t".join(fields))
    flush_output()


def _read_sequences(run: Run, text: str) -> list[tuple[str | None, str]]:
    """Return (name, frames as text) for each sequence of an input.

    The input is the path of a CSV file with sequences, or one sequence of frames as text. A
    sequence that is given as text has no name: its name is None.
    """
    from seqloom.config.schema.corpora import FramesConfig
    from seqloom.data.modalities.frames import read_frame_sequences
    from seqloom.data.readers.text_files import locate

    if not text.endswith((".csv", ".csv.gz")):
        return [(None, text)]
    corpus = run.config.data.train[0]
    columns = corpus if isinstance(corpus, FramesConfig) else FramesConfig(path=text)
    path = locate(text, ".")
    return [
        (each.name, each.text) for each in read_frame_sequences(path, columns, with_labels=False)
    ]


def _text_labels(predictions: Sequence[Prediction]) -> list[dict[str, Any]]:
    """Return the labels of one text, most likely first. A blank text has no labels."""
    return [
        {"label": each.text, "probability": math.exp(sum(each.log_probabilities))}
        for each in predictions
        if each.text
    ]


def _token_labels(prediction: Prediction) -> list[dict[str, Any]]:
    """Return the label and probability of each token except END."""
    return [
        {"token": token, "label": name, "probability": math.exp(log_probability)}
        for (token, name), log_probability in zip(
            _token_pairs(prediction), prediction.log_probabilities[:-1], strict=True
        )
    ]


def _token_pairs(prediction: Prediction) -> list[tuple[str, str]]:
    """Return (token, label) for each token except END."""
    return list(zip(prediction.source_pieces, prediction.pieces, strict=True))[:-1]


def _aligned_lines(prediction: Prediction) -> list[str]:
    """Return a line of tokens and a line of labels. Each label is below its token.

    Tokens are separated by spaces, unless every token and every label is one character wide.
    """
    pairs = _token_pairs(prediction)
    widths = [max(cell_len(token), cell_len(name)) for token, name in pairs]
    gap = "" if set(widths) <= {1} else " "
    return [
        _padded_line([token for token, _ in pairs], widths, gap),
        _padded_line([name for _, name in pairs], widths, gap),
    ]


def _padded_line(cells: Iterable[str], widths: Sequence[int], gap: str) -> str:
    padded = (set_cell_size(cell, width) for cell, width in zip(cells, widths, strict=True))
    return gap.join(padded).rstrip()
