"""What a task reads, learns and is scored by."""

from pathlib import Path

import pytest

from seqloom.config.schema.names import ScoreName, SourceScoreName
from seqloom.config.schema.task import LabelsConfig, LanguageModelConfig, TranslationConfig
from seqloom.config.schema.text import CharactersConfig
from seqloom.core.signature import NoSource, Signature, Tokens
from seqloom.data.example import Example
from seqloom.metrics.sari import sari
from seqloom.runs.run import load
from seqloom.tasks.build import build_task
from seqloom.text.build import train_tokenizer
from seqloom.training.loop import train
from tiny_runs import journal, recipe

LETTERS = train_tokenizer(CharactersConfig(), ["abc"], (), False)
OTHERS = train_tokenizer(CharactersConfig(), ["abcdef"], (), False)


def test_translation_reads_a_source_and_shares_what_is_the_same() -> None:
    apart = build_task(TranslationConfig(), LETTERS, OTHERS)
    assert apart.signature == Signature(Tokens(LETTERS.size), Tokens(OTHERS.size), shared=False)
    assert build_task(TranslationConfig(), LETTERS, LETTERS).signature.shared
    prepared = apart.prepare("  ab ")
    assert prepared.source == tuple(LETTERS.encode("ab"))
    assert prepared.prefix == ()


def test_a_language_model_reads_nothing_and_begins_as_it_is_told() -> None:
    task = build_task(LanguageModelConfig(), None, LETTERS)
    assert task.signature == Signature(NoSource(), Tokens(LETTERS.size), shared=False)
    prepared = task.prepare("ab")
    assert prepared.source is None
    assert prepared.prefix == tuple(LETTERS.encode("ab"))
    example = Example("", "ab", ("ab",), "here:1")
    assert task.source_text(example) == ""
    assert task.scores(["ab"], [example]) == []


def test_translation_is_scored_in_every_way() -> None:
    task = build_task(TranslationConfig(), LETTERS, LETTERS)
    examples = [Example("abc", "abc abc abc abc", ("abc abc abc abc",), "here:1")]
    scores = {score.key: score.value for score in task.scores(["abc abc abc abc"], examples)}
    assert task.source_text(examples[0]) == "abc"
    assert scores == pytest.approx(
        {"bleu": 100, "chrf2": 100, "ter": 0, "exact-match": 100, "token-accuracy": 100}
    )


def test_the_recipe_says_how_outputs_are_judged() -> None:
    config = TranslationConfig(scores=("word-error-rate", "phoneme-error-rate"))
    task = build_task(config, LETTERS, LETTERS)
    examples = [Example("a", "K AE", ("K AE", "K EY"), "here:1")]
    scores = task.scores(["K EY"], examples)
    assert [score.key for score in scores] == ["word-error-rate", "phoneme-error-rate"]
    assert [score.value for score in scores] == [0, 0]
    assert task.metrics[0](["K"], [["K AE"]]).value == 100


def test_labels_have_room_for_every_position_and_end() -> None:
    task = build_task(LabelsConfig(), LETTERS, LETTERS)
    assert task.prepare("ab" * 400).max_length == 801
    assert task.prepare("a").max_length == 2


def test_simpler_and_shorter_texts_have_scores_of_their_own() -> None:
    names: tuple[ScoreName | SourceScoreName, ...] = (
        "rouge-l",
        "sari",
        "exact-match",
        "exact-match-tokenised",
    )
    task = build_task(TranslationConfig(scores=names), LETTERS, LETTERS)
    examples = [Example("abc a", " abc  b", (" abc  b",), "here:1")]
    scores = task.scores(["abc b"], examples)
    assert [score.key for score in scores] == list(names)
    assert [scores[place].value for place in (0, 2, 3)] == pytest.approx([100, 0, 100])
    assert scores[1] == sari(["abc a"], ["abc b"], [[" abc  b"]])


def test_a_small_attention_model_learns_to_change_case(tmp_path: Path) -> None:
    words = "kind='synthetic', task='case', min_length=2, max_length=7"
    config = recipe(
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
    lines = [line for line in journal(tmp_path / "run") if line["event"] == "evaluate"]
    first, *later = [line["loss"] for line in lines]
    assert min(later) < 0.7 * first
    scores = {score.key: score.value for score in load(tmp_path / "run").evaluate("test").scores}
    assert scores["exact-match"] > 10  # of words that it has never seen; by chance it is none


def test_where_text_is_folded_capitals_of_the_references_do_not_count() -> None:
    folded, cased = (
        train_tokenizer(CharactersConfig(), ["the cat sat on the mat"], (), lowercase)
        for lowercase in (True, False)
    )
    said, wanted = (
        ["the cat sat on the mat"],
        [Example("x", "The cat sat on THE mat", ("The cat sat on THE mat",), "here:1")],
    )
    by_case = {
        tokenizer.lowercase: {
            score.key: score
            for score in build_task(TranslationConfig(), tokenizer, tokenizer).scores(said, wanted)
        }
        for tokenizer in (folded, cased)
    }
    assert by_case[True]["bleu"].value == pytest.approx(100)
    assert "case:lc" in str(by_case[True]["bleu"].signature)
    assert by_case[True]["exact-match"].value == 100
    assert by_case[False]["bleu"].value < 60
    assert by_case[False]["exact-match"].value == 0
