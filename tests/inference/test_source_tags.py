"""Texts without a tag, for runs whose task is chosen by a tag in the text."""

import unicodedata
from pathlib import Path
from typing import Literal

import pytest

from seqloom.config.schema.task import TranslationConfig
from seqloom.config.schema.text import Normalization
from seqloom.data.modalities.text import TextModality
from seqloom.inference.run import load
from seqloom.inference.source_tags import SourceTags
from seqloom.inference.texts.preparation import divide_at_tags
from seqloom.tasks.build import build_task
from seqloom.text.preprocessing import Preprocessing, Tags
from seqloom.text.vocabulary_tokenizer import CharacterTokenizer
from support.tagged_runs import ADVICE, CASE, train_tagged_run
from support.tiny_runs import LANGUAGE_MODEL, tiny_config

TAGS = SourceTags.from_config(tiny_config(*CASE))


def test_only_texts_without_a_tag_are_missing_one() -> None:
    texts = ["I am", "<U> I am", "", "  ", "I am <L>", "<u> I am"]
    assert TAGS.missing(texts) == [0, 5]
    assert TAGS.warnings(["<U> a", ""], "line") == []


def test_the_warning_has_the_count_the_first_numbers_and_the_tags() -> None:
    assert TAGS.warning([1], 1, "text") == (
        f"the text has {ADVICE}. If the training texts have a tag, add one, for example: <U> …"
    )
    assert TAGS.warning([3], 4).startswith(f"1 of 4 lines (line 3) has {ADVICE}")
    many = TAGS.warning(range(2, 1_002), 2_000)
    assert many.startswith(f"1,000 of 2,000 lines (lines 2, 3, 4, 5, 6, …) have {ADVICE}")


def test_runs_without_tags_and_language_models_expect_none() -> None:
    assert not SourceTags.from_config(tiny_config()).missing(["abc"])
    language_model = tiny_config(*LANGUAGE_MODEL, "text.tags=['<U>']")
    assert not SourceTags.from_config(language_model).missing(["abc"])


def test_multilingual_runs_handle_their_tags_themselves() -> None:
    """There a missing target language is an error (tests/inference/test_target_language.py)."""
    tagged = "{kind='tsv', path='pairs.tsv', tag='<2xx>'}"
    settings = [f"data.{split}={tagged}" for split in ("train", "dev", "test")]
    config = tiny_config(*settings, "text.tags=['<2xx>']")
    assert not SourceTags.from_config(config).missing(["abc"])


@pytest.mark.slow
def test_predictions_without_a_tag_have_a_warning(tmp_path: Path) -> None:
    run = load(train_tagged_run(tmp_path / "case"))
    tagged, untagged, blank = run.translate(["<U> ab", "ab", ""])
    assert tagged.warnings == blank.warnings == ()
    assert [ADVICE in warning for warning in untagged.warnings] == [True]
    assert untagged.to_json()["warnings"] == untagged.warnings
    for output in run.translate_n_best(["ab"], 2)[0]:
        assert output.warnings == untagged.warnings


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
@pytest.mark.parametrize("normalization", ["none", "nfc", "nfkc"])
@pytest.mark.parametrize("tag", ["<2de>", "<2é>", ""])
def test_a_text_is_divided_at_its_tags_in_every_unicode_form(
    form: Literal["NFC", "NFD", "NFKC", "NFKD"], normalization: Normalization, tag: str
) -> None:
    names = ["<2de>", "<2é>"]
    tokenizer = CharacterTokenizer.train(["ab"], Preprocessing(tags=Tags(names, normalization)))
    task = build_task(TranslationConfig(), TextModality(tokenizer), tokenizer)
    core = unicodedata.normalize(form, "Café crème ﬁn")
    written = unicodedata.normalize(form, tag)
    is_found = bool(tag) and (written == tag or normalization != "none")
    text = f" {written} {core}" if tag else f" {core}"
    space, tags, rest = divide_at_tags(task, text)
    assert space + tags + rest == text
    assert rest == (core if is_found else text.lstrip())
