"""Fine-tuning can add tags for new languages to the vocabulary of the parent."""

from pathlib import Path
from typing import Any

import pytest
import torch

import seqloom
from seqloom.config.loading.loader import load_recipe as load_complete_recipe
from seqloom.core.errors import ConfigError
from seqloom.runs.integrity import weights_store
from seqloom.runs.recipe import load_recipe
from seqloom.runs.weights import read_tensors
from seqloom.tasks.token_task import TokenTask
from seqloom.text.new_tags import token_id
from support.small_runs import SHORT_TRAINING
from support.tiny_runs import read_events
from support.toy_languages import write_languages

pytestmark = pytest.mark.slow
TOKENIZERS = ("words", "characters", "subwords")
NEW_TAGS = [{"tag": "<2cs>", "like": "<2de>"}]
ONE_STEP = ["training.steps=1", "training.evaluate_every=1"]


def languages(folder: Path, *pairs: str) -> dict[str, Any]:
    table = {"kind": "languages", "path": "train.{language}.gz", "pairs": [*pairs]}
    return {"folder": str(folder), "train": table, "dev": table}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_languages(tmp_path_factory.mktemp("data") / "languages", ["train"], lines=40)


@pytest.fixture(scope="module")
def parents(data: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One run per tokenizer, from English to German and French. One of them shares embeddings."""
    folder = tmp_path_factory.mktemp("parents")
    for kind in TOKENIZERS:
        size = {"size": 60} if kind == "subwords" else {}
        shared = kind == "subwords"
        side = {"kind": "transformer", "width": 8, "layers": 1, "feedforward": 16}
        side["attention"] = {"heads": 2}
        tables = {
            "data": languages(data, "en-de", "en-fr"),
            "text": {"tokenizer": {"kind": kind, **size}, "shared": shared},
            "model": {"encoder": side, "decoder": side, "tie": "all" if shared else "none"},
            "training": SHORT_TRAINING,
            "decoding": {"kind": "greedy", "max_length": 8},
        }
        seqloom.train(load_complete_recipe(tables, ()).config, folder / kind)
    return {kind: folder / kind for kind in TOKENIZERS}


def recipe(data: Path, new_tags: list[dict[str, str]] | None = None) -> dict[str, Any]:
    text = {"new_tags": NEW_TAGS if new_tags is None else new_tags}
    return {"data": languages(data, "en-cs"), "text": text}


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_a_new_tag_starts_with_the_outputs_of_its_neighbour(
    kind: str, data: Path, parents: dict[str, Path], tmp_path: Path
) -> None:
    # A learning rate of nearly 0 keeps the start weights.
    still = [*ONE_STEP, "training.optimizer.learning_rate=1e-30"]
    seqloom.fine_tune(recipe(data), parents[kind], tmp_path / "run", settings=still)
    run, parent = seqloom.load(tmp_path / "run"), seqloom.load(parents[kind])
    texts = ["the dog runs here", "red cat"]
    old = parent.translate(texts, to="de")
    new = run.translate(texts, to="cs")
    assert [each.text for each in new] == [each.text for each in old]
    assert [each.text for each in run.translate(texts, to="de")] == [each.text for each in old]
    sizes = [each.task.target_tokenizer.size for each in (run, parent)]
    assert sizes[0] == sizes[1] + 1


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_embedding_and_output_row_are_copied_and_all_others_kept(
    kind: str, data: Path, parents: dict[str, Path], tmp_path: Path
) -> None:
    settings = ["training.steps=1", "training.optimizer.learning_rate=1e-30"]
    seqloom.fine_tune(recipe(data), parents[kind], tmp_path / "run", settings=settings)
    task = seqloom.load(parents[kind]).task
    assert isinstance(task, TokenTask)
    assert task.source_tokenizer is not None
    neighbours = {
        "encoder": token_id(task.source_tokenizer, "<2de>"),
        "decoder": token_id(task.target_tokenizer, "<2de>"),
    }
    before, after = (
        read_tensors(path / "model.safetensors")
        for folder in (parents[kind], tmp_path / "run")
        if (path := weights_store(folder).current()) is not None
    )
    grown = [name for name in before if before[name].shape != after[name].shape]
    assert len(grown) == (2 if kind == "subwords" else 4)
    for name in grown:
        assert torch.equal(after[name][:-1], before[name])
        assert torch.equal(after[name][-1], before[name][neighbours[name.partition(".")[0]]])
    assert read_events(tmp_path / "run")[0]["event"] == "start"


def test_a_continued_optimiser_gets_empty_state_for_new_rows(
    data: Path, parents: dict[str, Path], tmp_path: Path
) -> None:
    settings = [*ONE_STEP, "training.start.optimizer=continued"]
    summary = seqloom.fine_tune(recipe(data), parents["words"], tmp_path / "run", settings=settings)
    assert summary.step == 1


@pytest.mark.parametrize(
    ("new_tags", "message"),
    [
        ([], r"has no tag <2cs>\. .*text\.new_tags = \[\{ tag = '<2cs>', like = '<2"),
        ([{"tag": "<2cs>", "like": "<2xx>"}], r"but <2xx> is not in it\. .*<2de>, <2fr>"),
        ([*NEW_TAGS, {"tag": "<2fr>", "like": "<2de>"}], "<2fr> is already in the vocabulary"),
    ],
)
def test_tags_that_do_not_fit_the_parent_are_errors(
    new_tags: list[dict[str, str]],
    message: str,
    data: Path,
    parents: dict[str, Path],
    tmp_path: Path,
) -> None:
    with pytest.raises(ConfigError, match=message):
        seqloom.fine_tune(recipe(data, new_tags), parents["words"], tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_new_tags_need_a_parent_and_trained_embeddings(
    data: Path, parents: dict[str, Path]
) -> None:
    side = {"kind": "recurrent", "width": 8}
    model = {"encoder": side, "decoder": side}
    complete = {**recipe(data), "model": model, "training": {"steps": 5}}
    with pytest.raises(ConfigError, match=r"text\.new_tags: adds tags.*--from RUN"):
        load_complete_recipe(complete)
    with pytest.raises(ConfigError, match="new tags would not be learned"):
        load_recipe(recipe(data), ["training.freeze=['embeddings']"], parent=parents["words"])


def test_untagged_data_of_a_multilingual_parent_is_an_error(
    data: Path, parents: dict[str, Path]
) -> None:
    pairs = {"kind": "parallel", "source": "train.en.gz", "target": "train.de.gz"}
    untagged = {"data": {"folder": str(data), "train": pairs, "dev": pairs}}
    with pytest.raises(ConfigError, match="has no tag, but training has <2de>, <2fr>"):
        load_recipe(untagged, parent=parents["words"])
