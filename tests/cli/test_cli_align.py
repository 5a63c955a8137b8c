"""seqloom align."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from seqloom.config.loading.loader import load_recipe
from seqloom.inference.run import load
from seqloom.metrics.alignment import format_pharaoh, symmetrise
from seqloom.training.loop import train
from support.cli_runner import CliResult, run_cli

pytestmark = pytest.mark.slow

SOURCES = ["ab cd ef", "", "cd ab", "ef"]
TARGETS = ["EF CD AB", "AB", "", "EF"]
GOLD = "0-2 1-1 2p0\n\n\n0-0\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of opposite directions, trained for three steps, and four pairs."""
    folder = tmp_path_factory.mktemp("align")
    words = ["ab", "cd", "ef"]
    pairs = [
        f"{first} {second}\t{second.upper()} {first.upper()}" for first in words for second in words
    ]
    (folder / "pairs.tsv").write_text("\n".join(pairs * 6), encoding="utf-8")
    for name, columns in (("there", (0, 1)), ("back", (1, 0))):
        named = dict(zip(("source_column", "target_column"), columns, strict=True))
        corpus = {"kind": "tsv", "path": "pairs.tsv", **named}
        layers: dict[str, Any] = {"kind": "transformer", "width": 8, "layers": 2}
        layers |= {"feedforward": 8, "attention": {"heads": 2}}
        tables: dict[str, Any] = {
            "data": {"folder": str(folder), "train": corpus, "dev": corpus},
            "text": {"tokenizer": {"kind": "characters"}},
            "model": {"encoder": layers, "decoder": layers},
            "training": {"steps": 3, "batch_tokens": 256, "evaluate_every": 3},
        }
        train(load_recipe(tables, ["training.schedule={kind='constant'}"]).config, folder / name)
    tables["model"]["decoder"] = {"kind": "recurrent", "width": 8, "attention": {"kind": "none"}}
    train(
        load_recipe(tables, ["training.schedule={kind='constant'}"]).config, folder / "no-attention"
    )
    (folder / "source").write_text("\n".join(SOURCES) + "\n", encoding="utf-8")
    (folder / "target").write_text("\n".join(TARGETS) + "\n", encoding="utf-8")
    (folder / "gold").write_text(GOLD, encoding="utf-8")
    return folder


def align(folder: Path, *options: object, run: str = "there") -> CliResult:
    return run_cli("align", folder / run, folder / "source", folder / "target", *options)


def alignment_error(folder: Path, *options: object) -> CliResult:
    files = (folder / "source", folder / "target")
    return run_cli("alignment-error", folder / "there", *files, *options)


def alignment_heads(folder: Path, *options: object, run: str = "there") -> CliResult:
    files = (folder / "source", folder / "target", "--gold", folder / "gold")
    return run_cli("alignment-heads", folder / run, *files, *options)


def test_each_pair_gives_a_line_and_each_target_word_a_link(folder: Path) -> None:
    result = align(folder)
    assert result.exit_code == 0, result.stderr
    predictions = load(folder / "there").score(SOURCES, TARGETS)
    assert result.stdout.split("\n") == [
        *(format_pharaoh(each.alignment) for each in predictions),
        "",
    ]
    lines = result.stdout.splitlines()
    assert [len(line.split()) for line in lines] == [3, 0, 0, 1]
    assert [link.split("-")[1] for link in lines[0].split()] == ["0", "1", "2"]


def test_pairs_can_be_in_one_file(folder: Path) -> None:
    pairs = [f"{source}\t{target}\n" for source, target in zip(SOURCES, TARGETS, strict=True)]
    packed = folder / "together.tsv.gz"
    packed.write_bytes(gzip.compress("".join(pairs).encode()))
    assert run_cli("align", folder / "there", packed).stdout == align(folder).stdout
    result = run_cli("align", folder / "there", folder / "source")
    assert result.exit_code == 65
    assert "source:1: no tab. Separate source and target by a tab" in result.stderr


def test_hard_links_are_the_soft_links_with_the_largest_weight(folder: Path) -> None:
    soft = align(folder, "--soft").stdout.splitlines()
    for line, hard in zip(soft, align(folder).stdout.splitlines(), strict=True):
        weights = {
            link: float(weight) for link, weight in (entry.split(":") for entry in line.split())
        }
        for link in hard.split():
            target = link.split("-")[1]
            same_target = [weights[each] for each in weights if each.endswith(f"-{target}")]
            assert weights[link] == max(same_target)
            assert sum(same_target) <= 1.02
    (record, *_) = (json.loads(line) for line in align(folder, "--json").stdout.splitlines())
    assert format_pharaoh(record["links"]) == align(folder).stdout.splitlines()[0]
    assert len(record["weights"]) == len(record["weights"][0]) == 3


