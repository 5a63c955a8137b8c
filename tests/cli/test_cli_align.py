"""seqloom align: which word comes from which."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from calling import Answer, call

from seqloom.config.loading.loader import load_recipe
from seqloom.metrics.alignment import format_pharaoh
from seqloom.metrics.symmetrise import symmetrise
from seqloom.runs.run import load
from seqloom.training.loop import train

SOURCES = ["ab cd ef", "", "cd ab", "ef"]
TARGETS = ["EF CD AB", "AB", "", "EF"]
GOLD = "0-2 1-1 2p0\n\n\n0-0\n"


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs that go opposite ways, hardly trained, and four pairs."""
    folder = tmp_path_factory.mktemp("align")
    words = ["ab", "cd", "ef"]
    pairs = [f"{one} {other}\t{other.upper()} {one.upper()}" for one in words for other in words]
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
    train(load_recipe(tables, ["training.schedule={kind='constant'}"]).config, folder / "blind")
    (folder / "source").write_text("\n".join(SOURCES) + "\n", encoding="utf-8")
    (folder / "target").write_text("\n".join(TARGETS) + "\n", encoding="utf-8")
    (folder / "gold").write_text(GOLD, encoding="utf-8")
    return folder


def aligned(workshop: Path, *options: object, run: str = "there") -> Answer:
    return call("align", workshop / run, workshop / "source", workshop / "target", *options)


def test_a_line_for_each_pair_and_a_link_for_each_target_word(workshop: Path) -> None:
    answer = aligned(workshop)
    assert answer.code == 0, answer.err
    found = load(workshop / "there").score(SOURCES, TARGETS)
    assert answer.out.split("\n") == [*(format_pharaoh(one.alignment) for one in found), ""]
    lines = answer.out.splitlines()
    assert [len(line.split()) for line in lines] == [3, 0, 0, 1]
    assert [link.split("-")[1] for link in lines[0].split()] == ["0", "1", "2"]


def test_pairs_may_stand_in_one_file(workshop: Path) -> None:
    pairs = [f"{one}\t{other}\n" for one, other in zip(SOURCES, TARGETS, strict=True)]
    packed = workshop / "together.tsv.gz"
    packed.write_bytes(gzip.compress("".join(pairs).encode()))
    assert call("align", workshop / "there", packed).out == aligned(workshop).out
    answer = call("align", workshop / "there", workshop / "source")
    assert answer.code == 65
    assert "source:1: there is no tab; separate source and target by one" in answer.err


def test_soft_links_have_weights_of_which_the_hard_are_the_largest(workshop: Path) -> None:
    soft = aligned(workshop, "--soft").out.splitlines()
    for line, hard in zip(soft, aligned(workshop).out.splitlines(), strict=True):
        weights = {
            link: float(weight) for link, weight in (entry.split(":") for entry in line.split())
        }
        for link in hard.split():
            target = link.split("-")[1]
            rivals = {one: value for one, value in weights.items() if one.endswith(f"-{target}")}
            assert weights[link] == max(rivals.values())
            assert sum(rivals.values()) <= 1.02
    (record, *_) = (json.loads(line) for line in aligned(workshop, "--json").out.splitlines())
    assert format_pharaoh(record["links"]) == aligned(workshop).out.splitlines()[0]
    assert len(record["weights"]) == len(record["weights"][0]) == 3


def test_gold_alignments_give_scores(workshop: Path) -> None:
    answer = aligned(workshop, "--gold", workshop / "gold", "--json")
    scores = json.loads(answer.out)
    lines = aligned(workshop).out.splitlines()
    sure = {(0, "0-2"), (0, "1-1"), (3, "0-0")}
    found = {(number, link) for number, line in enumerate(lines) for link in line.split()}
    right = found & (sure | {(0, "2-0")})
    rate = 1 - (len(found & sure) + len(right)) / (len(found) + len(sure))
    assert scores["error_rate"] == pytest.approx(rate)
    assert (scores["sentences"], scores["links"]) == (4, 4)
    shown = aligned(workshop, "--gold", workshop / "gold").out
    assert f"{rate:.3f}" in shown
    assert "precision" in shown


