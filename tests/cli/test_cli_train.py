"""seqloom train, doctor and demo, on small recipes."""

import json
import re
from pathlib import Path

import pytest

import seqloom
from support.cli_runner import run_cli, set_options

pytestmark = pytest.mark.slow


def test_training_prints_progress_and_next_commands(recipes: Path, tmp_path: Path) -> None:
    recipe, folder = recipes / "reverse.toml", tmp_path / "a run"
    result = run_cli("train", recipe, "--run", folder, "--set", "training.steps=30")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "parameters" in result.stderr
    assert "step 30  dev loss" in result.stderr
    assert f"The run is in {folder}. Next, try:" in result.stderr
    assert f"seqloom translate '{folder}'" in result.stderr
    taken = run_cli("train", recipe, "--run", folder)
    assert taken.exit_code == 78
    assert f"Continue it with `seqloom train {folder} --resume`, or choose" in taken.stderr
    again = run_cli("train", folder, "--resume")
    assert again.exit_code == 0
    assert "resuming at step 30" in again.stderr
    quiet = run_cli("train", folder / "config.toml", "--run", folder, "--resume", "--quiet")
    assert "resuming" not in quiet.stderr


def test_rich_progress_display_prints_evaluations(recipes: Path, tmp_path: Path) -> None:
    result = run_cli("train", recipes / "reverse.toml", "--run", tmp_path / "x", terminal=True)
    assert result.exit_code == 0
    assert "step 30  dev loss" in result.stderr


def test_doctor_prints_statistics_and_errors(recipes: Path) -> None:
    valid = run_cli("doctor", recipes / "reverse.toml")
    assert valid.exit_code == 0
    assert "train: 400 examples" in valid.stdout
    assert "█" in valid.stdout
    assert "largest training batch" in valid.stdout
    record = json.loads(run_cli("doctor", recipes / "reverse.toml", "--json").stdout)
    assert record["splits"][0]["examples"] == 400
    invalid = run_cli(
        "doctor", recipes / "reverse.toml", "--set", 'data.train={kind="tsv", path="no.tsv"}'
    )
    assert invalid.exit_code == 66
    assert "error  data.train:" in invalid.stdout
    assert "no.tsv: " in invalid.stdout


LEARNED = "{kind='learned', max_length=4}"
LEARNED_BY_DECODER = f"model.decoder.positions={LEARNED}"


@pytest.mark.parametrize("name", ["frames-label", "gesture-label"])
def test_doctor_measures_the_memory_of_a_batch_of_frames(name: str) -> None:
    small = set_options("data.train.examples=50", "data.dev.examples=5", "data.test.examples=5")
    checked = run_cli("doctor", name, *small)
    assert checked.exit_code == 0, checked.stderr
    batch = re.search(r"rows of (\d+) frames and (\d+) target tokens; a training", checked.stdout)
    assert batch is not None, checked.stdout
    frames, targets = map(int, batch.groups())
    # END follows the labels, one per frame or one per sequence.
    assert targets == (frames + 1 if name == "frames-label" else 2)
    assert frames > 10


@pytest.mark.parametrize(
    ("recipe", "settings", "problem"),
    [
        (
            "reverse.toml",
            (f"model.encoder.positions={LEARNED}", LEARNED_BY_DECODER),
            "drop them with data.filter.max_target_tokens = 3",
        ),
        (
            "reverse.toml",
            (LEARNED_BY_DECODER, "data.filter.max_target_tokens=3"),
            "remove them from the file",
        ),
        ("sentences.toml", (LEARNED_BY_DECODER,), "model.decoder.positions.max_length = "),
        (
            "sentences.toml",
            (
                LEARNED_BY_DECODER,
                *(
                    f"data.{split}={{kind='long-text', path='FOLDER/sentences.txt', length=8}}"
                    for split in ("train", "dev", "test")
                ),
            ),
            "set data.dev.length = 4",
        ),
    ],
    ids=["both sides", "filtered", "language model", "long text"],
)
def test_doctor_reports_texts_longer_than_the_positions_as_train_does(
    recipes: Path, recipe: str, settings: tuple[str, ...], problem: str, tmp_path: Path
) -> None:
    changed = [setting.replace("FOLDER", str(recipes)) for setting in settings]
    options = [word for setting in changed for word in ("--set", setting)]
    trained = run_cli("train", recipes / recipe, "--run", tmp_path / "run", *options)
    assert trained.exit_code == 65
    message = trained.stderr.partition("some lines are longer than the model's maximum length")[2]
    assert problem in message
    checked = run_cli("doctor", recipes / recipe, *options)
    assert checked.exit_code == 65
    assert "error  data: some lines are longer than the model's maximum length:" in checked.stdout
    for line in message.splitlines():
        assert line.strip() in checked.stdout


