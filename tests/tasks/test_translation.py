"""Translation: its signature, inputs and scores, and small models that learn it."""

import random
from pathlib import Path

import pytest

from seqloom.config.schema.names import ScoreName
from seqloom.config.schema.task import TranslationConfig
from seqloom.config.schema.text import CharactersConfig
from seqloom.core.signature import Signature, Tokens
from seqloom.data.example import Example
from seqloom.data.modalities.text import TextModality
from seqloom.inference.run import load
from seqloom.metrics.sari import sari
from seqloom.tasks.build import build_task
from seqloom.text.build import train_tokenizer
from seqloom.training.loop import train
from support.tiny_runs import read_events, tiny_config

ABC = train_tokenizer(CharactersConfig(), ["abc"], (), False)
ABCDEF = train_tokenizer(CharactersConfig(), ["abcdef"], (), False)


def test_vocabularies_are_shared_if_the_tokenizers_are_equal() -> None:
    task = build_task(TranslationConfig(), TextModality(ABC), ABCDEF)
    assert task.signature == Signature(Tokens(ABC.size), Tokens(ABCDEF.size), shared=False)
    assert build_task(TranslationConfig(), TextModality(ABC), ABC).signature.shared
    model_input = task.prepare("  ab ")
    assert model_input.source_tokens == tuple(ABC.encode("ab"))
    assert model_input.prefix == ()


def test_default_scores() -> None:
    task = build_task(TranslationConfig(), TextModality(ABC), ABC)
    examples = [Example("abc", "abc abc abc abc", ("abc abc abc abc",), "here:1")]
    scores = {score.key: score.value for score in task.scores(["abc abc abc abc"], examples)}
    assert task.source_text(examples[0]) == "abc"
    assert scores == pytest.approx(
        {"bleu": 100, "chrf2": 100, "ter": 0, "exact-match": 100, "token-accuracy": 100}
    )


def test_recipe_selects_the_scores() -> None:
    config = TranslationConfig(scores=("word-error-rate", "phoneme-error-rate"))
    task = build_task(config, TextModality(ABC), ABC)
    examples = [Example("a", "K AE", ("K AE", "K EY"), "here:1")]
    scores = task.scores(["K EY"], examples)
    assert [score.key for score in scores] == ["word-error-rate", "phoneme-error-rate"]
    assert [score.value for score in scores] == [0, 0]
    assert task.metrics[0](["K"], [["K AE"]]).value == 100


def test_scores_of_simplification_and_summarisation() -> None:
    names: tuple[ScoreName, ...] = (
        "rouge-l",
        "sari",
        "exact-match",
        "exact-match-tokenised",
    )
    task = build_task(TranslationConfig(scores=names), TextModality(ABC), ABC)
    examples = [Example("abc a", " abc  b", (" abc  b",), "here:1")]
    scores = task.scores(["abc b"], examples)
    assert [score.key for score in scores] == list(names)
    assert [scores[index].value for index in (0, 2, 3)] == pytest.approx([100, 0, 100])
    assert scores[1] == sari(["abc a"], ["abc b"], [[" abc  b"]])


def test_lowercase_tokenizers_are_scored_without_case() -> None:
    text = "the cat sat on the mat"
    example = Example("x", "The cat sat on THE mat", ("The cat sat on THE mat",), "here:1")
    lowercase, cased = (
        {score.key: score for score in task.scores([text], [example])}
        for task in (
            build_task(TranslationConfig(), TextModality(tokenizer), tokenizer)
            for tokenizer in (
                train_tokenizer(CharactersConfig(), [text], (), True),
                train_tokenizer(CharactersConfig(), [text], (), False),
            )
        )
    )
    assert lowercase["bleu"].value == pytest.approx(100)
    assert "case:lc" in str(lowercase["bleu"].signature)
    assert lowercase["exact-match"].value == 100
    assert cased["bleu"].value < 60
    assert cased["exact-match"].value == 0


@pytest.mark.slow
def test_small_attention_model_learns_to_change_case(tmp_path: Path) -> None:
    words = "kind='synthetic', task='case', min_length=2, max_length=7"
    config = tiny_config(
        f"data.train={{{words}, examples=1500}}",
        f"data.dev={{{words}, examples=40}}",
        f"data.test={{{words}, examples=40}}",
        "text.tags=['<U>', '<L>']",
        "model.encoder={kind='recurrent', width=24}",
        "model.decoder={kind='recurrent', width=48}",
        "training.steps=300",
        "training.batch_tokens=512",
        "training.evaluate_every=100",
        "training.evaluate_examples=40",
        "training.checkpoint_every=300",
        "training.optimizer.learning_rate=0.01",
        "training.stopping.score=exact-match",
    )
    train(config, tmp_path / "run")
    evaluations = [event for event in read_events(tmp_path / "run") if event["event"] == "evaluate"]
    first, *later = [event["loss"] for event in evaluations]
    assert min(later) < 0.7 * first
    scores = {score.key: score.value for score in load(tmp_path / "run").evaluate("test").scores}
    assert scores["exact-match"] > 10  # of unseen words; 0 by chance


TRAINED_TARGETS = [f"k{number}" for number in range(200)]
"""Words that appear in training as sources and targets."""
SOURCE_ONLY = [f"s{number}" for number in range(100)]
"""Words that appear in training as sources only."""
SIDES = {
    "recurrent": "kind='recurrent', width=24",
    "transformer": "kind='transformer', width=32, layers=1, feedforward=32, dropout=0.0",
}


def write_pairs(path: Path, copied: list[str], skipped: list[str], count: int) -> None:
    """Sources with two words. The target repeats the first word after "say", none after "skip"."""
    generator = random.Random(3)
    lines = []
    for _ in range(count):
        first, second = generator.choices(copied, k=2)
        lines.append(f"say {first} not {second}\t{first} !\n")
        if skipped:
            first, second = generator.choices(skipped, k=2)
            lines.append(f"skip {first} not {second}\tno !\n")
    path.write_text("".join(lines), encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("kind", SIDES)
def test_only_a_copying_model_outputs_words_that_were_no_targets_in_training(
    kind: str, tmp_path: Path
) -> None:
    write_pairs(tmp_path / "train.tsv", TRAINED_TARGETS, SOURCE_ONLY, 800)
    write_pairs(tmp_path / "test.tsv", SOURCE_ONLY, [], 50)
    exact_match = {}
    for copying in (True, False):
        config = tiny_config(
            f"data.folder={tmp_path}",
            "data.train={kind='tsv', path='train.tsv'}",
            *(f"data.{split}={{kind='tsv', path='test.tsv'}}" for split in ("dev", "test")),
            "text={tokenizer={kind='words'}, shared=true}",
            f"model.encoder={{{SIDES[kind]}}}",
            f"model.decoder={{{SIDES[kind]}, copying={str(copying).lower()}}}",
            "training.steps=130",
            "training.batch_tokens=512",
            "training.evaluate_every=130",
            "training.checkpoint_every=130",
        )
        run = tmp_path / f"{kind}-{copying}"
        train(config, run)
        scores = {score.name: score.value for score in load(run).evaluate("test").scores}
        exact_match[copying] = scores["exact match"]
    assert exact_match[True] > 50
    assert exact_match[False] < 5
