"""The optimiser: its parameter groups and its updates."""

import copy

import torch
from torch import nn

from seqloom.config.schema.training import AdamWConfig
from seqloom.training.optimizer import build_optimizer, optimizer_tensors, restore_optimizer

CONFIG = AdamWConfig(learning_rate=0.01, weight_decay=0.1)


def make_model() -> nn.Module:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(4, 5), nn.LayerNorm(5), nn.Linear(5, 2))


def take_steps(model: nn.Module, optimizer: torch.optim.Optimizer, steps: int) -> None:
    for step in range(steps):
        optimizer.zero_grad(set_to_none=True)
        inputs = torch.randn(8, 4, generator=torch.Generator().manual_seed(step))
        model(inputs).square().sum().backward()
        optimizer.step()


def test_updates_and_state_equal_those_of_torch_bit_by_bit() -> None:
    model = make_model()
    reference = copy.deepcopy(model)
    optimizer = build_optimizer(CONFIG, model)
    groups = [
        [p for p in reference.parameters() if (p.dim() >= 2) is matrix] for matrix in (True, False)
    ]
    torch_optimizer = torch.optim.AdamW(
        [
            {"params": groups[0], "weight_decay": CONFIG.weight_decay},
            {"params": groups[1], "weight_decay": 0.0},
        ],
        lr=CONFIG.learning_rate,
        betas=(CONFIG.beta1, CONFIG.beta2),
        eps=CONFIG.epsilon,
        fused=True,
    )
    take_steps(model, optimizer, 3)
    take_steps(reference, torch_optimizer, 3)
    for ours, theirs in zip(model.parameters(), reference.parameters(), strict=True):
        assert torch.equal(ours, theirs)
    state, torch_state = optimizer.state_dict(), torch_optimizer.state_dict()
    assert state["param_groups"] == torch_state["param_groups"]
    for index, expected in torch_state["state"].items():
        assert state["state"][index].keys() == expected.keys()
        assert all(torch.equal(state["state"][index][name], expected[name]) for name in expected)


def test_weight_decay_applies_to_matrices_only() -> None:
    model = make_model()
    before = copy.deepcopy(dict(model.named_parameters()))
    optimizer = build_optimizer(CONFIG, model)
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    for name, parameter in model.named_parameters():
        factor = 1 - CONFIG.learning_rate * CONFIG.weight_decay if parameter.dim() >= 2 else 1.0
        torch.testing.assert_close(parameter, before[name] * factor)


def test_gradients_are_enabled_again_after_a_step() -> None:
    model = make_model()
    optimizer = build_optimizer(CONFIG, model)
    take_steps(model, optimizer, 1)
    assert torch.is_grad_enabled()
    assert all(parameter.requires_grad for parameter in model.parameters())


def test_a_restored_optimiser_continues_bit_by_bit() -> None:
    model = make_model()
    optimizer = build_optimizer(CONFIG, model)
    take_steps(model, optimizer, 2)
    resumed = copy.deepcopy(model)
    resumed_optimizer = build_optimizer(CONFIG, resumed)
    tensors = {name: tensor.clone() for name, tensor in optimizer_tensors(optimizer, model).items()}
    restore_optimizer(resumed_optimizer, resumed, tensors)
    take_steps(model, optimizer, 2)
    take_steps(resumed, resumed_optimizer, 2)
    for ours, theirs in zip(model.parameters(), resumed.parameters(), strict=True):
        assert torch.equal(ours, theirs)