def test_gold_alignments_are_scored(folder: Path) -> None:
    result = alignment_error(folder, "--gold", folder / "gold", "--json")
    scores = json.loads(result.stdout)
    lines = align(folder).stdout.splitlines()
    sure = {(0, "0-2"), (0, "1-1"), (3, "0-0")}
    found = {(number, link) for number, line in enumerate(lines) for link in line.split()}
    right = found & (sure | {(0, "2-0")})
    rate = 1 - (len(found & sure) + len(right)) / (len(found) + len(sure))
    assert scores["error_rate"] == pytest.approx(rate)
    assert (scores["sentences"], scores["links"]) == (4, 4)
    shown = alignment_error(folder, "--gold", folder / "gold").stdout
    assert f"{rate:.3f}" in shown
    assert "precision" in shown


def test_best_heads_are_stored_and_used_by_every_command(folder: Path) -> None:
    result = alignment_heads(folder)
    assert result.exit_code == 0, result.stderr
    assert "error rate" in result.stdout
    assert "heads.json: word alignments now use layer" in result.stderr
    best = load(folder / "there").predictor.head_choice
    assert best.heads
    scores = json.loads(alignment_error(folder, "--gold", folder / "gold", "--json").stdout)
    kept = json.loads((folder / "there" / "alignment" / "heads.json").read_bytes())
    assert scores["error_rate"] == pytest.approx(kept["found"]["error_rate"])
    shown = run_cli("inspect", folder / "there", "ab cd", "--head", "best", "--json")
    record = json.loads(shown.stdout)["outputs"][0]
    assert record["view"] == f"mean of the heads that align best: {best}"
    translated = run_cli("translate", folder / "there", "--alignments", stdin=b"ab cd\n")
    (output,) = load(folder / "there").translate(["ab cd"])
    assert translated.stdout == f"{output.text} ||| {format_pharaoh(output.alignment)}\n"
    listed = alignment_heads(folder, "--json").stdout
    rates = [candidate["error_rate"] for candidate in json.loads(listed)["candidates"]]
    assert rates == sorted(rates)


def test_reverse_run_symmetrises_the_links(folder: Path) -> None:
    joined = [
        align(folder, "--reverse", folder / "back", "--symmetrise", how).stdout.splitlines()
        for how in ("intersection", "grow-diag", "union")
    ]
    for few, more, most in zip(*joined, strict=True):
        assert set(few.split()) <= set(more.split()) <= set(most.split())
    assert joined[2][0]
    assert symmetrise([(0, 0)], [(0, 1)], "union") == [(0, 0), (0, 1)]
    wrong = align(folder, "--reverse", folder / "back", "--symmetrise", "both")
    assert "'both'" in wrong.stderr


def test_invalid_gold_files_and_options_are_rejected(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    short, beyond, invalid = tmp_path / "short", tmp_path / "beyond", tmp_path / "invalid"
    short.write_text("0-0\n", encoding="utf-8")
    beyond.write_text("1-1 2-2 3-3\n\n\n1-1\n", encoding="utf-8")
    invalid.write_text("0:0\n\n1\n\n", encoding="utf-8")
    cases = [
        (short, "has 1 lines for 4 pairs. Line n must be the alignment of pair n"),
        (beyond, "line 1: "),
        (invalid, f"{invalid}:1: "),
    ]
    for path, message in cases:
        result = alignment_error(folder, "--gold", path)
        assert result.exit_code == 65
        assert message in result.stderr
    assert f"{invalid}:3: " in alignment_error(folder, "--gold", invalid).stderr
    missing = alignment_error(folder, "--gold", tmp_path / "none")
    assert "no such file" in missing.stderr
    result = align(folder, "--soft", "--reverse", folder / "back")
    assert result.exit_code == 2
    assert "--reverse cannot be combined with --soft" in result.stderr


def test_model_without_attention_is_rejected(folder: Path) -> None:
    for command in (align, alignment_heads):
        result = command(folder, run="no-attention")
        assert (result.exit_code, result.stdout) == (78, "")
        assert "model.decoder.attention.kind = 'attention'" in result.stderr
