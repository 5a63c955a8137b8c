"""Backpropagation through time, made visible: what reaches every step of encoder and decoder.

    ∂L/∂x_s = chain + attention     of a source step
    ∂L/∂x_t = own + later           of a target step

x is what a step takes in, the embedded token. Between decoder and encoder a gradient can cross at
two places only: through the state that was handed over (the chain), and through the states that
were looked at, or copied from (attention). A decoder's step is blamed for its own answer, and for
the later ones, which it reaches through the recurrence or by being looked back at. Both sums are
exact, whatever the model: it is cut where the two meet, and each side is taken back by itself.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from seqloom.core.batch import Batch, Padded
from seqloom.core.errors import ConfigError
from seqloom.models.ensemble import EnsembleDecoder
from seqloom.models.interface import Memory
from seqloom.models.recurrent import RecurrentDecoder, RecurrentEncoder
from seqloom.models.seq2seq import Model
from seqloom.models.transformer import TransformerDecoder, TransformerEncoder
from seqloom.nn.embedding import Embedder
from seqloom.nn.multihead import MultiHeadAttention
from seqloom.text.vocabulary import PAD


@dataclass(frozen=True)
class Flow:
    """The gradient of a loss with respect to what every step took in.

    loss:      (B,)      of each row
    chain:     (B, S, D) of the source, through the state that was handed over
    attention: (B, S, D) of the source, through the states that were looked at
    own:       (B, T, E) of the target, from the answer of the step itself
    later:     (B, T, E) of the target, from the answers of later steps

    S is 0 where nothing is read, E is 0 where a decoder takes nothing in.
    """

    loss: Tensor
    chain: Tensor
    attention: Tensor
    own: Tensor
    later: Tensor

    @property
    def source(self) -> Tensor:
        """(B, S, D) the whole gradient."""
        return self.chain + self.attention

    @property
    def target(self) -> Tensor:
        """(B, T, E) the whole gradient."""
        return self.own + self.later


def measure(model: Model, batch: Batch, step: int | None = None) -> Flow:
    """Take the loss of a batch back to every step.

    step: the loss of this answer alone, from 1; rows that have fewer have no loss. None: of all

    The model is not changed, and what it would learn from this is not kept.
    """
    _refuse_what_has_no_steps(model)
    # The GPU's own recurrent kernels cannot go back through a model that is not being trained.
    with torch.enable_grad(), torch.backends.cudnn.flags(enabled=False):
        read, memory = _read(model, batch)
        cut = replace(memory, states=_leaf(memory.states), summary=_leaf(memory.summary))
        taken, losses = _answer(model, batch, cut)
        chosen = losses if step is None else _only(losses, step)
        states, summary, inputs = _back(chosen.sum(), (cut.states, cut.summary, taken))
        own = _own(chosen, taken)
        return Flow(
            loss=chosen.sum(1).detach(),
            chain=_through(memory.summary, read, summary),
            attention=_through(memory.states, read, states),
            own=own,
            later=inputs - own,
        )


def _refuse_what_has_no_steps(model: Model) -> None:
    if isinstance(model.decoder, EnsembleDecoder):
        raise ConfigError("an ensemble is never trained, so it has no gradient; ask each by itself")
    if model.encoder is not None and _embedder(model.encoder) is None:
        raise ConfigError(
            "an image is looked at all at once: there are no steps to go back through"
        )


def _embedder(part: nn.Module | None) -> Embedder | None:
    """Where a part takes in its tokens."""
    match part:
        case RecurrentEncoder() | TransformerEncoder() | RecurrentDecoder() | TransformerDecoder():
            return part.embedder
        case _:
            return None


def _leaf(tensor: Tensor) -> Tensor:
    """The same numbers, and an end to every way back."""
    return tensor.detach().requires_grad_()


@contextmanager
def _tapped(part: nn.Module | None) -> Iterator[list[Tensor]]:
    """What a part takes in, caught as leaves that a gradient can be asked for."""
    kept: list[Tensor] = []

    def catch(module: nn.Module, given: object, vectors: Tensor) -> Tensor:
        kept.append(_leaf(vectors))
        return kept[-1]

    embedder = _embedder(part)
    with ExitStack() as stack:
        if embedder is not None:
            stack.callback(embedder.register_forward_hook(catch).remove)
        yield kept


def _read(model: Model, batch: Batch) -> tuple[Tensor, Memory]:
    """(B, S, D) what the encoder takes in, and what it makes of it."""
    with _tapped(model.encoder) as kept:
        memory = model.encode(batch.source, batch.size, batch.packing)
    return kept[0] if kept else memory.states, memory


def _answer(model: Model, batch: Batch, memory: Memory) -> tuple[Tensor, Tensor]:
    """(B, T, E) what the decoder takes in, and (B, T) what its answers cost."""
    with _tapped(model.decoder) as kept:
        taught = model.decoder(batch.inputs.values, memory, batch.packing)
        logits = taught.logits()  # (B, T, V)
    answers = Padded(batch.targets.values, batch.targets.lengths)
    real = answers.mask & (answers.values != PAD)
    wanted = answers.values.masked_fill(~real, 0).unsqueeze(-1)
    costs = -logits.log_softmax(dim=-1).gather(-1, wanted).squeeze(-1)
    taken = kept[0] if kept else logits.new_zeros(*logits.shape[:2], 0)
    return taken, torch.where(real, costs, 0.0)


def _only(losses: Tensor, step: int) -> Tensor:
    """One answer's loss, from 1; nothing elsewhere."""
    places = torch.arange(1, losses.shape[1] + 1, device=losses.device)
    return losses * (places == step)


def _back(loss: Tensor, ends: tuple[Tensor, ...]) -> list[Tensor]:
    """The gradient of a loss at each end; zero where no way leads there."""
    wanted = [end for end in ends if end.requires_grad]
    found: list[Tensor | None] = []
    if loss.requires_grad and wanted:
        found = list(torch.autograd.grad(loss, wanted, retain_graph=True, allow_unused=True))
    reached = {id(end): one for end, one in zip(wanted, found, strict=False)}
    gradients = [reached.get(id(end)) for end in ends]
    return [
        torch.zeros_like(end) if one is None else one
        for end, one in zip(ends, gradients, strict=True)
    ]


def _own(losses: Tensor, taken: Tensor) -> Tensor:
    """(B, T), (B, T, E) -> (B, T, E): of each answer's loss, what reaches its own step."""
    own = [_back(loss.sum(), (taken,))[0][:, place] for place, loss in enumerate(losses.unbind(1))]
    return torch.stack(own, dim=1)


def _through(output: Tensor, read: Tensor, gradient: Tensor) -> Tensor:
    """Take a gradient of what the encoder handed over back to what it took in: (B, S, D)"""
    if not output.requires_grad:
        return torch.zeros_like(read)
    [found] = torch.autograd.grad(output, read, gradient, retain_graph=True, allow_unused=True)
    return torch.zeros_like(read) if found is None else found


def look_gradients(
    attention: MultiHeadAttention, states: Tensor, source: Tensor, mask: Tensor
) -> dict[str, Tensor]:
    """The gradient of ½‖context‖² with respect to a look's queries, keys and values.

    states (B, T, Dq), source (B, S, Dk), mask broadcast to (B, H, T, S). Zero where none arrives:
    all weight on one key leaves queries and keys without any.
    """
    with torch.enable_grad():
        look = attention.lay_open(_leaf(states), _leaf(source), mask)
        ends = {"queries": look.queries, "keys": look.keys, "values": look.values}
        loss = look.context.square().sum() / 2
        return dict(zip(ends, _back(loss, tuple(ends.values())), strict=True))
