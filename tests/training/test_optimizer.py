"""The optimiser: its parameter groups, its updates, and the modules that it imports."""

import copy
import subprocess
import sys

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
    ours, theirs = optimizer.state_dict(), torch_optimizer.state_dict()
    assert ours["param_groups"] == theirs["param_groups"]
    for index, state in theirs["state"].items():
        assert ours["state"][index].keys() == state.keys()
        assert all(torch.equal(ours["state"][index][name], state[name]) for name in state)


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


PROGRAM = """
import sys, torch
from seqloom.config.schema.training import AdamWConfig
from seqloom.training.optimizer import build_optimizer
model = torch.nn.Linear(2, 2)
optimizer = build_optimizer(AdamWConfig(learning_rate=0.1), model)
optimizer.zero_grad()
model(torch.ones(1, 2)).sum().backward()
optimizer.step()
assert "torch._dynamo" not in sys.modules
"""


def test_a_step_does_not_import_the_compiler() -> None:
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
