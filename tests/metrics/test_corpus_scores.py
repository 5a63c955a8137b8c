"""BLEU, chrF, TER, exact match, token accuracy."""

from collections.abc import Callable

import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st

from seqloom.core.errors import DataError
from seqloom.metrics.bleu import bleu, chrf, sentence_bleu, ter
from seqloom.metrics.overlap import exact_match, token_accuracy
from seqloom.metrics.score import References, Score

TRUTH = [
    "the cat sat on the mat today",
    "Tom likes to play chess with Mary",
    "Where is the dog now ?",
]
OUTPUT = [
    "the cat sat on a mat today",
    "tom likes to play cards with Mary",
    "Where is the dog now ?",
]
EVERY_METRIC: list[Callable[[list[str], References], Score]] = [
    bleu,
    chrf,
    ter,
    sentence_bleu,
    exact_match,
    token_accuracy,
]
each_metric = pytest.mark.parametrize("metric", EVERY_METRIC)


def one_each(lines: list[str]) -> list[list[str]]:
    return [[line] for line in lines]


def test_scores_are_sacrebleus_own() -> None:
    columns = [TRUTH]
    references = one_each(TRUTH)
    assert bleu(OUTPUT, references).value == sacrebleu.corpus_bleu(OUTPUT, columns).score
    assert chrf(OUTPUT, references).value == sacrebleu.corpus_chrf(OUTPUT, columns).score
    assert ter(OUTPUT, references).value == sacrebleu.corpus_ter(OUTPUT, columns).score


def test_signatures_say_everything_and_the_version() -> None:
    version = sacrebleu.__version__
    several = [[*one, "another"] for one in one_each(TRUTH)]
    ragged = [["a", "b"], ["c"], ["d"]]
    assert bleu(OUTPUT, one_each(TRUTH)).signature == (
        f"nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:{version}"
    )
    assert bleu(OUTPUT, several, lowercase=True, tokenize="char").signature == (
        f"nrefs:2|case:lc|eff:no|tok:char|smooth:exp|version:{version}"
    )
    assert chrf(OUTPUT, ragged, lowercase=True).signature == (
        f"nrefs:var|case:lc|eff:yes|nc:6|nw:0|space:no|version:{version}"
    )
    assert ter(OUTPUT, one_each(TRUTH)).signature == (
        f"nrefs:1|case:lc|tok:tercom|norm:no|punct:yes|asian:no|version:{version}"
    )


def test_bleu_of_sentences_is_a_mean_in_which_short_lines_count_like_long_ones() -> None:
    outputs, references = ["else :", OUTPUT[0]], [["else :"], [TRUTH[0]]]
    alone = sacrebleu.sentence_bleu(OUTPUT[0], [TRUTH[0]], tokenize="none").score
    score = sentence_bleu(outputs, references)
    assert score.value == pytest.approx((100 + alone) / 2)
    assert score.signature == (
        f"nrefs:1|case:mixed|eff:yes|tok:none|smooth:exp|version:{sacrebleu.__version__}, "
        "mean of 2 sentences"
    )


def test_lower_casing_forgives_capitals() -> None:
    shouted = [line.upper() for line in TRUTH]
    for metric in [bleu, chrf]:
        assert metric(shouted, one_each(TRUTH)).value < 50
        assert metric(shouted, one_each(TRUTH), lowercase=True).value == pytest.approx(100)


@each_metric
def test_the_truth_is_perfect_and_anything_else_is_worse(
    metric: Callable[[list[str], References], Score],
) -> None:
    perfect, worse = metric(TRUTH, one_each(TRUTH)), metric(OUTPUT, one_each(TRUTH))
    if perfect.higher_is_better:
        assert perfect.value == pytest.approx(100)
        assert worse.value < perfect.value
    else:
        assert perfect.value == 0
        assert worse.value > perfect.value


@each_metric
def test_a_further_reference_can_be_given_for_some_sentences_only(
    metric: Callable[[list[str], References], Score],
) -> None:
    ragged = [[TRUTH[0]], [TRUTH[1], OUTPUT[1]], ["so", "what", TRUTH[2]]]
    some, none = metric(OUTPUT, ragged), metric(OUTPUT, one_each(TRUTH))
    assert (some.value > none.value) == some.higher_is_better
    whole = [[TRUTH[0], OUTPUT[0]], *ragged[1:]]
    assert metric(OUTPUT, whole).value == pytest.approx(100 if some.higher_is_better else 0)


@each_metric
def test_the_order_of_sentences_does_not_matter(
    metric: Callable[[list[str], References], Score],
) -> None:
    references = [[TRUTH[0]], [TRUTH[1], "Tom plays"], [TRUTH[2]]]
    turned = metric(OUTPUT[::-1], references[::-1])
    assert turned.value == pytest.approx(metric(OUTPUT, references).value)


@each_metric
def test_what_cannot_be_scored_is_refused_with_every_reason(
    metric: Callable[[list[str], References], Score],
) -> None:
    with pytest.raises(DataError, match="there are no hypotheses"):
        metric([], [])
    with pytest.raises(DataError) as caught:
        metric(["a", "b"], [["a"], *[[]] * 7])
    assert "2 hypotheses and references for 8 sentences" in str(caught.value)
    assert "no reference for sentence 2, 3, 4, 5, 6 and 2 more" in str(caught.value)
    with pytest.raises(DataError, match=r"no reference for sentence 2$"):
        metric(["a", "b"], [["a"], []])


def test_exact_match_counts_any_reference_to_the_letter() -> None:
    references = [["a", "b"], ["c"], ["d "], ["D"]]
    assert exact_match(["b", "c", "d", "d"], references).value == 50


@pytest.mark.parametrize(
    ("output", "references", "percent"),
    [
        ("a b c", ["a b c"], 100),
        ("a b", ["a b c d"], 50),
        ("a b c d", ["a b"], 50),
        ("x a b c", ["a b c"], 0),
        ("a x c", ["a b c", "a x d", "q"], 200 / 3),
        ("a x c", ["q", "a x c d"], 75),
        ("", ["a"], 0),
        ("a", [""], 0),
        ("", [""], 100),
        ("", ["a", ""], 100),
    ],
)
def test_a_token_counts_where_it_stands(output: str, references: list[str], percent: float) -> None:
    assert token_accuracy([output], [references]).value == pytest.approx(percent)


lines = st.lists(st.text(alphabet="ab ", max_size=8), min_size=1, max_size=5)


@settings(deadline=None)
@given(lines, st.data())
def test_overlap_is_a_percentage(outputs: list[str], data: st.DataObject) -> None:
    references = [data.draw(lines) for _ in outputs]
    for metric in [exact_match, token_accuracy]:
        assert 0 <= metric(outputs, references).value <= 100
    assert (
        exact_match(outputs, references).value
        <= 100
        * sum(
            token_accuracy([one], [several]).value == 100
            for one, several in zip(outputs, references, strict=True)
        )
        / len(outputs)
        + 1e-9
    )
