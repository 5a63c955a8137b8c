"""seqloom sweep: combinations, failures, continued sweeps and Optuna."""

import json
from concurrent.futures import Future
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.core.errors import ConfigError
from seqloom.jobs.sweeps import training_process
from seqloom.jobs.sweeps.space import Choice, Range, grid, parse_dimensions, split_values
from support.cli_runner import CliResult, run_cli, set_options

RATE, SEED = "training.optimizer.learning_rate", "training.seed"
SHORT = ("training.steps=2", "training.evaluate_every=2")


class TrainingInProcess:
    """Replaces the process of a training by a call in this process.

    commands: the arguments of each training
    """

    def __init__(self) -> None:
        self.commands: list[list[str]] = []

    def run(self, command: list[str], *, stderr: object, **_: object) -> object:
        arguments = command[command.index("train") :]
        self.commands.append(arguments)
        result = run_cli(*arguments)
        stderr.write(result.stderr.encode())  # type: ignore[attr-defined]

        class Completed:
            returncode = result.exit_code

        return Completed


@pytest.fixture
def trainings(monkeypatch: pytest.MonkeyPatch) -> TrainingInProcess:
    process = TrainingInProcess()
    monkeypatch.setattr("seqloom.jobs.sweeps.training_process.subprocess.run", process.run)
    monkeypatch.setattr(training_process, "ThreadPoolExecutor", InThisThread)
    return process


class InThisThread:
    """An executor that runs functions at once, because signals need the main thread."""

    def __init__(self, _jobs: int) -> None: ...

    def __enter__(self) -> "InThisThread":
        return self

    def __exit__(self, *_: object) -> None: ...

    def submit(self, function: object, argument: object) -> object:
        future: Future[object] = Future()
        future.set_result(function(argument))  # type: ignore[operator]
        return future


def sweep(recipes: Path, folder: Path, *options: object) -> CliResult:
    return run_cli("sweep", recipes / "reverse.toml", "--run", folder, *options)


@pytest.mark.slow
def test_sweep_trains_all_combinations_and_sorts_them(
    recipes: Path, tmp_path: Path, trainings: TrainingInProcess
) -> None:
    options = set_options(f"{RATE}=1e-3,1e-2", f"{SEED}=2", *SHORT)
    result = sweep(recipes, tmp_path / "sweep", *options, "--json")
    assert result.exit_code == 0, result.stderr
    results = json.loads(result.stdout)
    assert {each["trial"] for each in results} == {
        "learning_rate=1e-3",
        "learning_rate=1e-2",
    }
    losses = [each["best"] for each in results]
    assert losses == sorted(losses)
    assert all(each["score"] == "loss" and each["status"] == "finished" for each in results)
    listed = json.loads(run_cli("runs", tmp_path / "sweep", "--json").stdout)
    assert {run["folder"] for run in listed} == {each["folder"] for each in results}

    trained = len(trainings.commands)
    table = sweep(recipes, tmp_path / "sweep", *options)
    assert len(trainings.commands) == trained  # finished runs are kept
    assert table.stdout.splitlines()[0].split()[:3] == ["trial", "best", "loss"]
    assert table.stdout.splitlines()[1].split()[0] == results[0]["trial"]


@pytest.mark.slow
def test_failed_training_is_reported_and_the_others_go_on(
    recipes: Path, tmp_path: Path, trainings: TrainingInProcess
) -> None:
    # A folder that is a file cannot become a run folder.
    (tmp_path / "seed=1").write_text("", encoding="utf-8")
    result = sweep(recipes, tmp_path, *set_options(f"{SEED}=1,2", *SHORT))
    assert result.exit_code == 1
    assert "1 of 2 trainings failed. The same command tries them again." in result.stderr
    assert "seed=1: exit code" in result.stderr
    assert "seed=2" in result.stdout
    assert (tmp_path / "seed=2" / "config.toml").is_file()


@pytest.mark.slow
def test_optuna_continues_its_study(
    recipes: Path, tmp_path: Path, trainings: TrainingInProcess
) -> None:
    options = set_options(f"{RATE}=1e-4..1e-2:log", "model.decoder.width=12,24", *SHORT)
    for trials in (1, 2):
        result = sweep(recipes, tmp_path, *options, "--trials", trials, "--json")
        assert result.exit_code == 0, result.stderr
        first_results = json.loads(result.stdout)
        assert len(first_results) == trials
    assert len(trainings.commands) == 2
    other_order = set_options("model.decoder.width=12,24", f"{RATE}=1e-4..1e-2:log", *SHORT)
    again = sweep(recipes, tmp_path, *other_order, "--trials", 2, "--json")
    assert again.exit_code == 0, again.stderr
    assert json.loads(again.stdout) == first_results
    assert len(trainings.commands) == 2, "the same settings in another order were trained again"
    result = sweep(recipes, tmp_path, *set_options(f"{SEED}=1,2"), "--trials", 4)
    assert result.exit_code == 78
    assert "is a study of other settings" in result.stderr


@given(
    st.lists(
        st.lists(st.integers(0, 99), min_size=1, max_size=4, unique=True), min_size=1, max_size=3
    )
)
def test_grid_has_every_combination_once_with_different_names(values: list[list[int]]) -> None:
    settings = [f"a{n}.x={','.join(map(str, each))}" for n, each in enumerate(values)]
    trials = grid(parse_dimensions(settings))
    expected = 1
    for each in values:
        expected *= len(each)
    assert len({trial.settings for trial in trials}) == len(trials) == expected
    assert len({trial.name for trial in trials}) == expected


def test_commas_in_brackets_and_quotes_do_not_separate_values() -> None:
    assert split_values('[1,2], [3] ,"a,b",c') == ["[1,2]", "[3]", '"a,b"', "c"]


def test_ranges_and_lists_are_told_apart() -> None:
    assert parse_dimensions(["a=1..8", "b=1e-4..1e-2:log", "c=0.5", "d=x..y"]) == [
        Range("a", 1, 8, False, True),
        Range("b", 1e-4, 1e-2, True, False),
        Choice("c", ("0.5",)),
        Choice("d", ("x..y",)),
    ]


def test_invalid_settings_are_listed_together() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_dimensions(["a", "b=1,2", "b=3", "c=2..1", "d=0..1:log"])
    message = str(caught.value)
    for problem in ("--set a: must have", "b is given twice", "--set c=2..1", "numbers above 0"):
        assert problem in message
    with pytest.raises(ConfigError, match=r"a range LOW\.\.HIGH needs Optuna"):
        grid(parse_dimensions(["a=1..2"]))


def test_invalid_setting_of_one_trial_is_reported_before_training(
    recipes: Path, tmp_path: Path
) -> None:
    result = sweep(recipes, tmp_path / "sweep", *set_options("training.seed=1,-5"))
    assert result.exit_code == 78
    assert not (tmp_path / "sweep").exists()
    assert sweep(recipes, tmp_path / "sweep").exit_code == 2
