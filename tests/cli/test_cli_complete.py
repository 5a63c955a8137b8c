"""seqloom complete, on a small language model."""

from pathlib import Path

import pytest

from support.cli_runner import run_cli

pytestmark = pytest.mark.slow


def test_seed_reproduces_the_samples(sentences: Path) -> None:
    options = ("complete", sentences, "I see", "", "--samples", 3, "--seed", 5)
    first, second = run_cli(*options), run_cli(*options)
    assert first.stdout == second.stdout
    lines = first.stdout.splitlines()
    assert len(lines) == 6
    assert all(line.startswith("I see") for line in lines[:3])
    unseeded = run_cli("complete", sentences, "--temperature", 0.5, "--top-k", 3, "--top-p", 0.9)
    assert "repeat these samples with --seed" in unseeded.stderr
    seed = unseeded.stderr.split()[-1]
    again = ("--temperature", 0.5, "--top-k", 3, "--top-p", 0.9, "--seed", seed)
    assert run_cli("complete", sentences, *again).stdout == unseeded.stdout


def test_invalid_sampling_options_are_rejected(sentences: Path) -> None:
    result = run_cli("complete", sentences, "--temperature", -1)
    assert result.exit_code == 2
    assert "--temperature" in result.stderr
    result = run_cli("complete", sentences, "--top-p", 0)
    assert result.exit_code == 78
    assert "top_p: Input should be greater than 0" in result.stderr
    assert "--seed" not in result.stderr


def test_temperature_0_selects_the_likeliest_token(sentences: Path) -> None:
    greedy = run_cli("complete", sentences, "I see", "--temperature", 0)
    likeliest = run_cli("complete", sentences, "I see", "--top-k", 1)
    assert greedy.stdout == likeliest.stdout
    assert "--seed" not in greedy.stderr


def test_unknown_parts_of_a_prompt_give_a_warning_and_stay_in_the_output(sentences: Path) -> None:
    result = run_cli("complete", sentences, "I % see ß%", "I see", "--seed", 1)
    assert result.exit_code == 0, result.stderr
    first, second = result.stdout.splitlines()
    assert first.startswith("I % see ß%")
    assert second.startswith("I see")
    assert result.stderr.count("warning:") == 1
    assert (
        "prompt 'I % see ß%': not in the vocabulary of the model: '%', 'ß'. Replaced"
        in result.stderr
    )


def test_seed_is_printed_only_for_sampling(sentences: Path, reverse: Path) -> None:
    assert run_cli("complete", sentences, "--set", "decoding.kind=greedy").stderr == ""
    assert "--seed" not in run_cli("complete", reverse).stderr


def test_prompt_that_is_not_utf8_is_rejected(sentences: Path) -> None:
    result = run_cli("complete", sentences, "\udcff")
    assert result.exit_code == 65
    assert "not valid UTF-8" in result.stderr


def test_wrong_command_for_a_run_names_the_right_one(reverse: Path, sentences: Path) -> None:
    assert "`translate`" in run_cli("complete", reverse).stderr
    assert "`complete`" in run_cli("translate", sentences, stdin=b"a\n").stderr
