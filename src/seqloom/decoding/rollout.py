"""Real-valued outputs, one after the other: each is fed back in as it came out."""

import torch
from torch import Tensor

from seqloom.decoding.search import Stepper
from seqloom.models.interface import Memory


def roll_out(decoder: Stepper, memory: Memory, first: Tensor, context: Tensor) -> Tensor:
    """y_t = f(y_{t-1}, c_t, source): (B, D) the row before the first, (B, T, C) -> (B, T, D)"""
    state = decoder.start(memory, context.shape[1], need_attention=False)
    row = first
    rows = []
    for known in context.unbind(1):
        step = decoder.step(torch.cat([row, known], dim=-1), state)
        row, state = step.logits, step.state
        rows.append(row)
    return torch.stack(rows, dim=1)
