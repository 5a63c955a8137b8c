"""`seqloom train` as one of several ranks prints each error once."""

import time
from pathlib import Path

import pytest
from torch.distributed.run import get_args_parser
from typer.main import get_command

from seqloom.cli.main import app
from support.cli_runner import run_cli


@pytest.mark.parametrize(("rank", "printed"), [(0, True), (1, False)])
def test_an_invalid_recipe_is_reported_by_the_first_rank_of_a_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rank: int, printed: bool
) -> None:
    monkeypatch.setenv("LOCAL_RANK", str(rank))
    monkeypatch.setattr("seqloom.cli.commands.train.SECONDS_TO_PRINT", 0.4)
    start = time.monotonic()
    result = run_cli("train", tmp_path / "missing.toml")
    waited = time.monotonic() - start >= 0.4
    assert waited or printed, "torchrun would end the rank that prints"
    assert result.exit_code != 0
    assert ("missing.toml" in result.stderr) == printed


def test_the_options_of_train_can_be_typed_after_torchrun() -> None:
    """docs/scale.md: only --run needs the separator `--`, as it abbreviates an option of torchrun."""
    parse = get_args_parser().parse_args
    train = get_command(app).commands["train"]  # type: ignore[attr-defined]
    options = [name for parameter in train.params for name in parameter.opts if name[:2] == "--"]
    assert "--resume" in options
    others = [name for name in options if name != "--run"]
    typed = parse(["--nproc-per-node", "2", "-m", "seqloom", "train", "R", *others])
    assert typed.training_script_args == ["train", "R", *others]
    separated = parse(["-m", "--", "seqloom", "train", "R", "--run", "X"])
    assert (separated.module, separated.training_script) == (True, "seqloom")
    assert separated.training_script_args == ["train", "R", "--run", "X"]
