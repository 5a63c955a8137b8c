"""The page is what the files give; nobody is left out of a table."""

import json
from pathlib import Path
from typing import Any

import pytest
from torch import nn

from bench import decoding_table, page, training_table
from bench.__main__ import parse
from bench.peers.seqloom.recipe import config_for
from bench.prepare import data_section
from bench.workload import Kind, matmul_flops, sized, weights_met
from seqloom.core.signature import Signature, Tokens
from seqloom.models.build import build_model

NOWHERE = Path("nowhere")


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


def contender(name: str, *windows: dict[str, Any]) -> dict[str, Any]:
    about = {"version": "1", "parameters": 1, "loop": "", "batching": "", "dropout": ""}
    return {"name": name, "about": about, "rounds": list(windows)}


GROUPS: list[dict[str, Any]] = [
    {
        "seqloom": contender("seqloom", window(300, 1), window(600, 4)),
        "ceiling": contender("products", window(400, 1), window(800, 4)),
        "slow": contender("a slow one", window(100, 1), window(200, 4)),
        "gone": {"name": "a gone one", "reason": "does not install"},
    },
    {
        "seqloom": contender("seqloom", window(30, 1), window(60, 4)),
        "ceiling": contender("products", window(40, 1), window(80, 4)),
        "other": contender("another", window(20, 1), window(30, 4)),
    },
]


def test_a_ratio_is_taken_within_the_group_that_was_measured_together() -> None:
    rows = training_table.table(GROUPS).splitlines()
    (slow,) = [row for row in rows if "a slow one" in row]
    assert "**3.00** (3.00–3.00)" in slow
    (other,) = [row for row in rows if "another" in row]
    assert "**1.75** (1.50–2.00)" in other


def test_padding_and_the_share_of_the_ceiling_are_shares() -> None:
    (ours,) = [row for row in training_table.table(GROUPS).splitlines() if "| seqloom 1 |" in row]
    assert "50.0 / 0.0 %" in ours
    assert "75 %" in ours


def test_who_was_not_measured_stands_in_the_table_with_the_reason() -> None:
    assert "| a gone one | not measured: does not install |" in training_table.table(GROUPS)
    results = {
        "seqloom": {"name": "seqloom", "about": {"version": "1"}, "rounds": [decoded(64)]},
        "peer": {"name": "a peer", "about": {"version": "2"}, "rounds": [decoded(32)]},
        "gone": {"name": "a gone one", "reason": "no such model"},
    }
    table = decoding_table.table(results)
    assert "| a gone one | not measured: no such model |" in table
    assert "32.0/s (2.00, 2.00–2.00)" in table
    assert "31.2 ms (2.00" in table


def decoded(sentences: int) -> dict[str, Any]:
    one = {"sentences": sentences, "seconds": 1.0, "peak_memory_mb": 100.0}
    return dict.fromkeys(decoding_table.COLUMNS, one)


@pytest.mark.parametrize("kind", ["transformer", "recurrent", "recurrent-feeding"])
def test_the_weights_that_are_counted_are_those_of_the_model(kind: Kind) -> None:
    workload = sized(kind, NOWHERE, 500)
    config = config_for(workload, data_section("tatoeba"))
    model = build_model(config.model, Signature(Tokens(500), Tokens(500), shared=True))
    matrices = [one for one in model.parameters() if one.dim() >= 2]
    total = sum(one.numel() for one in matrices)
    embeddings = 500 * workload.width * (1 if kind == "transformer" else 2)
    # A tied embedding is looked up and multiplied; others are looked up alone.
    expected = total if kind == "transformer" else total - embeddings
    handover = sum(
        one.weight.numel()
        for name, one in model.named_modules()
        if isinstance(one, nn.Linear) and "initial_state" in name
    )
    assert sum(weights_met(workload)) == expected - handover  # met once a sentence, not a token


def test_work_on_padding_is_not_counted() -> None:
    workload = sized("transformer", NOWHERE, 500)
    assert matmul_flops(workload, 20, 40) == 2 * matmul_flops(workload, 10, 20)


def test_the_page_is_what_the_files_give() -> None:
    if not page.RESULTS.exists():
        assert not page.PAGE.exists()
        return
    assert page.PAGE.read_text(encoding="utf-8") == page.page(page.RESULTS)
    assert page.RESULTS.joinpath("training-cpu.json").exists() == page.PICTURE.exists()


def test_a_section_stands_on_the_page_when_its_file_is_there(tmp_path: Path) -> None:
    assert "##" not in page.page(tmp_path)
    about = ["machine", "python", "torch", "threads", "seed", "date", "command"]
    (tmp_path / "training-cpu.json").write_text(
        json.dumps(
            {
                "about": dict.fromkeys(about, "x"),
                "data": "Tatoeba",
                "rounds": 2,
                "models": {"transformer": GROUPS},
            }
        )
    )
    written = page.page(tmp_path)
    assert "## Training on a CPU" in written
    assert "a slow one" in written
    assert "## Decoding" not in written


@pytest.mark.parametrize("part", [["--model", "recurrent"], ["--peers", "joey"], ["--peers"]])
def test_a_part_is_never_written_over_the_whole(
    part: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert parse(["training", *part]).write is False
    with pytest.raises(SystemExit):
        parse(["training", "--write", *part])
    assert "leave --model and --peers out" in capsys.readouterr().err
