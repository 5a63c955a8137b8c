"""The output that an analysis is about, as a batch, and checks of the run that computes it."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from seqloom.config.schema.decoding import DecodingConfig
from seqloom.core.batch import Batch, Padded
from seqloom.core.errors import ConfigError, DataError
from seqloom.core.signature import NoSource, Pixels, Vectors
from seqloom.data.batching.collate import pad_ids
from seqloom.inference.options import PredictionOptions
from seqloom.inference.prediction import Prediction
from seqloom.inference.run import Run
from seqloom.text.vocabulary import START


def decode_output(
    run: Run, text: str, target: str | None, decoding: DecodingConfig | None = None
) -> Prediction:
    """Return the output to analyse: the given target or, if it is None, the output of a search."""
    is_language_model = isinstance(run.task.signature.source, NoSource)
    if isinstance(run.task.signature.source, Vectors):
        raise ConfigError(
            f"{run.name}: reads vectors, but this analysis needs text. Use a run that reads text."
        )
    if not (is_language_model or text.strip()):
        raise DataError("the text is blank; give a text")
    if target is not None:
        return run.score(["" if is_language_model else text], [target], attention=False)[0]
    if is_language_model:
        return run.complete([text], decoding=decoding or run.config.decoding)[0][0]
    # The explained steps are those of torch, so torch must find the output: it stores attention.
    options = PredictionOptions(attention=True, split=False, pass_through=False)
    return run.translate([text], options, decoding=decoding)[0]


def check_step(step: int, output: Prediction) -> None:
    """Raise DataError if the output has no token at this step."""
    count = len(output.pieces)
    if 1 <= step <= count:
        return
    pieces = " ".join(piece.replace("▁", "") or "▁" for piece in output.pieces)
    raise DataError(f"there is no step {step}; the output has steps 1 to {count}: {pieces}")


def source_labels(output: Prediction, positions: int) -> tuple[str, ...]:
    """Return one label per source position: the token at this position.

    The source positions of an image are the cells of a grid. Their labels are "cell 1", "cell 2" …
    """
    return output.source_pieces or tuple(f"cell {number}" for number in range(1, positions + 1))


def training_batch(run: Run, texts: Sequence[str], outputs: Sequence[Prediction]) -> Batch:
    """Build a training batch with the texts as sources and the outputs as targets.

    texts: source texts; for captions, paths of image files. Not used for a language model
    """

    def pad(rows: Sequence[Sequence[int]]) -> Padded:
        return pad_ids([np.array(row, dtype=np.int64) for row in rows])

    source = None
    if not isinstance(run.task.signature.source, NoSource):
        tagged = run.languages.add_tag(texts, None)
        source = run.predictor.source([run.task.prepare(text) for text in tagged])
    inputs = pad([(START, *output.tokens[:-1]) for output in outputs])
    targets = pad([output.tokens for output in outputs])
    return Batch(source, inputs, targets).to(run.predictor.device)


def check_has_source(run: Run) -> None:
    """Raise ConfigError if the run reads no source (a language model)."""
    if isinstance(run.task.signature.source, NoSource):
        raise ConfigError(
            f"{run.name}: is a language model, which reads no source to attend to; use a run that "
            "reads a source, for example a translation run"
        )


def check_has_text_source(run: Run) -> None:
    """Raise ConfigError unless the run reads text.

    The error is raised for a language model, which reads no source, and for a run that reads images
    or vectors.
    """
    check_has_source(run)
    source = run.task.signature.source
    if isinstance(source, Vectors):
        raise ConfigError(
            f"{run.name}: reads vectors, which have no tokens to attend to; use a run that reads text"
        )
    if isinstance(source, Pixels):
        raise ConfigError(
            f"{run.name}: this command needs a text source, but the run reads images. To show the "
            "attention of a caption, use `seqloom caption RUN IMAGE --show FILE`"
        )


def no_attention_error(run: Run) -> ConfigError:
    """Return the error for a run without attention.

    The message says why the run has no attention. If the decoder is built in, the message also names
    the setting that adds attention.
    """
    reason = run.config.model.decoder.no_attention_reason
    return ConfigError(f"{run.name}: has no attention over the source: {reason}")


def to_plain(value: Any) -> Any:
    """Convert dataclasses, mappings and tuples to plain Python objects, for JSON.

    A dataclass with a method `to_json` is converted by this method.
    """
    if isinstance(value, Mapping):
        return {key: to_plain(each) for key, each in value.items()}
    if isinstance(value, tuple | list):
        return [to_plain(each) for each in value]
    if hasattr(value, "to_json"):
        return value.to_json()
    return to_plain(vars(value)) if hasattr(value, "__dataclass_fields__") else value
