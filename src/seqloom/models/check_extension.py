"""Runs encoders and decoders that are defined outside seqloom once, to check them.

If a module fails or returns a wrong shape, the user gets an error before training starts. A module
is run only if it works on token ids, not on vectors or images.
"""

from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor, nn

from seqloom.core.batch import Padded
from seqloom.core.errors import ConfigError
from seqloom.core.signature import Signature, Tokens
from seqloom.models.interface import DecoderModule, EncoderModule, Memory
from seqloom.text.vocabulary import END, UNKNOWN

Result = TypeVar("Result")

FAILURES = (RuntimeError, ValueError, TypeError, IndexError, AttributeError, NotImplementedError)
"""Exceptions that an encoder or a decoder may raise if it does not follow the interface."""


def check_extension_encoder(encoder: object, kind: str, width: int, signature: Signature) -> None:
    """Check an encoder that is defined outside seqloom.

    If the sources are token ids, run it once to check it.

    Raises ConfigError if the encoder is not an `EncoderModule`, if it fails, or if its output does
    not have the shapes of `Memory`.

    width: width of its states
    """
    name = f"encoder '{kind}'"
    if not isinstance(encoder, EncoderModule):
        raise ConfigError(_wrong_type(name, encoder, "EncoderModule"))
    if isinstance(signature.source, Tokens):
        memory = _run(name, encoder, lambda: encoder(_example_source()))
        _check_shape(name, "states", memory.states, (2, 3, width))
        _check_shape(name, "mask", memory.mask, (2, 3))
        _check_shape(name, "summary", memory.summary, (2, 1, width))


def check_extension_decoder(
    decoder: object, kind: str, signature: Signature, encoder: EncoderModule | None
) -> None:
    """Check a decoder that is defined outside seqloom.

    If sources and targets are token ids, run `forward` and `step` once each to check them.

    Raises ConfigError if the decoder is not a `DecoderModule`, if it fails, or if the logits of
    `forward` or `step` have a wrong shape.

    encoder: the encoder of the model; None without a source
    """
    name = f"decoder '{kind}'"
    if not isinstance(decoder, DecoderModule):
        raise ConfigError(_wrong_type(name, decoder, "DecoderModule"))
    if encoder is None or not isinstance(signature.source, Tokens):
        return
    if isinstance(signature.target, Tokens):
        size = signature.target.count
        with torch.no_grad():
            memory = encoder(_example_source())
        tokens = torch.full((2, 4), UNKNOWN)
        logits = _run(name, decoder, lambda: decoder(tokens, memory, None).logits())
        _check_shape(name, "logits of forward", logits, (2, 4, size))
        step = _run(name, decoder, lambda: _first_step(decoder, memory))
        _check_shape(name, "logits of step", step, (2, size))


def _first_step(decoder: DecoderModule, memory: Memory) -> Tensor:
    state = decoder.start(memory, max_steps=4)
    return decoder.step(torch.full((2,), UNKNOWN), state).logits


def _example_source() -> Padded:
    """Return two sources of 2 and 3 tokens: UNKNOWN END, and UNKNOWN UNKNOWN END."""
    values = torch.tensor([[UNKNOWN, END, 0], [UNKNOWN, UNKNOWN, END]])
    return Padded(values, torch.tensor([2, 3]))


def _run(part: str, module: nn.Module, call: Callable[[], Result]) -> Result:
    """Return the result of `call`, which runs `module`. Raises ConfigError if the call fails.

    The module runs in evaluation mode and without gradients. The call does not change the state of
    torch's random number generator on the CPU. Afterwards the module is in training mode.
    """
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            module.eval()
            return call()
    except FAILURES as error:
        raise ConfigError(
            f"the {part} fails in the check with two sources of "
            f"2 and 3 tokens: {type(error).__name__}: {error}"
        ) from error
    finally:
        module.train()


def _check_shape(part: str, name: str, tensor: Tensor, expected: tuple[int, ...]) -> None:
    if tuple(tensor.shape) != expected:
        raise ConfigError(
            f"the {part} returns {name} of the shape "
            f"{tuple(tensor.shape)}, but {expected} is required in the check with two sources of "
            "2 and 3 tokens"
        )


def _wrong_type(part: str, module: object, expected: str) -> str:
    return (
        f"the {part} is a {type(module).__name__}, but it must be a "
        f"subclass of seqloom.models.{expected}"
    )