def test_the_best_heads_are_kept_and_used_by_every_command(workshop: Path) -> None:
    answer = aligned(workshop, "--gold", workshop / "gold", "--find-heads")
    assert answer.code == 0, answer.err
    assert "error rate" in answer.out
    assert "heads.json: from now on words are aligned by layer" in answer.err
    best = load(workshop / "there").predictor.head_choice
    assert best.heads
    scores = json.loads(aligned(workshop, "--gold", workshop / "gold", "--json").out)
    kept = json.loads((workshop / "there" / "alignment" / "heads.json").read_bytes())
    assert scores["error_rate"] == pytest.approx(kept["found"]["error_rate"])
    shown = call("inspect", workshop / "there", "ab cd", "--head", "best", "--json")
    record = json.loads(shown.out)["outputs"][0]
    assert record["view"] == f"mean of the heads that align best: {best}"
    translated = call("translate", workshop / "there", "--alignments", given=b"ab cd\n")
    (output,) = load(workshop / "there").translate(["ab cd"])
    assert translated.out == f"{output.text} ||| {format_pharaoh(output.alignment)}\n"
    listed = aligned(workshop, "--gold", workshop / "gold", "--find-heads", "--json").out
    rates = [one["error_rate"] for one in json.loads(listed)["candidates"]]
    assert rates == sorted(rates)


def test_a_run_that_goes_back_has_its_say(workshop: Path) -> None:
    joined = [
        aligned(workshop, "--reverse", workshop / "back", "--symmetrise", how).out.splitlines()
        for how in ("intersection", "grow-diag", "union")
    ]
    for few, more, most in zip(*joined, strict=True):
        assert set(few.split()) <= set(more.split()) <= set(most.split())
    assert joined[2][0]
    assert symmetrise([(0, 0)], [(0, 1)], "union") == [(0, 0), (0, 1)]
    wrong = aligned(workshop, "--reverse", workshop / "back", "--symmetrise", "both")
    assert "there is no symmetrisation 'both'" in wrong.err


def test_what_does_not_fit_together_is_told(
    workshop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    short, beyond, odd = tmp_path / "short", tmp_path / "beyond", tmp_path / "odd"
    short.write_text("0-0\n", encoding="utf-8")
    beyond.write_text("1-1 2-2 3-3\n\n\n1-1\n", encoding="utf-8")
    odd.write_text("0:0\n\n1\n\n", encoding="utf-8")
    cases = [
        (short, "has 1 lines for 4 pairs; line n of it must belong to pair n"),
        (beyond, "words are separated by spaces and counted from 0"),
        (odd, f"{odd}:1: not a gold alignment: '0:0'"),
    ]
    for path, words in cases:
        answer = aligned(workshop, "--gold", path)
        assert answer.code == 65
        assert words in answer.err
    assert f"{odd}:3: " in aligned(workshop, "--gold", odd).err
    missing = aligned(workshop, "--gold", tmp_path / "none")
    assert "there is no such file" in missing.err
    for options, words in [
        (("--find-heads",), "--find-heads needs --gold"),
        (("--soft", "--gold", short), "leave out --soft"),
        (("--soft", "--reverse", workshop / "back"), "leave out --soft and --find-heads"),
    ]:
        answer = aligned(workshop, *options)
        assert answer.code == 2
        assert words in answer.err


def test_what_has_no_attention_cannot_align(workshop: Path) -> None:
    for options in ((), ("--gold", workshop / "gold", "--find-heads")):
        answer = aligned(workshop, *options, run="blind")
        assert (answer.code, answer.out) == (78, "")
        assert "model.decoder.attention.kind = 'attention'" in answer.err
    together = ("--with", workshop / "there", "--gold", workshop / "gold", "--find-heads")
    assert "an ensemble averages the attention of its members" in aligned(workshop, *together).err
