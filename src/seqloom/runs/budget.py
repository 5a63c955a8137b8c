"""How much is decoded together."""

from collections.abc import Iterator, Sequence
from typing import assert_never

import torch

from seqloom.config.decoding import (
    BeamConfig,
    ExhaustiveConfig,
    GreedyConfig,
    SampleConfig,
    SearchConfig,
)
from seqloom.tasks.task import ModelInput

BATCH_TOKENS = 4_096
"""Source tokens of all hypotheses decoded together on a CPU: enough to fill the machine."""
LAST = 2
"""So many times as much may be decoded together, if then nothing is left."""
IMAGE_TOKENS = 64
"""What an image counts as: to read one on a CPU takes some megabytes, and many at once are read no
faster than a few dozen."""
BYTES_A_TOKEN = 2**21
"""Memory of a GPU that there must be for each of them: a twentieth of it is used by a batch of a
large model, and several kinds of batches are kept ready."""


def batch_tokens(device: torch.device) -> int:
    """Source tokens of all hypotheses that are decoded together."""
    if device.type != "cuda":
        return BATCH_TOKENS
    return int(torch.cuda.get_device_properties(device).total_memory // BYTES_A_TOKEN)


def hypotheses_of(decoding: SearchConfig) -> int:
    """How many outputs of an input are followed at a time."""
    match decoding:
        case BeamConfig(width=width):
            return width
        case SampleConfig(samples=samples):
            return samples
        case GreedyConfig() | ExhaustiveConfig():
            return 1
        case _:
            assert_never(decoding)


def size_of(prepared: ModelInput) -> int:
    """Tokens that are read, END included."""
    if prepared.image is not None:
        return IMAGE_TOKENS
    return len(prepared.prefix if prepared.source is None else prepared.source) + 1


def together(lengths: Sequence[int], budget: int, last: int = LAST) -> Iterator[list[int]]:
    """Inputs of like length together, by their numbers, the longest first.

    A search by torch takes nearly as long for a few as for many. So the last ones go along with
    those before them, if then no more than `last` budgets are full.
    """
    left = sorted(range(len(lengths)), key=lambda number: -lengths[number])
    while left:
        longest = lengths[left[0]]
        fit = len(left) if longest * len(left) <= last * budget else max(budget // longest, 1)
        yield left[:fit]
        left = left[fit:]
