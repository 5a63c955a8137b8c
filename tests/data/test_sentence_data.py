"""The training data decides whether predictions split texts into sentences."""

from pathlib import Path

import pytest

from seqloom.config.loading.loader import load_bundled_recipe
from seqloom.data.checks.sentences import resolve_sentence_splitting

SENTENCES = [("Der Hund läuft.", "The dog runs."), ("Wer ist da?", "Who is there?")]
SEVERAL = ("Er kam. Wir gingen.", "He came. We left.")


def resolve(folder: Path, pairs: list[tuple[str, str]], *settings: str) -> object:
    path = folder / "pairs.tsv"
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")
    splits = [f"data.{split}={{kind='tsv', path='{path}'}}" for split in ("train", "dev", "test")]
    config = load_bundled_recipe("demo", [*splits, *settings]).config
    return resolve_sentence_splitting(config).text.split_sentences


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        (SENTENCES * 20, True),
        (SENTENCES * 20 + [SEVERAL] * 2, True),
        (SENTENCES * 20 + [SEVERAL] * 20, False),
        ([("sort the list x.", "x.sort()")] * 40, False),
        ([("loom", "l uː m")] * 40, False),
        ([("name[Aromi], food[Pasta]", "Aromi serves pasta.")] * 40, False),
        ([("你好。", "Hello.")] * 40, True),
    ],
    ids=["sentences", "few texts", "texts", "code", "pronunciation", "tables", "chinese"],
)
def test_sentences_are_split_if_the_data_are_sentences(
    tmp_path: Path, pairs: list[tuple[str, str]], expected: bool
) -> None:
    assert resolve(tmp_path, pairs) is expected


@pytest.mark.parametrize("value", [True, False])
def test_an_explicit_setting_is_kept(tmp_path: Path, value: bool) -> None:
    setting = f"text.split_sentences={str(value).lower()}"
    assert resolve(tmp_path, SENTENCES * 20, setting) is value


@pytest.mark.parametrize("recipe", ["demo", "tatoeba-en-fr-attention"])
def test_recipes_for_sentences_split(recipe: str) -> None:
    config = resolve_sentence_splitting(load_bundled_recipe(recipe).config)
    assert config.splits_sentences
    assert config.passes_through


@pytest.mark.parametrize("recipe", ["questions", "case-rnn", "language-id", "tatoeba-english"])
def test_other_recipes_do_not_split(recipe: str) -> None:
    config = resolve_sentence_splitting(load_bundled_recipe(recipe).config)
    assert not config.splits_sentences
    assert not config.passes_through
