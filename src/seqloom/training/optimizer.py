"""The AdamW optimiser and its state as named tensors."""

import inspect

import torch
from torch import Tensor, nn

from seqloom.config.schema.training import AdamWConfig
from seqloom.training.fine_tuning.freezing import trainable_parameters

MOMENTS = ("step", "exp_avg", "exp_avg_sq")
"""Names of the state tensors that AdamW keeps for each parameter."""


class EagerAdamW(torch.optim.AdamW):
    """AdamW that does not import torch's compiler. Updates and state are those of torch's AdamW.

    torch wraps `add_param_group`, `zero_grad` and `step`, so that `torch.compile` does not compile
    them. The wrappers import torch._dynamo, which takes longer than building a small model. seqloom
    does not need the wrappers, because it never calls an optimiser inside a compiled function.
    """

    add_param_group = inspect.unwrap(torch.optim.AdamW.add_param_group)
    zero_grad = inspect.unwrap(torch.optim.AdamW.zero_grad)
    # The wrapper of `step` also switches gradients off.
    step = torch.no_grad()(inspect.unwrap(torch.optim.AdamW.step))


def build_optimizer(config: AdamWConfig, model: nn.Module, capturable: bool = False) -> EagerAdamW:
    """Build AdamW for the parameters that are not frozen. Weight decay applies to matrices only,
    not to vectors such as biases.

    capturable: keep the learning rate in a tensor, which a CUDA graph reads at every replay
    """
    rate: float | Tensor = config.learning_rate
    on_gpu = next(model.parameters()).is_cuda
    if capturable:
        rate = torch.tensor(rate, device=next(model.parameters()).device)
    trained = trainable_parameters(model)
    matrices = [p for p in trained if p.dim() >= 2]
    vectors = [p for p in trained if p.dim() < 2]
    return EagerAdamW(
        [
            {"params": matrices, "weight_decay": config.weight_decay},
            {"params": vectors, "weight_decay": 0.0},
        ],
        lr=rate,
        betas=(config.beta1, config.beta2),
        eps=config.epsilon,
        fused=True,
        capturable=capturable and on_gpu,
    )


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Set the learning rate of all parameter groups."""
    for group in optimizer.param_groups:
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate


def optimizer_tensors(optimizer: torch.optim.Optimizer, model: nn.Module) -> dict[str, Tensor]:
    """Return the optimiser state of every parameter. Each tensor is named after its parameter and
    its entry in the state, such as "decoder.weight:exp_avg"."""
    return {
        f"{name}:{moment}": optimizer.state[parameter][moment]
        for name, parameter in model.named_parameters()
        if parameter.requires_grad
        for moment in MOMENTS
        if moment in optimizer.state[parameter]
    }


def restore_optimizer(
    optimizer: torch.optim.Optimizer, model: nn.Module, tensors: dict[str, Tensor]
) -> None:
    """Load the state that `optimizer_tensors` returned. Frozen parameters get no state."""
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue
        state = {
            moment: tensors[f"{name}:{moment}"].to(parameter.device)
            for moment in MOMENTS
            if f"{name}:{moment}" in tensors
        }
        if state:
            optimizer.state[parameter] = state
