"""seqloom compare, on small runs."""

import json
from pathlib import Path

import pytest
from cli_recipes import train_recipe

from seqloom.inference.run import load
from support.cli_runner import run_cli

pytestmark = pytest.mark.slow


def test_json_contains_every_sentence_sorted_by_difference(reverse: Path, worse: Path) -> None:
    result = run_cli("compare", worse, reverse, "--json")
    assert result.exit_code == 0
    content = json.loads(result.stdout)
    assert content["sentences"] == len(content["pairs"]) == 20
    gains = [abs(pair["chrf"][1] - pair["chrf"][0]) for pair in content["pairs"]]
    assert gains == sorted(gains, reverse=True)
    assert sorted(pair["number"] for pair in content["pairs"]) == list(range(1, 21))
    texts = [[output["text"] for output in pair["outputs"]] for pair in content["pairs"]]
    assert content["differing"] == sum(first != second for first, second in texts)
    sources = [pair["source"] for pair in content["pairs"]]
    expected = [prediction.text for prediction in load(reverse).translate(sources)]
    assert [second for _, second in texts] == expected


def test_run_has_no_differences_from_itself(reverse: Path) -> None:
    result = run_cli("compare", reverse, reverse, "--text", "a b", "--text", "c d a")
    assert result.exit_code == 0
    assert "0 of 2 outputs differ" in result.stdout


def test_page_shows_both_runs_and_marks_the_one_without_attention(
    reverse: Path, worse: Path, tmp_path: Path
) -> None:
    page = tmp_path / "both.html"
    result = run_cli("compare", reverse, worse, "--out", page, "--shown", "3")
    assert result.exit_code == 0
    text = page.read_text(encoding="utf-8")
    data = json.loads(text.partition('id="data">')[2].partition("</script>")[0])
    attention = [[output["attention"] for output in pair["outputs"]] for pair in data["pairs"]]
    assert [(bool(first), second) for first, second in attention] == [(True, None)] * 3


def test_page_escapes_special_characters(reverse: Path, tmp_path: Path) -> None:
    lines = tmp_path / "special.txt"
    lines.write_text("a <b> & 🙂\n\nשלום a b\n", encoding="utf-8")
    page = tmp_path / "both.html"
    result = run_cli("compare", reverse, reverse, lines, "--out", page)
    assert result.exit_code == 0
    assert "a &lt;b&gt; &amp; 🙂" in page.read_text(encoding="utf-8")
    assert "0 of 3 outputs differ" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "exit_code", "message"),
    [
        ("reverse sentences", 78, "translation"),
        ("sentences sentences", 78, "is a language model"),
        ("reverse reverse a b c", 66, "no such file"),
        ("reverse reverse alone.txt alone.txt alone.txt", 78, "Give one file, or two"),
        ("reverse reverse empty.txt", 65, "no sentences"),
        ("reverse reverse alone.txt --text a", 2, "Give either files or --text"),
        ("reverse reverse --out a.png", 2, "must end in .html or .json"),
        ("reverse reverse --split moon", 2, "'moon' is not one of"),
        ("reverse nowhere", 66, "no such run folder"),
    ],
)
def test_invalid_input_is_rejected(
    recipes: Path, reverse: Path, arguments: str, exit_code: int, message: str, tmp_path: Path
) -> None:
    first, second, *rest = arguments.split()
    if second == "sentences" and not (recipes / "runs" / "sentences").exists():
        train_recipe(recipes, "sentences")
    (tmp_path / "alone.txt").write_text("a b\nc d\n", encoding="utf-8")
    (tmp_path / "empty.txt").write_text("", encoding="utf-8")
    files = [tmp_path / part if part.endswith(".txt") else part for part in rest]
    runs = (recipes / "runs" / first, recipes / "runs" / second)
    result = run_cli("compare", *runs, *files)
    assert result.exit_code == exit_code
    assert message in result.error
