"""What a recurrent decoder starts from."""

import torch
from torch import Tensor, nn


class Handover(nn.Module):
    """The decoder's first state made from the encoder's last: (B, L, C) -> (B, L', C')."""

    def __init__(self, layers: int, state_width: int) -> None:
        super().__init__()
        self.layers = layers
        self.state_width = state_width

    def forward(self, summary: Tensor) -> Tensor:
        """Zeros: what a decoder starts from that is told nothing."""
        return summary.new_zeros(summary.shape[0], self.layers, self.state_width)


class WholeHandover(Handover):
    """The encoder's last state itself, layer by layer."""

    def forward(self, summary: Tensor) -> Tensor:
        return summary


class LayerHandover(Handover):
    """tanh(W summary + b): shapes and cells of the two sides may differ."""

    def __init__(self, summary_width: int, layers: int, state_width: int) -> None:
        super().__init__(layers, state_width)
        self.map = nn.Linear(summary_width, layers * state_width)

    def forward(self, summary: Tensor) -> Tensor:
        return torch.tanh(self.map(summary.flatten(1))).unflatten(1, (self.layers, -1))
