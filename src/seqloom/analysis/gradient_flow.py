"""Gradients of a loss with respect to the input of every encoder and decoder step.

    ∂L/∂x_s = chain + attention     at source step s
    ∂L/∂x_t = own + later           at target step t

x is the embedded token that a step reads. A gradient passes from the decoder to the encoder on two
paths: through the summary that initialises the decoder state (the chain), and through the encoder
states that the decoder attends to or copies from (attention). The input of a decoder step affects
the prediction of the same step (own) and, through the recurrence or through self-attention, the
predictions of later steps (later).

Both sums are exact for every model. To separate chain and attention, the autograd graph is cut at
the encoder output, and each path is differentiated separately. To separate own and later, the loss
of each step is differentiated separately.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from seqloom.core.batch import Batch, Padded
from seqloom.core.errors import ConfigError
from seqloom.models.ensemble import EnsembleDecoder
from seqloom.models.images import ImageEncoder
from seqloom.models.interface import Memory
from seqloom.models.recurrent import RecurrentDecoder, RecurrentEncoder
from seqloom.models.seq2seq import Model
from seqloom.models.transformer import TransformerDecoder, TransformerEncoder
from seqloom.nn.embedding import Embedder
from seqloom.nn.multihead import MultiHeadAttention
from seqloom.text.vocabulary import PAD


@dataclass(frozen=True)
class GradientFlow:
    """Gradients of a loss at the embedded inputs of all encoder and decoder steps.

    loss:      (B,)      loss of each row
    chain:     (B, S, D) gradient at the encoder inputs, through the encoder's summary vector
    attention: (B, S, D) gradient at the encoder inputs, through attention (or copying)
    own:       (B, T, E) gradient at the decoder inputs, from the prediction of the same step
    later:     (B, T, E) gradient at the decoder inputs, from the predictions of later steps

    S is 0 if the model has no encoder. E is 0 if the decoder reads no tokens.
    """

    loss: Tensor
    chain: Tensor
    attention: Tensor
    own: Tensor
    later: Tensor

    @property
    def source(self) -> Tensor:
        """(B, S, D) complete gradient at the encoder inputs: `chain` + `attention`."""
        return self.chain + self.attention

    @property
    def target(self) -> Tensor:
        """(B, T, E) complete gradient at the decoder inputs: `own` + `later`."""
        return self.own + self.later


def measure_gradients(model: Model, batch: Batch, step: int | None = None) -> GradientFlow:
    """Differentiate the loss of a batch with respect to the inputs of all steps.

    step: differentiate only the loss of this prediction, counted from 1. For rows with fewer
          steps, the loss is 0. Default: differentiate the losses of all predictions.

    The parameters of the model do not change, and their gradients are not accumulated.
    """
    _check_model(model)
    # The recurrent kernels of cuDNN have no backward pass in evaluation mode.
    with torch.enable_grad(), torch.backends.cudnn.flags(enabled=False):
        source_inputs, memory = _encode(model, batch)
        cut = replace(memory, states=_leaf(memory.states), summary=_leaf(memory.summary))
        target_inputs, losses = _decode(model, batch, cut)
        selected = losses if step is None else select_step(losses, step)
        states, summary, inputs = gradients_at(
            selected.sum(), (cut.states, cut.summary, target_inputs)
        )
        own = _own_gradients(selected, target_inputs)
        return GradientFlow(
            loss=selected.sum(1).detach(),
            chain=_backward_through(memory.summary, source_inputs, summary),
            attention=_backward_through(memory.states, source_inputs, states),
            own=own,
            later=inputs - own,
        )


def check_no_ensemble(model: Model) -> None:
    """Raise ConfigError if the model is an ensemble."""
    if isinstance(model.decoder, EnsembleDecoder):
        raise ConfigError(
            "an ensemble is not trained, so it has no gradient; measure each member by itself"
        )


def _check_model(model: Model) -> None:
    check_no_ensemble(model)
    if isinstance(model.encoder, ImageEncoder):
        raise ConfigError(
            "an image encoder reads the complete image in one step, so there are no source steps "
            "to measure gradients at. Use `seqloom gradients` with one image and --at states, "
            "attention or weights."
        )
    for part in (model.encoder, model.decoder):
        if part is not None and type(part).__module__.partition(".")[0] != "seqloom":
            raise ConfigError(
                f"{type(part).__name__} is defined outside seqloom, so its embedding is not known; "
                "measure gradients of a run with built-in encoder and decoder"
            )


def _embedder(part: nn.Module | None) -> Embedder | None:
    """Return the embedding module of a recurrent or Transformer encoder or decoder.

    Return None for other modules, and if `part` is None.
    """
    match part:
        case RecurrentEncoder() | TransformerEncoder() | RecurrentDecoder() | TransformerDecoder():
            return part.embedder
        case _:
            return None


def _leaf(tensor: Tensor) -> Tensor:
    """Return a tensor with the same values that is a leaf of the autograd graph."""
    return tensor.detach().requires_grad_()


@contextmanager
def _capture_inputs(part: nn.Module | None) -> Iterator[list[Tensor]]:
    """Replace the embedded inputs of an encoder or decoder by autograd leaves with equal values.

    Context manager. Yields a list, to which the forward pass inside the context appends the leaves.
    """
    captured: list[Tensor] = []

    def capture(module: nn.Module, arguments: object, vectors: Tensor) -> Tensor:
        captured.append(_leaf(vectors))
        return captured[-1]

    embedder = _embedder(part)
    with ExitStack() as stack:
        if embedder is not None:
            stack.callback(embedder.register_forward_hook(capture).remove)
        yield captured


def _encode(model: Model, batch: Batch) -> tuple[Tensor, Memory]:
    """Run the encoder. Returns its embedded inputs (B, S, D) and its output."""
    with _capture_inputs(model.encoder) as captured:
        memory = model.encode(batch.source, batch.size, batch.packing)
    return captured[0] if captured else memory.states, memory


def _decode(model: Model, batch: Batch, memory: Memory) -> tuple[Tensor, Tensor]:
    """Run the decoder. Returns its embedded inputs (B, T, E) and its losses (B, T)."""
    with _capture_inputs(model.decoder) as captured:
        output = model.decoder(batch.inputs.values, memory, batch.packing)
        logits = output.logits()  # (B, T, V)
    inputs = captured[0] if captured else logits.new_zeros(*logits.shape[:2], 0)
    return inputs, prediction_losses(logits, batch.targets)


def prediction_losses(logits: Tensor, targets: Padded) -> Tensor:
    """Return the loss -log p(target) of every prediction, 0 at padding: (B, T, V) -> (B, T)"""
    is_real = targets.mask & (targets.values != PAD)
    indices = targets.values.masked_fill(~is_real, 0).unsqueeze(-1)
    losses = -logits.log_softmax(dim=-1).gather(-1, indices).squeeze(-1)
    return torch.where(is_real, losses, 0.0)


def select_step(losses: Tensor, step: int) -> Tensor:
    """Return the losses (B, T) with zeros at all steps except this one, counted from 1."""
    steps = torch.arange(1, losses.shape[1] + 1, device=losses.device)
    return losses * (steps == step)


def gradients_at(loss: Tensor, leaves: Sequence[Tensor]) -> list[Tensor]:
    """Return the gradient of the loss at each of the given tensors.

    The gradient is zero if the loss does not depend on the tensor. The tensors may also be inner
    nodes of the autograd graph.
    """
    required = [leaf for leaf in leaves if leaf.requires_grad]
    computed: list[Tensor | None] = []
    if loss.requires_grad and required:
        computed = list(torch.autograd.grad(loss, required, retain_graph=True, allow_unused=True))
    by_leaf = {id(leaf): gradient for leaf, gradient in zip(required, computed, strict=False)}
    gradients = [by_leaf.get(id(leaf)) for leaf in leaves]
    return [
        torch.zeros_like(leaf) if gradient is None else gradient
        for leaf, gradient in zip(leaves, gradients, strict=True)
    ]


def _own_gradients(losses: Tensor, inputs: Tensor) -> Tensor:
    """Return the gradient of each step's loss at the input of the same step.

    losses (B, T), inputs (B, T, E) -> gradients (B, T, E)
    """
    own = [
        gradients_at(loss.sum(), (inputs,))[0][:, step]
        for step, loss in enumerate(losses.unbind(1))
    ]
    return torch.stack(own, dim=1)


def _backward_through(output: Tensor, inputs: Tensor, gradient: Tensor) -> Tensor:
    """Return the part of the loss gradient that reaches the encoder inputs through one output.

    output:   one of the outputs of the encoder
    inputs:   (B, S, D) embedded inputs of the encoder; the result has the same shape
    gradient: gradient of the loss at this output
    """
    if not output.requires_grad:
        return torch.zeros_like(inputs)
    [result] = torch.autograd.grad(output, inputs, gradient, retain_graph=True, allow_unused=True)
    return torch.zeros_like(inputs) if result is None else result


def attention_gradients(
    attention: MultiHeadAttention, states: Tensor, source: Tensor, mask: Tensor
) -> dict[str, Tensor]:
    """Return the gradients of ½‖context‖² with respect to "queries", "keys" and "values".

    states: (B, T, Dq) vectors from which the queries are computed
    source: (B, S, Dk) vectors from which the keys and values are computed
    mask:   broadcast to (B, H, T, S)

    With hard attention, the gradients of queries and keys are zero.
    """
    with torch.enable_grad():
        attended = attention.trace(_leaf(states), _leaf(source), mask)
        tensors = {"queries": attended.queries, "keys": attended.keys, "values": attended.values}
        loss = attended.context.square().sum() / 2
        return dict(zip(tensors, gradients_at(loss, tuple(tensors.values())), strict=True))
