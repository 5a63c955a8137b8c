"""Functions that check a run before a command displays its attention over source tokens."""

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
    reason = run.config.model.decoder.no_attention_reason
    return ConfigError(f"{run.name}: has no attention over the source: {reason}")