def test_doctor_prints_no_counts_for_files_of_unequal_length(recipes: Path, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("ab\ncd\nbc\n", encoding="utf-8")
    (tmp_path / "b").write_text("ba\ndc\n", encoding="utf-8")
    train = f'data.train={{kind="parallel", source="{tmp_path}/a", target="{tmp_path}/b"}}'
    settings = ("--set", train, "--set", 'data.dev={kind="hold-out"}')
    result = run_cli("doctor", recipes / "reverse.toml", *settings)
    assert result.exit_code == 65
    listed = f"train: cannot be read completely\n  {tmp_path}/a\n  {tmp_path}/b\ndev: cannot"
    assert listed in result.stdout.replace(" \n", "\n")
    assert "test: 20 examples" in result.stdout
    assert result.stdout.count("error  data.train: ") == 1
    record = json.loads(run_cli("doctor", recipes / "reverse.toml", *settings, "--json").stdout)
    assert [split["examples"] for split in record["splits"]] == [None, None, 20]
    assert [split["files"] for split in record["splits"]] == [
        [f"{tmp_path}/a", f"{tmp_path}/b"],
        [],
        [],
    ]


def test_doctor_lists_the_files_of_a_pattern(recipes: Path, tmp_path: Path) -> None:
    for number in range(25):
        (tmp_path / f"{number:02}.tsv").write_text(f"a{number % 4}\tb\n", encoding="utf-8")
    train = f'data.train={{kind="tsv", path="{tmp_path}/*.tsv"}}'
    result = run_cli("doctor", recipes / "reverse.toml", "--set", train)
    start, _, rest = result.stdout.partition("\n  source: ")
    assert start.splitlines() == [
        "train: 25 examples",
        *(f"  {tmp_path}/{number:02}.tsv" for number in range(20)),
        "  … and 5 more files",
    ]
    assert rest


def test_demo_trains_evaluates_translates_and_draws(
    recipes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundled = {"demo": recipes / "reverse.toml"}
    monkeypatch.setattr("seqloom.config.loading.loader.bundled_recipes", lambda: bundled)
    result = run_cli("demo", "--run", tmp_path / "demo")
    assert result.exit_code == 0, result.stderr
    assert "BLEU" in result.stdout
    assert "Das gefällt mir." in result.stdout
    assert "attention of each output token" in result.stdout
    assert set("░▒▓█") & set(result.stdout)
    assert f"seqloom evaluate {tmp_path / 'demo'}\n" in result.stderr
    assert result.stderr.rstrip().endswith(f"seqloom serve {tmp_path / 'demo'}")
    again = run_cli("demo", "--run", tmp_path / "demo")
    assert again.stdout == result.stdout


def test_demo_compares_with_a_model_without_attention(
    recipes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundled = {"demo": recipes / "reverse.toml"}
    monkeypatch.setattr("seqloom.config.loading.loader.bundled_recipes", lambda: bundled)
    result = run_cli("demo", "--run", tmp_path / "a", "--compare", "--set", "training.steps=4")
    assert result.exit_code == 0, result.stderr
    first, second = tmp_path / "a", tmp_path / "a-without-attention"
    assert result.stderr.rstrip().endswith(f"seqloom serve {first} {second}")
    assert "a-without-attention" in result.stdout
    configs = [seqloom.load(folder).config.model_dump() for folder in (first, second)]
    kinds = [config["model"]["decoder"]["attention"]["kind"] for config in configs]
    assert kinds == ["attention", "none"]
    assert configs[0]["data"] == configs[1]["data"]
    again = run_cli("demo", "--run", tmp_path / "a", "--compare", "--set", "training.steps=4")
    assert again.stdout == result.stdout
