"""The tables of the comparisons with other toolkits."""

from pathlib import Path
from typing import Any

import pytest
from torch import nn

from bench import __main__ as command_line
from bench.comparison import decoding, training
from bench.comparison.prepare import data_section
from bench.comparison.workload import (
    ModelKind,
    default_workload,
    matmul_flops,
    weights_per_token,
)
from bench.gpu.training import progress_speed
from bench.peers.seqloom_worker import config_for
from bench.store import STORE
from seqloom.core.signature import Signature, Tokens
from seqloom.models.build import build_model

FOLDER = Path("unused")


def window(tokens: int, seconds: float) -> dict[str, Any]:
    return {
        "seconds": seconds,
        "source_tokens": tokens,
        "source_positions": 2 * tokens,
        "target_tokens": tokens,
        "target_positions": tokens,
        "flops": 10.0 * tokens,
        "peak_memory_mb": 1500.0,
    }


def measured(name: str, *windows: dict[str, Any]) -> dict[str, Any]:
    about = {"version": "1", "parameters": 1, "loop": "", "batching": "", "dropout": ""}
    return {"name": name, "about": about, "rounds": list(windows)}


GROUPS: list[dict[str, Any]] = [
    {
        "seqloom": measured("seqloom", window(300, 1), window(600, 4)),
        "ceiling": measured("products", window(400, 1), window(800, 4)),
        "slow": measured("slow system", window(100, 1), window(200, 4)),
        "missing": {"name": "missing system", "reason": "does not install"},
    },
    {
        "seqloom": measured("seqloom", window(30, 1), window(60, 4)),
        "ceiling": measured("products", window(40, 1), window(80, 4)),
        "other": measured("other system", window(20, 1), window(30, 4)),
    },
]


def test_ratios_are_taken_within_a_group() -> None:
    rows = training.speed_table(GROUPS).splitlines()
    (slow,) = [row for row in rows if "slow system" in row]
    assert "**3.00** (3.00–3.00)" in slow
    (other,) = [row for row in rows if "other system" in row]
    assert "**1.75** (1.50–2.00)" in other


def test_padding_and_the_share_of_the_ceiling_are_percentages() -> None:
    rows = training.speed_table(GROUPS).splitlines()
    (seqloom,) = [row for row in rows if "| seqloom 1 |" in row]
    assert "50.0 / 0.0 %" in seqloom
    assert "75 %" in seqloom


def test_systems_without_a_measurement_have_a_row_with_the_reason() -> None:
    assert "| missing system | not measured: does not install |" in training.speed_table(GROUPS)
    results = {
        "seqloom": {"name": "seqloom", "about": {"version": "1"}, "rounds": [decoded(64)]},
        "peer": {"name": "a peer", "about": {"version": "2"}, "rounds": [decoded(32)]},
        "missing": {"name": "missing system", "reason": "no such model"},
    }
    table = decoding.speed_table(results)
    assert "| missing system | not measured: no such model |" in table
    assert "32.0/s (2.00, 2.00–2.00)" in table
    assert "31.2 ms (2.00" in table


def decoded(sentences: int) -> dict[str, Any]:
    result = {"sentences": sentences, "seconds": 1.0, "peak_memory_mb": 100.0}
    return dict.fromkeys(decoding.SETTINGS, result)


@pytest.mark.parametrize("kind", ["transformer", "recurrent", "recurrent-feeding"])
def test_the_counted_weights_are_those_of_the_model(kind: ModelKind) -> None:
    workload = default_workload(kind, FOLDER, 500)
    config = config_for(workload, data_section("tatoeba"))
    model = build_model(config.model, Signature(Tokens(500), Tokens(500), shared=True))
    total = sum(weight.numel() for weight in model.parameters() if weight.dim() >= 2)
    embeddings = 500 * workload.width * (1 if kind == "transformer" else 2)
    # Only the tied embedding of the Transformer is also multiplied, as output layer.
    expected = total if kind == "transformer" else total - embeddings
    initial_state = sum(  # multiplies once per sentence, not per token
        module.weight.numel()
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear) and "initial_state" in name
    )
    assert sum(weights_per_token(workload)) == expected - initial_state


def test_flops_are_proportional_to_the_number_of_real_tokens() -> None:
    workload = default_workload("transformer", FOLDER, 500)
    assert matmul_flops(workload, 20, 40) == 2 * matmul_flops(workload, 10, 20)


@pytest.mark.parametrize("option", [["--model", "recurrent"], ["--peers", "joey"], ["--peers"]])
def test_the_store_has_complete_tables_only(option: list[str]) -> None:
    with pytest.raises(SystemExit, match="leave --model and --peers out"):
        command_line.main(["training-cpu", f"--out={STORE}", *option])


def test_mean_speed_of_a_training_command() -> None:
    """The first and the last steps are not counted. Events have equal numbers of steps."""
    speeds = {20: 10.0, 100: 20.0, 120: 100.0, 140: 50.0, 800: 900.0}
    events = [
        {"event": "step", "step": step, "tokens_per_second": speed}
        for step, speed in speeds.items()
    ]
    result = progress_speed([{"event": "start", "step": 0}, *events])
    assert result["mean"] == pytest.approx(2 / (1 / 100 + 1 / 50))
    assert (result["lowest"], result["highest"]) == (50.0, 100.0)
