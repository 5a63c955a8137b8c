"""Free-running generation of real-valued outputs: each output is the input of the next step."""

import torch
from torch import Tensor

from seqloom.decoding.search import StepDecoder
from seqloom.models.interface import Memory


def roll_out(decoder: StepDecoder, memory: Memory, first: Tensor, context: Tensor) -> Tensor:
    """y_t = f(y_{t-1}, c_t, source)

    first (B, D): the row before the first output; context (B, T, C) -> outputs (B, T, D)
    """
    state = decoder.start(memory, context.shape[1], need_attention=False)
    row = first
    rows = []
    for step_context in context.unbind(1):
        step = decoder.step(torch.cat([row, step_context], dim=-1), state)
        row, state = step.logits, step.state
        rows.append(row)
    return torch.stack(rows, dim=1)
