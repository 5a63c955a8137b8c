"""Runs with extensions: training, resuming, loading, and changed or missing code."""

import json
import logging
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import custom_parts
import pytest

from seqloom.analysis.explanation import explain
from seqloom.analysis.gradients import trace_gradients
from seqloom.config.schema.recipe import RunConfig
from seqloom.core.errors import ConfigError, NotFoundError
from seqloom.inference.run import load
from seqloom.runs.archive import pack_run, unpack_run
from seqloom.runs.extensions import EXTENSIONS
from seqloom.training.loop import train
from support.tiny_runs import EventCollector, checkpoint_digests, read_events, tiny_config

MODULE = "movable_parts"
ALL_EXTENSIONS = (
    f"data.train={{kind='{MODULE}:read_bars', path='pairs'}}",
    "data.dev={kind='hold-out', fraction=0.2}",
    f"data.test={{kind='{MODULE}:read_bars', path='pairs', reverse=true}}",
    f"text.tokenizer={{kind='{MODULE}:Syllables', vowels='ae'}}",
    f"model.decoder.attention={{score={{kind='{MODULE}:Cosine', temperature=0.2}}, "
    "projection='linear', heads=2}",
    f"model.encoder={{kind='{MODULE}:BagOfWords', width=8}}",
    f"task.scores=['bleu', '{MODULE}:length_error']",
    f"training.stopping.score='{MODULE}:length_error'",
    f"decoding.rules=[{{kind='{MODULE}:ForbidText', text='ba'}}]",
)


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder on the path with the module of the extensions."""
    folder = tmp_path_factory.mktemp("code")
    shutil.copy(custom_parts.__file__, folder / f"{MODULE}.py")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        yield folder
    sys.modules.pop(MODULE, None)


def extended_config(folder: Path, *settings: str) -> RunConfig:
    letters = "abcde"
    pairs = [f"{a}{b}{c}|{c}{b}{a}" for a in letters for b in letters for c in letters]
    (folder / "pairs").write_text("\n".join(pairs), encoding="utf-8")
    return tiny_config(f"data.folder={folder}", *ALL_EXTENSIONS, *settings)


@pytest.fixture(scope="module")
def run(code: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("extended")
    train(extended_config(folder), folder / "run")
    return folder / "run"


@pytest.fixture
def missing_code(code: Path) -> Iterator[None]:
    """The module of the extensions cannot be imported during the test."""
    path, hidden = code / f"{MODULE}.py", code / "hidden"
    path.rename(hidden)
    module = sys.modules.pop(MODULE)
    shutil.rmtree(code / "__pycache__", ignore_errors=True)
    yield
    hidden.rename(path)
    sys.modules[MODULE] = module


def test_a_run_records_the_version_of_each_extension(run: Path) -> None:
    records = json.loads((run / EXTENSIONS).read_bytes())
    assert {record["setting"]: record["name"] for record in records} == {
        "data.train[0]": "read_bars",
        "data.test[0]": "read_bars",
        "text.tokenizer": "Syllables",
        "model.encoder": "BagOfWords",
        "model.decoder.attention.score": "Cosine",
        "decoding.rules[0]": "ForbidText",
        "task.scores[1]": "length_error",
    }
    assert {(record["module"], record["distribution"]) for record in records} == {(MODULE, "")}
    assert {len(record["sha256"]) for record in records} == {64}


def test_a_packed_run_has_the_record_of_its_extensions(run: Path, tmp_path: Path) -> None:
    pack_run(run, tmp_path / "packed")
    unpack_run(tmp_path / "packed", tmp_path / "unpacked")
    assert (tmp_path / "unpacked" / EXTENSIONS).read_bytes() == (run / EXTENSIONS).read_bytes()
    [packed], [original] = (load(path).translate(["abc"]) for path in (tmp_path / "packed", run))
    assert (packed.text, packed.score) == (original.text, original.score)


def test_a_run_without_extensions_has_no_record(tmp_path: Path) -> None:
    train(tiny_config("training.steps=2", "training.evaluate_every=2"), tmp_path / "run")
    assert not (tmp_path / "run" / EXTENSIONS).exists()


def test_a_loaded_run_translates_and_evaluates_with_its_extensions(
    run: Path, caplog: pytest.LogCaptureFixture
) -> None:
    loaded = load(run)
    assert not caplog.records
    tokenizer = loaded.task.target_tokenizer
    assert tokenizer.pieces(tokenizer.encode("cabe")) == ["ca", "be"]
    assert type(loaded.model.encoder).__name__ == "BagOfWords"
    for beam in (1, 3):
        outputs = loaded.translate(["abc", "eda"], beam=beam)
        assert all("ba" not in output.pieces for output in outputs)
    report = loaded.evaluate("test")
    assert [score.name for score in report.scores][:2] == ["BLEU", f"{MODULE}:length_error"]
    assert not report.scores[1].higher_is_better


def test_an_extension_metric_selects_the_best_weights(run: Path) -> None:
    events = [event for event in read_events(run) if event["event"] == "evaluate"]
    values = [event[f"{MODULE}:length_error"] for event in events]
    best = [event["step"] for event in events if event["best"]][-1]
    assert best == events[values.index(min(values))]["step"]


def test_attention_of_an_extension_can_be_inspected_and_explained(run: Path) -> None:
    loaded = load(run)
    [output] = loaded.translate(["abc"], attention=True)
    assert output.attention is not None
    [scores] = [part for part in explain(loaded, "abc", 1).parts if part.name == "scores"]
    assert scores.formula == "e = Cosine(q, k)"
    assert MODULE in scores.note
    with pytest.raises(ConfigError, match="BagOfWords is defined outside seqloom, and its"):
        trace_gradients(loaded, "abc")


def test_resuming_with_extensions_is_bit_exact(run: Path, code: Path, tmp_path: Path) -> None:
    interrupted = tmp_path / "run"
    train(extended_config(run.parent, "training.steps=6"), interrupted)
    train(extended_config(run.parent), interrupted, resume=True)
    assert checkpoint_digests(interrupted) == checkpoint_digests(run)


def test_changed_code_is_a_warning(
    run: Path, code: Path, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    path = code / f"{MODULE}.py"
    original = path.read_bytes()
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    path.write_bytes(original + b"# a comment\n")
    try:
        with caplog.at_level(logging.WARNING):
            load(copy)
    finally:
        path.write_bytes(original)
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == 7
    assert (
        f"{copy}: model.decoder.attention.score: the source code of {MODULE}, which defines "
        f"'{MODULE}:Cosine', has changed since this run was trained; outputs may differ"
    ) in messages


def test_resuming_with_changed_code_is_noted(code: Path, tmp_path: Path) -> None:
    path = code / f"{MODULE}.py"
    original = path.read_bytes()
    score = f"model.decoder.attention={{score={{kind='{MODULE}:Cosine'}}, projection='linear'}}"
    train(tiny_config(score, "training.steps=3"), tmp_path / "run")
    path.write_bytes(original + b"# a comment\n")
    collector = EventCollector()
    try:
        train(
            tiny_config(score, "training.steps=4"), tmp_path / "run", resume=True, report=collector
        )
    finally:
        path.write_bytes(original)
    notes = [event.data["text"] for event in collector.events if event.kind == "note"]
    assert any(f"the source code of {MODULE}" in note for note in notes)


@pytest.mark.usefixtures("missing_code")
def test_loading_without_the_code_says_what_is_missing(run: Path) -> None:
    with pytest.raises(ConfigError) as error:
        load(run)
    message = str(error.value)
    assert (
        f"model.decoder.attention.score: the module '{MODULE}' is not on the Python path" in message
    )
    assert "This run was trained with these extensions:" in message
    assert f"  text.tokenizer: {MODULE}:Syllables" in message


def test_code_in_a_run_folder_is_never_used(run: Path, tmp_path: Path) -> None:
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    (copy / "inside.py").write_text("raise SystemExit('executed')", encoding="utf-8")
    config = (copy / "config.toml").read_text(encoding="utf-8").replace(MODULE, "inside")
    (copy / "config.toml").write_text(config, encoding="utf-8")
    from seqloom.config.loading.loader import load_run_recipe

    with pytest.raises(ConfigError, match="the module 'inside' is not on the Python path"):
        load_run_recipe(copy / "config.toml")


def test_a_missing_file_of_a_reader_is_a_not_found_error(code: Path, tmp_path: Path) -> None:
    config = tiny_config(f"data.train={{kind='{MODULE}:read_bars', path='nothing'}}")
    with pytest.raises(
        NotFoundError, match="the reader 'movable_parts:read_bars' cannot read its data"
    ):
        train(config, tmp_path / "run")


def test_an_invalid_rule_is_reported_before_training(code: Path, tmp_path: Path) -> None:
    config = tiny_config(f"decoding.rules=[{{kind='{MODULE}:NotAScore'}}]")
    with pytest.raises(
        ConfigError, match="the rule 'movable_parts:NotAScore' must be a class with"
    ):
        train(config, tmp_path / "run")
    assert not (tmp_path / "run").exists()
