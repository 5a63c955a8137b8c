"""The checks of seqloom.testing accept correct extensions and reject wrong ones."""

from pathlib import Path

import custom_parts as parts
import pytest

from seqloom.core.errors import ConfigError, DataError
from seqloom.testing import (
    check_decoder,
    check_encoder,
    check_metric,
    check_reader,
    check_rule,
    check_score,
    check_tokenizer,
)

TEXTS = ["abc cab", "  two spaces", "d"]


@pytest.mark.parametrize("score", [parts.Cosine, parts.WeightedDot, parts.NegatedDot])
@pytest.mark.parametrize("heads", [1, 2])
def test_correct_scores_pass(score: type, heads: int) -> None:
    check_score(score, heads=heads)


@pytest.mark.parametrize(
    ("score", "problem"),
    [(parts.CentredDot, "depends on the other keys"), (parts.UnsafeCosine, "not finite")],
)
def test_wrong_scores_fail(score: type, problem: str) -> None:
    with pytest.raises(AssertionError, match=problem):
        check_score(score)


def test_a_score_that_claims_to_be_a_product_must_be_one() -> None:
    class Claimed(parts.Cosine):
        is_product = True

    with pytest.raises(AssertionError, match="no dot product"):
        check_score(Claimed)


@pytest.mark.parametrize("metric", [parts.exact_length, parts.length_error])
def test_correct_metrics_pass(metric: object) -> None:
    assert callable(metric)
    check_metric(metric)


def test_wrong_metrics_fail() -> None:
    with pytest.raises(AssertionError, match="depends on the order"):
        check_metric(parts.first_length)
    with pytest.raises(DataError, match="returned nan"):
        check_metric(parts.not_a_number)


def test_a_reader_returns_its_examples(tmp_path: Path) -> None:
    (tmp_path / "pairs").write_text("a|b\nc|d\n", encoding="utf-8")
    [first, second] = check_reader(parts.read_bars, tmp_path, path="pairs", reverse=True)
    assert (first.source, first.target, first.references) == ("b", "a", ("a",))
    assert second.where == f"data.train: example 2 of '{parts.__name__}:read_bars'"


def test_a_reader_must_yield_pairs(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"is 'word'; a reader must yield \(source, target\) pairs"):
        check_reader(parts.read_single_words, tmp_path)


def test_a_correct_tokenizer_passes() -> None:
    check_tokenizer(parts.Syllables, TEXTS, vowels="ae")


def test_wrong_tokenizers_fail() -> None:
    with pytest.raises(AssertionError, match="'abc cab' is decoded as 'abccab'"):
        check_tokenizer(parts.LossyTokenizer, TEXTS)
    check_tokenizer(parts.LossyTokenizer, TEXTS, is_exact=False)
    with pytest.raises(ConfigError, match="yields empty pieces"):
        check_tokenizer(parts.EmptyPieces, TEXTS)


def test_correct_rules_pass() -> None:
    check_rule(parts.ForbidText, text="a")
    check_rule(parts.ForbidAll)


def test_wrong_rules_fail() -> None:
    with pytest.raises(ConfigError, match=r"NumericRule returns torch.float32 of the shape \(2, "):
        check_rule(parts.NumericRule)
    with pytest.raises(AssertionError, match="depends on other rows"):
        check_rule(parts.FirstRowRule)


def test_correct_encoders_and_decoders_pass() -> None:
    check_encoder(parts.BagOfWords, width=6)
    check_decoder(parts.PlainDecoder, width=6)


def test_wrong_encoders_fail() -> None:
    with pytest.raises(AssertionError, match="padding changes the summary"):
        check_encoder(parts.PaddedMean)
    with pytest.raises(
        ConfigError, match=r"returns states of the shape \(2, 3, 16\), but \(2, 3, 8"
    ):
        check_encoder(parts.DoubleWidth)


def test_wrong_decoders_fail() -> None:
    with pytest.raises(AssertionError, match="`step` differs from `forward`"):
        check_decoder(parts.ForgetfulDecoder)
    with pytest.raises(AssertionError, match=r"after State\.keep_sources and State\.select"):
        check_decoder(parts.FixedOrderDecoder)
