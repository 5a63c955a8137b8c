"""AdamW, and its memory as plain tensors."""

import torch
from torch import Tensor, nn

from seqloom.config.training import AdamWConfig

MOMENTS = ("step", "exp_avg", "exp_avg_sq")


def build_optimizer(
    config: AdamWConfig, model: nn.Module, recorded: bool = False
) -> torch.optim.AdamW:
    """Weight decay pulls on matrices only: a bias or a norm's gain has nothing to gain from it.

    recorded: a recording reads the learning rate from a tensor that stays in its place
    """
    rate: float | Tensor = config.learning_rate
    on_gpu = next(model.parameters()).is_cuda
    if recorded:
        rate = torch.tensor(rate, device=next(model.parameters()).device)
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    return torch.optim.AdamW(
        [
            {"params": matrices, "weight_decay": config.weight_decay},
            {"params": vectors, "weight_decay": 0.0},
        ],
        lr=rate,
        betas=(config.beta1, config.beta2),
        eps=config.epsilon,
        fused=True,
        capturable=recorded and on_gpu,
    )


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    for group in optimizer.param_groups:
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate


def optimizer_tensors(optimizer: torch.optim.Optimizer, model: nn.Module) -> dict[str, Tensor]:
    """Every moment of every parameter, by the parameter's name."""
    return {
        f"{name}:{moment}": optimizer.state[parameter][moment]
        for name, parameter in model.named_parameters()
        for moment in MOMENTS
        if moment in optimizer.state[parameter]
    }


def restore_optimizer(
    optimizer: torch.optim.Optimizer, model: nn.Module, tensors: dict[str, Tensor]
) -> None:
    for name, parameter in model.named_parameters():
        state = {
            moment: tensors[f"{name}:{moment}"].to(parameter.device)
            for moment in MOMENTS
            if f"{name}:{moment}" in tensors
        }
        if state:
            optimizer.state[parameter] = state
