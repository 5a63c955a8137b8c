"""`seqloom lookup`: attention as a hash table that can be differentiated."""

import json
from pathlib import Path

import pytest

from seqloom.analysis.lookup import METHODS, LookupTable, look_up
from support.cli_runner import run_cli


def test_all_three_lookups_are_printed_side_by_side() -> None:
    result = run_cli("lookup")
    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[0] == "q = (2, 2.5)"
    assert ["r", "0", "20", "21.63"] in [line.split() for line in lines]
    bars = [line for line in lines if "█" in line]
    assert [line.split()[0] for line in bars] == ["k₂", "k₃"]
    gradient = next(line for line in lines if line.startswith("  q "))
    assert gradient.split() == ["q", *["(0,", "0)"] * 2, "(0.254,", "10.6)"]
    assert all(len(line) <= 80 for line in lines)


def test_documentation_shows_the_output() -> None:
    page = Path(__file__).parents[2] / "docs" / "analysis" / "attention.md"
    blocks = page.read_text(encoding="utf-8").split("```text\n")[1:]
    example = next(block for block in blocks if "weights α" in block).partition("```")[0]
    assert example in run_cli("lookup").stdout


def test_json_has_the_numbers_of_python() -> None:
    options = ("--query", "1,3", "--score", "rbf", "--gamma", 0.5, "--temperature", 2)
    record = json.loads(run_cli("lookup", *options, "--json").stdout)
    table = LookupTable(query=[1, 3], gamma=0.5, temperature=2)
    assert record["lookups"] == [look_up(table, method).to_json() for method in METHODS]


def test_own_keys_and_values_are_looked_up() -> None:
    keys = ("--keys", "1,0,0;0,1,0;0,0,1", "--values", "1,0 0,1 5,5", "--query", "0,0,1")
    record = json.loads(run_cli("lookup", *keys, "--score", "dot", "--json").stdout)
    exact, nearest, soft = record["lookups"]
    assert exact["result"] == nearest["result"] == [5, 5]
    assert soft["scores"] == [0, 0, 1]
    printed = run_cli("lookup", *keys, "--select", "soft").stdout
    assert "gradient of r₂" in printed
    assert "nearest" not in printed


def test_keys_alone_get_default_values_and_a_query_between_them() -> None:
    record = json.loads(run_cli("lookup", "--keys", "0,0 2,4", "--json").stdout)
    assert (record["values"], record["query"]) == ([[10], [20]], [1, 2])


@pytest.mark.parametrize(("name", "start"), [("x.svg", b"<svg"), ("x.png", b"\x89PNG")])
@pytest.mark.parametrize("keys", ["1,2 3,4", "1,2,3 4,5,6"])
def test_figures_are_written(tmp_path: Path, name: str, start: bytes, keys: str) -> None:
    result = run_cli("lookup", "--keys", keys, "--out", tmp_path / name)
    assert result.exit_code == 0, result.stderr
    assert (tmp_path / name).read_bytes().startswith(start)


def test_numbers_are_written_as_json(tmp_path: Path) -> None:
    printed = run_cli("lookup", "--out", tmp_path / "x.json", "--json").stdout
    assert json.loads((tmp_path / "x.json").read_bytes()) == json.loads(printed)


@pytest.mark.parametrize(
    ("options", "exit_code", "messages"),
    [
        (["--select", "fuzzy"], 2, ["'fuzzy' is not one of"]),
        (["--score", "bilinear"], 2, ["'bilinear' is not one of"]),
        (["--gamma", "-1"], 2, ["γ is -1"]),
        (["--gamma", "1", "--score", "dot"], 2, ["It needs --score rbf"]),
        (["--temperature", "0"], 2, ["the temperature is 0"]),
        (["--temperature", "cold"], 2, ["unable to parse string as a number"]),
        (["--keys", ""], 2, ["keys: there is a row without numbers"]),
        (["--query", "1,2,3"], 2, ["the query has 3 numbers and a key has 2"]),
        (["--query", "1,2 3,4"], 2, ["--query '1,2 3,4' has 2 rows"]),
        (["--out", "x.gif"], 78, ["unsupported image format"]),
        (
            ["--keys", "1,a 2", "--values", "b 1 2", "--temperature", "-3"],
            2,
            [
                "--keys: 'a' is not a number",
                "--values: 'b' is not a number",
                "keys: the rows have different lengths: 2, 1",
                "there are 2 keys and 3 values",
                "the temperature is -3",
            ],
        ),
    ],
)
def test_all_problems_with_the_options_are_reported_at_once(
    options: list[str], exit_code: int, messages: list[str]
) -> None:
    result = run_cli("lookup", *options)
    assert (result.exit_code, result.stdout) == (exit_code, "")
    for message in messages:
        assert message in result.error
