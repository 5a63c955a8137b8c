"""Functions that check a run before a command displays its attention over source tokens."""

from typing import assert_never

from seqloom.config.schema.model import DecoderExtensionConfig, LabelsDecoderConfig
from seqloom.config.schema.recurrent import RecurrentDecoderConfig
from seqloom.config.schema.transformer import TransformerDecoderConfig
from seqloom.core.errors import ConfigError
from seqloom.core.signature import NoSource, Pixels, Vectors
from seqloom.inference.run import Run


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
    decoder = run.config.model.decoder
    match decoder:
        case RecurrentDecoderConfig() | TransformerDecoderConfig():
            reason = (
                "its decoder has no attention; train with model.decoder.attention.kind = "
                "'attention'"
            )
        case LabelsDecoderConfig():
            reason = (
                "a label decoder predicts each label from one state or from a summary of all; "
                "train with model.decoder.kind = 'recurrent' or 'transformer' to get attention"
            )
        case DecoderExtensionConfig():
            reason = f"the decoder '{decoder.kind}' returns no attention weights from `step`"
        case _:
            assert_never(decoder)
    return ConfigError(f"{run.name}: has no attention over the source: {reason}")
