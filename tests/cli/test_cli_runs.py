"""The commands on real, small runs."""

import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from calling import call
from cli_workshop import trained, workshop_at

from seqloom.core.errors import DataError, StorageError
from seqloom.runs.evaluation.report import EvaluationReport
from seqloom.runs.options import PredictionOptions
from seqloom.runs.prediction import Prediction
from seqloom.runs.run import Run


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with recipes, to be trained by."""
    return workshop_at(tmp_path_factory.mktemp("workshop"))


@pytest.fixture(scope="module")
def reverse(workshop: Path) -> Path:
    """A run that turns strings around, more or less."""
    return trained(workshop, "reverse")


@pytest.fixture(scope="module")
def sentences(workshop: Path) -> Path:
    """A run of a language model."""
    return trained(workshop, "sentences")


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


def test_one_line_in_is_one_line_out_in_order(reverse: Path) -> None:
    given = ["abc", "", "  ", "d", "abcd", "dcba"]
    answer = call("translate", reverse, given="\n".join(given).encode())
    assert (answer.code, answer.err) == (0, "")
    lines = answer.out.split("\n")
    assert lines.pop() == ""
    assert len(lines) == len(given)
    assert lines[1] == lines[2] == ""
    alone = [call("translate", reverse, given=f"{text}\n".encode()).out for text in given]
    assert [f"{line}\n" for line in lines] == alone


def test_input_in_portions_is_answered_as_input_at_once(
    reverse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = call("translate", reverse, "--n-best", 2, given=b"ab\n\ncd\nabcd\na\n")
    monkeypatch.setattr("seqloom.cli.work.lines.PORTION", 2)
    (tmp_path / "1").write_text("ab\n\n", encoding="utf-8")
    (tmp_path / "2").write_text("cd\nabcd\na\n", encoding="utf-8")
    cut = call("translate", reverse, tmp_path / "1", tmp_path / "2", "--n-best", 2)
    assert cut.out == whole.out
    assert [line.split(" ||| ")[0] for line in cut.out.splitlines()] == [*"00", "1", *"223344"]


def test_scores_alignments_and_lists_stand_between_bars(reverse: Path) -> None:
    plain = call("translate", reverse, given=b"abc\n").out.strip()
    scored = call("translate", reverse, "--scores", "--alignments", given=b"abc\n").out.strip()
    text, score, alignment = scored.split(" ||| ")
    assert text == plain
    assert float(score) < 0
    assert all(len(pair.split("-")) == 2 for pair in alignment.split())
    listed = call("translate", reverse, "--n-best", 3, "--beam", 4, given=b"abc\n").out
    rows = [line.split(" ||| ") for line in listed.splitlines()]
    assert [row[0] for row in rows] == ["0", "0", "0"]
    scores = [float(row[3]) for row in rows]
    assert scores == sorted(scores, reverse=True)
    for _, _, steps, total in rows:
        values = [float(value) for value in steps.split()]
        assert sum(values) / len(values) == pytest.approx(float(total), abs=1e-3)


def test_json_is_one_object_a_line(reverse: Path) -> None:
    answer = call("translate", reverse, "--json", "--alignments", given="ab\nü\n".encode())
    records = [json.loads(line) for line in answer.out.splitlines()]
    assert [record["id"] for record in records] == [0, 1]
    assert [record["source"] for record in records] == ["ab", "ü"]
    (output,) = records[0]["outputs"]
    assert len(output["attention"]) == len(output["pieces"])
    assert {"text", "score", "finished", "log_probabilities", "alignment"} <= set(output)


@pytest.mark.parametrize(
    "settings",
    [
        ("--set", "decoding.kind=greedy", "--set", "decoding.max_length=1"),
        ("--set", "decoding={kind='greedy', max_length=1}"),
    ],
)
def test_outputs_cut_off_are_counted(reverse: Path, settings: tuple[str, ...]) -> None:
    answer = call("translate", reverse, *settings, given=b"abcd\n\nabcd\n")
    assert len(answer.out.splitlines()) == 3
    assert "2 of 3 outputs stopped at the length limit (line 1, 3)" in answer.err


@pytest.mark.parametrize(
    ("options", "given", "code", "words"),
    [
        (
            ["--set", "training.steps=1"],
            b"a\n",
            78,
            "only settings of decoding and engine can be changed",
        ),
        (["--set", "decoding.widht=1"], b"a\n", 78, "did you mean 'width'?"),
        (
            ["--n-best", "9"],
            b"a\n",
            78,
            "9 outputs a text need a beam of 9 or more, not 5; widen it with --beam 9",
        ),
        (
            ["--n-best", "3", "--beam", "2"],
            b"a\n",
            78,
            "a beam of 3 or more, not 2; widen it with --beam 3",
        ),
        (["--n-best", "2", "--set", "decoding.kind=greedy"], b"", 78, "greedy search finds one"),
        (["--n-best", "2", "--set", "decoding.kind=sample"], b"", 78, "need as many samples"),
        (["no.txt", "nor.txt"], b"", 66, "no.txt: there is no such file\nnor.txt: there is no"),
        (
            ["ein Satz"],
            b"",
            66,
            "If that is meant as text, write it to stdin: echo '…' | seqloom …",
        ),
        ([], b"ok\n\xff\n", 65, "stdin:2: byte 1 of the line (0xff) is not valid UTF-8"),
        (
            [],
            b"a" * 1_000_001 + b"\n",
            65,
            "stdin:1: the line is longer than 1,000,000 bytes; split",
        ),
    ],
)
def test_bad_input_to_translate_is_told(
    reverse: Path, options: list[str], given: bytes, code: int, words: str
) -> None:
    answer = call("translate", reverse, *options, given=given)
    assert answer.code == code
    assert words in answer.err


def test_a_missing_file_is_told_before_anything_of_the_model(reverse: Path) -> None:
    answer = call("translate", reverse, "no.txt")
    assert answer.err.splitlines() == ["error: no.txt: there is no such file"]


def test_a_dash_is_standard_input_among_files(reverse: Path, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("ab\n", encoding="utf-8")
    plain = call("translate", reverse, given=b"ab\ncd\n").out
    assert call("translate", reverse, "-", given=b"ab\ncd\n").out == plain
    assert call("translate", reverse, tmp_path / "a", "-", given=b"cd\n").out == plain


def test_a_bad_line_in_a_later_portion_is_named_by_its_own_number(
    reverse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = Run.predict

    def strict(
        run: Run, texts: Sequence[str], wish: PredictionOptions, **rest: Any
    ) -> list[list[Prediction]]:
        if "bad" in texts:
            raise DataError(f"line {wish.first + texts.index('bad') + 1}: is bad")
        return good(run, texts, wish, **rest)

    monkeypatch.setattr(Run, "predict", strict)
    monkeypatch.setattr("seqloom.cli.work.lines.PORTION", 2)
    answer = call("translate", reverse, given=b"a\nb\nc\nbad\n")
    assert (answer.code, answer.err) == (65, "error: line 4: is bad\n")
    assert len(answer.out.splitlines()) == 2


def test_scores_are_the_models_own(reverse: Path, tmp_path: Path) -> None:
    listed = call("translate", reverse, "--n-best", 2, given=b"abc\n").out
    rows = [line.split(" ||| ") for line in listed.splitlines()]
    (tmp_path / "source").write_text("abc\nabc\n", encoding="utf-8")
    (tmp_path / "target").write_text("".join(f"{row[1]}\n" for row in rows), encoding="utf-8")
    answer = call("score", reverse, tmp_path / "source", tmp_path / "target")
    for row, line in zip(rows, answer.out.splitlines(), strict=True):
        total = sum(float(value) for value in row[2].split())
        assert float(line) == pytest.approx(total, abs=1e-3)
    tokens = call("score", reverse, tmp_path / "source", tmp_path / "target", "--per-token")
    assert len(tokens.out.splitlines()[0].split()) == len(rows[0][2].split())


def test_files_that_cannot_be_scored_are_told(
    reverse: Path, sentences: Path, tmp_path: Path
) -> None:
    (tmp_path / "a").write_text("abc\nabc\n", encoding="utf-8")
    (tmp_path / "b").write_text("abc\n", encoding="utf-8")
    unequal = call("score", reverse, tmp_path / "a", tmp_path / "b")
    assert unequal.code == 65
    assert "b: ends after line 1, but the other file goes on" in unequal.err
    assert "give two files" in call("score", reverse, tmp_path / "a").err
    assert "give one file" in call("score", sentences, tmp_path / "a", tmp_path / "b").err
    assert len(call("score", sentences, tmp_path / "a").out.splitlines()) == 2


def test_a_seed_repeats_what_was_drawn(sentences: Path) -> None:
    options = ("complete", sentences, "I see", "", "--samples", 3, "--seed", 5)
    first, second = call(*options), call(*options)
    assert first.out == second.out
    lines = first.out.splitlines()
    assert len(lines) == 6
    assert all(line.startswith("I see") for line in lines[:3])
    unseeded = call("complete", sentences, "--temperature", 0.5, "--top-k", 3, "--top-p", 0.9)
    assert "the same again with --seed" in unseeded.err
    seed = unseeded.err.split()[-1]
    again = ("--temperature", 0.5, "--top-k", 3, "--top-p", 0.9, "--seed", seed)
    assert call("complete", sentences, *again).out == unseeded.out


def test_impossible_draws_are_told(sentences: Path) -> None:
    answer = call("complete", sentences, "--temperature", 0, "--top-p", 2)
    assert answer.code == 78
    assert "decoding.temperature: must be greater than 0, not 0.0" in answer.err
    assert "write --top-k 1 instead of --temperature 0" in answer.err
    assert "--seed" not in answer.err
    assert "decoding.top_p: must be at most 1, not 2.0" in answer.err


def test_what_a_model_has_never_seen_is_named_and_kept(sentences: Path) -> None:
    answer = call("complete", sentences, "I % see ß%", "I see", "--seed", 1)
    assert answer.code == 0, answer.err
    first, second = answer.out.splitlines()
    assert first.startswith("I % see ß%")
    assert second.startswith("I see")
    assert answer.err.count("warning:") == 1
    assert "prompt 'I % see ß%': the model has never seen '%', 'ß'; it goes on" in answer.err


def test_no_seed_is_told_where_nothing_is_drawn(sentences: Path, reverse: Path) -> None:
    assert call("complete", sentences, "--set", "decoding.kind=greedy").err == ""
    assert "--seed" not in call("complete", reverse).err


def test_a_prompt_that_is_no_text_is_told(sentences: Path) -> None:
    answer = call("complete", sentences, "\udcff")
    assert answer.code == 65
    assert "is not valid UTF-8" in answer.err


def test_the_wrong_command_for_a_run_is_told(reverse: Path, sentences: Path) -> None:
    assert "use `translate`" in call("complete", reverse).err
    assert "use `complete`" in call("translate", sentences, given=b"a\n").err


def test_scores_that_cannot_be_saved_are_shown_all_the_same(
    reverse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise StorageError("the disk is full")

    monkeypatch.setattr(EvaluationReport, "save", full)
    answer = call("evaluate", reverse)
    assert answer.code == 0
    assert "warning: outputs and scores could not be saved: the disk is full" in answer.err
    assert "BLEU" in answer.out


def test_evaluation_shows_and_saves_scores(reverse: Path) -> None:
    answer = call("evaluate", reverse, "--beam", 2)
    assert answer.code == 0
    for words in ("20 sentences of test", "BLEU", "tok:13a", "exact match", "reference", "output"):
        assert words in answer.out
    saved = json.loads((reverse / "evaluation" / "test" / "report.json").read_bytes())
    shown = json.loads(call("evaluate", reverse, "--beam", 2, "--json").out)
    assert shown["scores"] == saved["scores"]
    assert shown["decoding"]["width"] == 2


def test_two_runs_are_compared(reverse: Path, tmp_path: Path) -> None:
    other = shutil.copytree(reverse, tmp_path / "other")
    answer = call("evaluate", reverse, "--against", other)
    assert "difference" in answer.out
    assert "paired bootstrap" in answer.out
    record = json.loads(call("evaluate", reverse, "--against", other, "--json").out)
    assert (record["run"], record["against"]["run"]) == (str(reverse), str(other))
    assert {each["p_value"] for each in record["comparisons"]} == {1.0}


def test_training_says_how_it_went_and_what_to_type_next(workshop: Path, tmp_path: Path) -> None:
    recipe, folder = workshop / "reverse.toml", tmp_path / "a run"
    answer = call("train", recipe, "--run", folder, "--set", "training.steps=30")
    assert (answer.code, answer.out) == (0, "")
    assert "parameters" in answer.err
    assert "step 30  dev loss" in answer.err
    assert f"the run is in {folder}; next:" in answer.err
    assert f"seqloom translate '{folder}'" in answer.err
    taken = call("train", recipe, "--run", folder)
    assert taken.code == 78
    assert "holds a run already; go on with it by --resume, or choose another --run" in taken.err
    again = call("train", folder / "config.toml", "--run", folder, "--resume")
    assert again.code == 0
    assert "going on from step 30" in again.err
    quiet = call("train", folder / "config.toml", "--run", folder, "--resume", "--progress", "none")
    assert "going on" not in quiet.err


def test_a_run_in_a_live_terminal_is_watched(workshop: Path, tmp_path: Path) -> None:
    answer = call("train", workshop / "reverse.toml", "--run", tmp_path / "x", "--progress", "rich")
    assert answer.code == 0
    assert "step 30  dev loss" in answer.err


def test_the_doctor_shows_what_is_there_and_what_is_wrong(workshop: Path) -> None:
    healthy = call("doctor", workshop / "reverse.toml")
    assert healthy.code == 0
    assert "train: 400 examples" in healthy.out
    assert "█" in healthy.out
    assert "largest training batch" in healthy.out
    record = json.loads(call("doctor", workshop / "reverse.toml", "--json").out)
    assert record["splits"][0]["examples"] == 400
    ill = call(
        "doctor", workshop / "reverse.toml", "--set", 'data.train={kind="tsv", path="no.tsv"}'
    )
    assert ill.code == 66
    assert "error  data.train:" in ill.out
    assert "no.tsv: there is no such file" in ill.out


def test_the_doctor_counts_nothing_in_files_that_do_not_match(
    workshop: Path, tmp_path: Path
) -> None:
    (tmp_path / "a").write_text("ab\ncd\nbc\n", encoding="utf-8")
    (tmp_path / "b").write_text("ba\ndc\n", encoding="utf-8")
    train = f'data.train={{kind="parallel", source="{tmp_path}/a", target="{tmp_path}/b"}}'
    settings = ("--set", train, "--set", 'data.dev={kind="hold-out"}')
    answer = call("doctor", workshop / "reverse.toml", *settings)
    assert answer.code == 65
    assert "train: cannot be read whole\ndev: cannot be read whole\ntest: 20 examples" in answer.out
    assert answer.out.count("has no partner") == 1
    record = json.loads(call("doctor", workshop / "reverse.toml", *settings, "--json").out)
    assert [split["examples"] for split in record["splits"]] == [None, None, 20]


def test_the_demo_trains_scores_translates_and_draws(
    workshop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipes = {"demo": workshop / "reverse.toml"}
    monkeypatch.setattr("seqloom.config.loading.loader.bundled_recipes", lambda: recipes)
    answer = call("demo", "--run", tmp_path / "demo")
    assert answer.code == 0, answer.err
    assert "BLEU" in answer.out
    assert "Das gefällt mir." in answer.out
    assert "where each output looked" in answer.out
    assert set("░▒▓█") & set(answer.out)
    assert f"seqloom evaluate {tmp_path / 'demo'}\n" in answer.err
    assert answer.err.rstrip().endswith(f"seqloom serve {tmp_path / 'demo'}")
    again = call("demo", "--run", tmp_path / "demo")
    assert again.out == answer.out
