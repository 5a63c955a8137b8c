"""Captions of images."""

import json as json_format
from collections.abc import Sequence
from pathlib import Path

from seqloom.cli.output import put, tell
from seqloom.cli.work.changes import changed_decoding
from seqloom.core.errors import ConfigError
from seqloom.core.signature import Pixels
from seqloom.runs.prediction import Prediction
from seqloom.runs.run import Run, load
from seqloom.viz.caption_attention import CaptionAttention, save_caption_attention


def caption(
    folders: Sequence[Path],
    images: Sequence[str],
    show: Path | None,
    beam: int | None,
    json: bool,
    overrides: Sequence[str],
) -> None:
    run = load(folders)
    decoding = changed_decoding(run.config, overrides)
    found = run.caption(images, beam=beam, decoding=decoding, attention=True)
    for image, output in zip(images, found, strict=True):
        record = {"image": image, **output.to_json()}
        put(json_format.dumps(record, ensure_ascii=False) if json else output.text)
    if show is not None:
        save_caption_attention(
            show, [_look(run, one, text) for one, text in zip(images, found, strict=True)]
        )
        tell(f"{show}: where each word looked")


def _look(run: Run, image: str, output: Prediction) -> CaptionAttention:
    if output.attention is None:
        raise ConfigError(
            f"{run.folder}: this model does not look at parts of an image: its decoder has no "
            "attention; train with model.decoder.attention.kind = 'attention' to see where words "
            "look"
        )
    pixels = run.task.prepare(image).image
    assert pixels is not None
    square = run.task.signature.source
    assert isinstance(square, Pixels)
    edge = (pixels.shape[-1] - square.width) // 2
    middle = pixels[:, edge : edge + square.width, edge : edge + square.width]
    return CaptionAttention(output.text, middle, output.pieces, output.attention.tolist())
