"""The initial state of a recurrent decoder, computed from the final state of the encoder."""

import torch
from torch import Tensor, nn


class InitialState(nn.Module):
    """Encoder summary (B, L, C) -> initial decoder state (B, L', C'). This base class gives zeros.

    layers:      L', number of decoder layers
    state_width: C', width of the state of a decoder layer
    """

    def __init__(self, layers: int, state_width: int) -> None:
        super().__init__()
        self.layers = layers
        self.state_width = state_width

    def forward(self, summary: Tensor) -> Tensor:
        """(B, L, C) -> (B, L', C')"""
        return summary.new_zeros(summary.shape[0], self.layers, self.state_width)


class CopiedInitialState(InitialState):
    """The final state of the encoder itself, layer by layer (Sutskever et al. 2014)."""

    def forward(self, summary: Tensor) -> Tensor:
        return summary


class ProjectedInitialState(InitialState):
    """tanh(W summary + b). Encoder and decoder may differ in layers, widths and cells.

    summary_width: L · C, width of the summaries of all encoder layers together
    """

    def __init__(self, summary_width: int, layers: int, state_width: int) -> None:
        super().__init__(layers, state_width)
        self.projection = nn.Linear(summary_width, layers * state_width)

    def forward(self, summary: Tensor) -> Tensor:
        return torch.tanh(self.projection(summary.flatten(1))).unflatten(1, (self.layers, -1))
