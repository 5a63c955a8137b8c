"""Label texts, or each of their tokens."""

import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rich.cells import cell_len, set_cell_size

from seqloom.cli.output import put, put_now
from seqloom.cli.work.lines import portions
from seqloom.cli.work.texts import checked
from seqloom.config.schema.labels import LabelsDecoderConfig
from seqloom.core.errors import ConfigError
from seqloom.runs.prediction import Prediction
from seqloom.runs.run import Run, load


def label(folders: Sequence[Path], texts: Sequence[str] | None, every: bool, as_json: bool) -> None:
    run = load(folders)
    in_step = _in_step(run)
    if every and in_step:
        raise ConfigError(
            f"--all: {run.name} gives a label to each token, and there are too many ways to do so "
            "to list; leave it out"
        )
    number = 0
    for portion in portions([]) if texts is None else [checked(texts)]:
        for text, found in zip(portion, run.label(portion, every=every), strict=True):
            if as_json:
                put(json.dumps(_record(number, text, found, in_step), ensure_ascii=False))
            else:
                for line in aligned(found[0]) if in_step else [_listed(found)]:
                    put(line)
            number += 1
        put_now()


def _in_step(run: Run) -> bool:
    decoder = run.config.model.decoder
    return isinstance(decoder, LabelsDecoderConfig) and decoder.labels_each_position


def _probability(found: Prediction) -> float:
    return math.exp(sum(found.log_probabilities))


def _listed(found: Sequence[Prediction]) -> str:
    """The labels of one text, the likeliest first; a blank line for a blank one."""
    return "\t".join(f"{one.text}\t{_probability(one):.4f}" for one in found if one.text)


def _pairs(found: Prediction) -> list[tuple[str, str]]:
    """Each token with its label, without END."""
    ends = zip(found.source_pieces, found.pieces, strict=True)
    return list(ends)[:-1]


def aligned(found: Prediction) -> list[str]:
    """Tokens, and below each its label; side by side if every one of them is one character."""
    pairs = _pairs(found)
    widths = [max(cell_len(token), cell_len(name)) for token, name in pairs]
    gap = "" if set(widths) <= {1} else " "
    return [
        _row([token for token, _ in pairs], widths, gap),
        _row([name for _, name in pairs], widths, gap),
    ]


def _row(cells: Iterable[str], widths: Sequence[int], gap: str) -> str:
    padded = (set_cell_size(cell, width) for cell, width in zip(cells, widths, strict=True))
    return gap.join(padded).rstrip()


def _record(number: int, text: str, found: Sequence[Prediction], in_step: bool) -> dict[str, Any]:
    if in_step:
        [best] = found
        steps = [math.exp(one) for one in best.log_probabilities[:-1]]
        pairs = _pairs(best)
        labels = [
            {"token": token, "label": name, "probability": probability}
            for (token, name), probability in zip(pairs, steps, strict=True)
        ]
    else:
        labels = [
            {"label": one.text, "probability": _probability(one)} for one in found if one.text
        ]
    return {"id": number, "source": text, "labels": labels}
