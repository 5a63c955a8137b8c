"""Which loop and which batches suit a model and a machine."""

from typing import Literal, assert_never

import torch

from seqloom.config.training import TeacherForcingConfig, TrainingConfig
from seqloom.data.ahead import AheadStream
from seqloom.data.corpus import Corpus
from seqloom.data.layout import Layout, PaddedLayout
from seqloom.data.packing import BucketLayout, PackedLayout, row_length
from seqloom.data.stream import BatchStream
from seqloom.models.seq2seq import Model

Batching = Literal["padded", "packed", "bucketed"]


def choose_batching(settings: TrainingConfig, model: Model, device: torch.device) -> Batching:
    """What a new run begins with, and then keeps to."""
    if settings.batching != "auto":
        return settings.batching
    if not is_recorded(settings, device):
        return "padded"
    return "packed" if model.takes_packed else "bucketed"


def is_recorded(settings: TrainingConfig, device: torch.device) -> bool:
    """Are steps recorded and replayed? A step that is fed the model's own words differs each time."""
    if settings.loop == "auto":
        return device.type == "cuda" and isinstance(settings.feeding, TeacherForcingConfig)
    return settings.loop == "recorded"


def build_layout(batching: Batching, budget: int, corpus: Corpus) -> Layout:
    match batching:
        case "padded":
            return PaddedLayout(budget)
        case "packed":
            length = row_length(corpus.source_lengths, corpus.target_lengths)
            return PackedLayout(budget, length)
        case "bucketed":
            return BucketLayout(budget)
        case _:
            assert_never(batching)


def ahead(stream: BatchStream) -> AheadStream:
    """The stream with its next batches ready in memory that a GPU can copy from by itself."""
    return AheadStream(stream, lambda batch: batch.map(torch.Tensor.pin_memory))
