"""Training models that predict labels, with every batch layout."""

from pathlib import Path

import pytest
import torch

from seqloom.core.errors import ConfigError
from seqloom.data.batching.bucketing import BucketLayout
from seqloom.data.batching.layout import BatchLayout, PaddedLayout
from seqloom.inference.run import load
from seqloom.training.distributed import World
from seqloom.training.loop import train
from seqloom.training.session import Session
from seqloom.training.setup import open_session
from support.tiny_runs import NO_DROPOUT, tiny_config
from support.token_loss import token_loss

pytestmark = pytest.mark.slow

LABELLED = ("task.kind=labels", "text.target_tokenizer={kind='whitespace'}")


def write_words(folder: Path) -> list[str]:
    """Two tasks: vowel (v) or consonant (c) per letter, and the first letter of each word."""
    words = ["banana", "kiwi", "apple", "fig", "olive", "pear", "melon", "grape", "a", "date"] * 6
    per_letter = [
        f"{word}\t{' '.join('v' if one in 'aeiou' else 'c' for one in word)}" for word in words
    ]
    (folder / "none.tsv").write_text("\n".join(per_letter) + "\n", encoding="utf-8")
    per_word = [f"{word}\t{word[0]}" for word in words]
    (folder / "mean.tsv").write_text("\n".join(per_word) + "\n", encoding="utf-8")
    return words


def changes(folder: Path, pooling: str) -> list[str]:
    corpus = f"{{kind='tsv', path='{folder / pooling}.tsv'}}"
    return [
        *LABELLED,
        *(f"data.{split}={corpus}" for split in ("train", "dev", "test")),
        f"model.decoder={{kind='labels', pooling='{pooling}'}}",
    ]


def loss_of_all(session: Session, layout: BatchLayout) -> float:
    corpus = session.stream.corpus
    plan = layout.plan(corpus.source_lengths, corpus.target_lengths, 0, 0)
    model = session.model.double()
    return sum(token_loss(model, layout.gather(corpus, each), 0.1).item() for each in plan)


@pytest.mark.parametrize("pooling", ["none", "mean"])
def test_padding_rows_of_a_bucket_do_not_change_the_loss(tmp_path: Path, pooling: str) -> None:
    write_words(tmp_path)
    config = tiny_config(NO_DROPOUT[0], *changes(tmp_path, pooling))
    world = World(0, 1, torch.device("cpu"))
    session = open_session(config, tmp_path / "run", False, world, lambda event: None)
    session.event_log.close()
    padded = loss_of_all(session, PaddedLayout(100))
    assert loss_of_all(session, BucketLayout(100)) == pytest.approx(padded)


@pytest.mark.parametrize("pooling", ["none", "mean"])
@pytest.mark.parametrize("further", ["training.r_drop=1.0", "training.label_smoothing=0.1"])
def test_labels_of_letters_and_words_are_learned(
    tmp_path: Path, pooling: str, further: str
) -> None:
    words = write_words(tmp_path)
    settings = [
        *("training.steps=60", "training.evaluate_every=60", "training.checkpoint_every=60"),
        *("training.optimizer.learning_rate=0.05", "training.stopping.score=accuracy", further),
        "model.encoder.width=16",
    ]
    config = tiny_config(NO_DROPOUT[0], *changes(tmp_path, pooling), *settings)
    train(config, tmp_path / "run")
    scores = {score.key: score.value for score in load(tmp_path / "run").evaluate("dev").scores}
    assert scores["accuracy"] == scores["macro-f1"] == scores["exact-match"] == 100
    assert scores["perplexity"] < 1.5
    found = load(tmp_path / "run").label(words[:3])
    assert [len(one.text.split()) for [one] in found] == (
        [len(word) for word in words[:3]] if pooling == "none" else [1, 1, 1]
    )


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("model.decoder={kind='recurrent'}", "the task 'labels' needs kind = 'labels'"),
        ("task.kind=translation", "set task.kind = 'labels', not 'translation'"),
        ("text.target_tokenizer.kind=words", "labels are separated by white space"),
        ("decoding.max_length=5", "the source determines the number of labels"),
        ("training.batching=packed", "training.batching"),
        ("training.stopping.score=bleu", "'bleu' is not one of task.scores; use 'loss' or one of"),
        ("task.scores=[]", "task.scores"),
    ],
)
def test_settings_that_do_not_fit_labels_are_rejected_with_a_remedy(
    tmp_path: Path, setting: str, words: str
) -> None:
    tiny_config(*changes(tmp_path, "mean"))
    with pytest.raises(ConfigError, match=words):
        tiny_config(*changes(tmp_path, "mean"), setting)
