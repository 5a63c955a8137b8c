"""What there is to see of a run, or the switch that would give it."""

from typing import assert_never

from seqloom.config.schema.labels import LabelsDecoderConfig
from seqloom.config.schema.recurrent import RecurrentDecoderConfig
from seqloom.config.schema.transformer import TransformerDecoderConfig
from seqloom.core.errors import ConfigError
from seqloom.core.signature import NoSource, Pixels
from seqloom.runs.run import Run


def refuse_sourceless(run: Run) -> None:
    """Words can only look at words that were read."""
    source = run.task.signature.source
    if isinstance(source, NoSource):
        raise ConfigError(
            f"{run.name}: is a language model, which reads no source, so that there is nothing its "
            "words could look at but each other; look inside a run that translates"
        )
    if isinstance(source, Pixels):
        raise ConfigError(
            f"{run.name}: reads images; see where the words of a caption look with "
            "`seqloom caption RUN IMAGE --show FILE`"
        )


def no_attention(run: Run) -> ConfigError:
    """Which switch would have given it."""
    decoder = run.config.model.decoder
    match decoder:
        case RecurrentDecoderConfig() | TransformerDecoderConfig():
            why = "its decoder has no attention; train with model.decoder.attention.kind = 'attention'"
        case LabelsDecoderConfig():
            why = (
                "its decoder gives labels, each from the state at one place or from a summary of "
                "all, and looks at nothing else; train a model.decoder.kind = 'recurrent' or "
                "'transformer' to see attention"
            )
        case _:
            assert_never(decoder)
    return ConfigError(f"{run.name}: does not look back at what it has read: {why}")
