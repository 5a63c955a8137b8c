"""Checks for metrics, readers, tokenizers and decoding rules that users define."""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from seqloom.config.extensions.section import MetricExtensionConfig
from seqloom.config.schema.corpora import ReaderExtensionConfig
from seqloom.config.schema.decoding import RuleExtensionConfig
from seqloom.config.schema.text import TokenizerExtensionConfig
from seqloom.data.example import Example, InvalidLine, Split
from seqloom.data.readers.reader import build_reader
from seqloom.decoding.rules import Rules
from seqloom.metrics.build import extension_score
from seqloom.metrics.score import References
from seqloom.testing.settings import section_of
from seqloom.text.build import load_tokenizer
from seqloom.text.build_extension import train_extension_tokenizer
from seqloom.text.preprocessing import Preprocessing, Tags
from seqloom.text.tokenizer import Tokenizer
from seqloom.text.vocabulary import START, UNKNOWN
from seqloom.text.vocabulary_tokenizer import CharacterTokenizer


def check_metric(
    metric: Callable[..., Any],
    hypotheses: Sequence[str] = ("a dog barks", "", "the end"),
    references: References = (("a dog barks",), ("nothing", "no one"), ("an end",)),
) -> None:
    """Check a metric.

    - it returns a finite number or a `Score`, also if an output is empty
    - the order of the sentences does not change the result
    """
    section = section_of(MetricExtensionConfig, metric, {})
    value = extension_score(section, hypotheses, references).value
    backwards = extension_score(section, hypotheses[::-1], references[::-1]).value
    assert abs(value - backwards) < 1e-6, "the metric depends on the order of the sentences"


def check_reader(
    reader: Callable[..., Any], folder: str | Path = ".", split: Split = "train", **settings: Any
) -> list[Example]:
    """Check that a reader yields at least one example, and the same examples if it reads again.

    Returns the examples.

    folder:   value of the setting data.folder
    settings: settings of the reader in a recipe
    """
    section = section_of(ReaderExtensionConfig, reader, settings)

    def read() -> list[Example | InvalidLine]:
        return list(build_reader(section, str(folder), split, f"data.{split}").read())

    records = read()
    assert records == read(), "the reader yields other examples when it reads again"
    examples = [record for record in records if isinstance(record, Example)]
    assert examples, "the reader yields no example"
    return examples


def check_tokenizer(
    tokenizer: type[Any], texts: Sequence[str], *, is_exact: bool = True, **settings: Any
) -> None:
    """Train a tokenizer, a subclass of `seqloom.text.PieceTokenizer`, on these texts and check it.

    - decode(encode(text)) is the text, if `is_exact` and no token is UNKNOWN
    - tags are single tokens
    - for each token, `pieces` returns one string and `word_of` returns one word index
    - a saved tokenizer that is loaded again has the same ids

    is_exact: False for a tokenizer that does not restore every text. Default: True
    settings: settings of the tokenizer in a recipe
    """
    section = section_of(TokenizerExtensionConfig, tokenizer, settings)
    trained = train_extension_tokenizer(section, texts, Preprocessing(Tags(["<2de>"])))
    for text in (*texts, "", f"<2de> {texts[0]}"):
        ids = trained.encode(text)
        decoded = trained.decode(ids)
        is_restored = decoded == text or UNKNOWN in ids
        assert is_restored or not is_exact, f"{text!r} is decoded as {decoded!r}"
        assert trained.encode(text) == ids, f"{text!r} has other ids when it is encoded again"
        assert len(trained.pieces(ids)) == len(ids) == len(trained.word_of(ids))
    assert len(trained.encode("<2de>")) == 1, "a tag must be a single token"
    _check_saved(trained, texts)


def _check_saved(tokenizer: Tokenizer, texts: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save(Path(folder), "target")
        loaded = load_tokenizer(Path(folder), "target")
    assert loaded.digest == tokenizer.digest, "the loaded tokenizer differs from the saved one"
    assert [loaded.encode(text) for text in texts] == [tokenizer.encode(text) for text in texts]


def check_rule(
    rule: Callable[..., Any], texts: Sequence[str] = ("a dog barks", "the end"), **settings: Any
) -> None:
    """Check a decoding rule, which implements `seqloom.decoding.Rule`.

    - it returns a mask of forbidden tokens: (R, V) for R hypotheses, or (V,) for all of them
    - what it forbids in a hypothesis does not depend on the other hypotheses
    - it does not change its argument `generated`, the tokens of the hypotheses

    texts:    the hypotheses are prefixes of these texts. Each character is a token
    settings: settings of the rule in a recipe
    """
    section = section_of(RuleExtensionConfig, rule, settings)
    tokenizer = CharacterTokenizer.train(texts, Preprocessing())
    rules = Rules(extensions=(section.build_part(tokenizer=tokenizer),))
    length = min(len(tokenizer.encode(text)) for text in texts)
    for steps in range(length + 1):
        rows = [[START, *tokenizer.encode(text)[:steps]] for text in texts]
        generated = torch.tensor(rows)
        scores = torch.randn(len(rows), tokenizer.size).log_softmax(dim=-1)
        before = generated.clone()
        together = rules(scores, generated, None)
        assert generated.equal(before), "the rule changes `generated`"
        alone = torch.cat(
            [
                rules(scores[row : row + 1], generated[row : row + 1], None)
                for row in range(len(rows))
            ]
        )
        assert together.equal(alone), "what the rule forbids in a row depends on other rows"
