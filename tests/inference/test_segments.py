"""Texts of several sentences: segments, joined predictions, and protected spans."""

import math
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from random import Random

import pytest
import torch

import seqloom
from seqloom.config.schema.decoding import BeamConfig, DecodingConfig, GreedyConfig, SampleConfig
from seqloom.core.errors import DataError
from seqloom.inference.options import TEXT_ONLY, UNSPLIT, PredictionOptions
from seqloom.inference.prediction import OutputAttention, Prediction
from seqloom.inference.run import Run, load
from seqloom.inference.texts.segments import TextOutputs
from seqloom.text.protected_spans import find_spans
from support.sentence_runs import SENTENCES
from support.small_runs import train_multilingual
from support.tagged_runs import CASE
from support.tiny_runs import tiny_config

pytestmark = pytest.mark.slow

TEXT = "  Dog runs here. Big cat sits.\tRed man runs. "
DECODINGS: list[DecodingConfig] = [
    GreedyConfig(),
    BeamConfig(width=3),
    SampleConfig(seed=4, samples=2),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def run(sentence_run: Path) -> Run:
    return load(sentence_run)


@pytest.fixture(scope="module")
def tagged(folder: Path) -> Run:
    seqloom.train(tiny_config(*CASE, "training.steps=4", "decoding.max_length=30"), folder / "case")
    return load(folder / "case")


@pytest.fixture(scope="module")
def multilingual(folder: Path) -> Run:
    return load(train_multilingual(folder / "polyglot"))


def assert_equal(first: Prediction, second: Prediction) -> None:
    """Compare all fields."""
    names = [field.name for field in (*fields(Prediction), *fields(OutputAttention))]
    names.remove("attention_values")
    for name in names:
        one, other = getattr(first, name), getattr(second, name)
        if isinstance(one, torch.Tensor):
            assert torch.allclose(one, other, atol=1e-5), name
        elif name in ("score", "log_probabilities"):
            assert one == pytest.approx(other, abs=1e-5), name
        else:
            assert one == other, name


@pytest.mark.parametrize("decoding", DECODINGS, ids=lambda each: each.kind)
def test_a_sentence_has_the_same_prediction_as_without_splitting(
    run: Run, decoding: DecodingConfig
) -> None:
    options = PredictionOptions(heads=True)
    unsplit = PredictionOptions(heads=True, split=False, pass_through=False)
    expected = run.predict(SENTENCES, unsplit, decoding=decoding)
    for outputs, others in zip(
        run.predict(SENTENCES, options, decoding=decoding), expected, strict=True
    ):
        for output, other in zip(outputs, others, strict=True):
            assert_equal(output, other)
            assert output.segments == ()


@pytest.mark.parametrize("decoding", DECODINGS[:2], ids=lambda each: each.kind)
def test_sentences_are_translated_one_by_one_and_joined(run: Run, decoding: DecodingConfig) -> None:
    first, second, third = (each.text for each in run.translate(SENTENCES, decoding=decoding))
    [output] = run.translate([TEXT], decoding=decoding)
    assert output.text == f"  {first} {second}\t{third} "
    assert [each.text for each in output.segments] == [first, second, third]


def test_the_order_of_the_texts_is_kept(run: Run) -> None:
    texts = [TEXT, "", "Dog runs.", "   ", f"{TEXT}\n{TEXT}", "Cat sits. Dog runs."]
    separate = [run.translate([text])[0].text for text in texts]
    assert [each.text for each in run.translate(texts)] == separate
    assert separate[1] == ""
    assert separate[3].strip() == ""


def test_joined_predictions_consist_of_their_segments(run: Run) -> None:
    [[output]] = run.predict([TEXT], PredictionOptions(heads=True))
    parts = output.segments
    assert output.pieces == tuple(piece for part in parts for piece in part.pieces)
    assert output.tokens == tuple(token for part in parts for token in part.tokens)
    weights = [len(part.pieces) for part in parts]
    mean = sum(part.score * weight for part, weight in zip(parts, weights, strict=True))
    assert output.score == pytest.approx(mean / sum(weights))
    assert output.finished == all(part.finished for part in parts)
    shape = (len(output.pieces), len(output.source_pieces))
    for name in ("attention", "alignment_weights", "heads"):
        joined = getattr(output, name)
        assert (joined.shape[0], joined.shape[-1]) == shape
        blocks = [getattr(part, name) for part in parts]
        assert joined.sum() == pytest.approx(sum(float(block.sum()) for block in blocks), rel=1e-5)
        assert torch.equal(joined[-blocks[-1].shape[0] :, ..., -blocks[-1].shape[-1] :], blocks[-1])
    assert len(output.word_of) == len(output.pieces)
    assert len(output.source_word_of) == len(output.source_pieces)


def assert_words_are_consistent(source: str, output: Prediction) -> None:
    """Each link of a segment is a link between the same words of the whole texts."""
    source_words, words = source.split(), output.text.split()
    linked = [(source_words[i], words[j]) for i, j in output.alignment]
    expected = [
        (segment_source[i], part.text.split()[j])
        for part, segment_source in zip(
            output.segments, (text.split() for text in SENTENCES), strict=True
        )
        for i, j in part.alignment
    ]
    assert linked == expected
    labels = output.attention_map(output.attention) if output.attention is not None else None
    assert labels is not None
    assert [label for label in labels.outputs if label != "</s>"] == words


def test_alignments_refer_to_the_words_of_the_whole_text(run: Run) -> None:
    [output] = run.translate([TEXT])
    assert output.alignment
    assert_words_are_consistent(TEXT, output)


def test_the_kth_output_joins_the_kth_outputs_of_the_segments(run: Run) -> None:
    [outputs] = run.translate_n_best([" ".join(SENTENCES)], 3)
    by_sentence = run.translate_n_best(SENTENCES, 3)
    assert [output.text for output in outputs] == [
        " ".join(each[rank].text for each in by_sentence) for rank in range(3)
    ]
    assert run.translate([" ".join(SENTENCES)])[0].text == outputs[0].text


def test_samples_do_not_depend_on_the_division_of_the_list(run: Run) -> None:
    decoding = SampleConfig(seed=3, samples=1, temperature=3.0)
    texts = [TEXT, "Dog runs here.", TEXT, TEXT]
    expected = run.predict(texts, PredictionOptions(), decoding=decoding)
    rest = run.predict(texts[2:], PredictionOptions(first=2), decoding=decoding)
    assert [each[0].text for each in rest] == [each[0].text for each in expected[2:]]


def test_equal_sentences_of_a_text_have_different_samples(run: Run) -> None:
    decoding = SampleConfig(seed=3, samples=1, temperature=3.0)
    [output] = run.translate(["Dog runs here. " * 6], decoding=decoding)
    assert len({part.text for part in output.segments}) > 1


def test_a_text_with_a_prefix_is_not_split(run: Run) -> None:
    text = " ".join(SENTENCES)
    constrained, free = run.translate([text, text], prefixes=["Hund", ""])
    assert constrained.text.startswith("Hund")
    assert constrained.segments == ()
    assert len(free.segments) == 3
    with pytest.raises(DataError, match="2 texts and 1 prefixes"):
        run.translate([text, text], prefixes=["Hund"])


def test_the_setting_of_the_run_decides_and_options_override_it(run: Run) -> None:
    text = " ".join(SENTENCES)
    assert run.config.text.split_sentences is True
    [unsplit] = run.translate([text], split=False)
    assert unsplit.segments == ()
    assert len(unsplit.source_pieces) > len(run.translate(SENTENCES[:1])[0].source_pieces)
    never = load(run.folder, ["text.split_sentences=false"])
    assert never.translate([text])[0].text == unsplit.text
    assert len(never.translate([text], split=True)[0].segments) == 3


@pytest.mark.parametrize(
    "line", ["dog runs here " * 1_900, "doghere" * 3_750], ids=["words", "word"]
)
def test_a_long_line_without_stops_comes_back_whole(run: Run, line: str) -> None:
    [output] = run.translate([line], attention=False)
    assert len(output.segments) > 50
    assert all(segment.text for segment in output.segments)


def test_evaluation_does_not_split(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = run.evaluate("test")
    texts = [example.source for example in expected.examples]
    whole = run.predict(texts, UNSPLIT)
    assert list(expected.outputs) == [each[0].text for each in whole]
    monkeypatch.setattr("seqloom.inference.texts.preparation.split_text", _fail)
    assert run.evaluate("test").scores == expected.scores


def _fail(*_: object) -> None:
    raise AssertionError("the text was split")


def test_a_leading_tag_is_repeated_for_every_sentence(tagged: Run) -> None:
    first, second = tagged.translate(["<U> Ab ba.", "<U> Ba."], split=True)
    [output] = tagged.translate([" <U> Ab ba. Ba."], split=True)
    assert output.text == f" {first.text} {second.text}"
    assert output.warnings == ()


def test_a_repeated_tag_is_the_first_word_of_the_text(multilingual: Run) -> None:
    decoding = GreedyConfig(min_length=3)
    first, second = multilingual.translate(["<2fr> big dog", "<2fr> man here"], decoding=decoding)
    [output] = multilingual.translate([" <2fr> big dog\nman here"], decoding=decoding, split=True)
    assert output.text == f" {first.text}\n{second.text}"
    words = len(first.text.split())
    links = [(i + 2, words + j) for i, j in second.alignment if i > 0]
    assert links
    assert output.alignment == (*first.alignment, *links)
    # The source words are <2fr>, big, dog, man and here.
    assert first.source_word_of == (0, 1, 2, -1)
    assert output.source_word_of == (0, 1, 2, -1, 0, 3, 4, -1)


def test_splitting_comes_before_pivot_languages(multilingual: Run) -> None:
    """The outputs have no stops, so that a joined pivot text could not be split again."""
    sentences = ["dog runs.", "Big man sits."]
    options = PredictionOptions(to=["de", "fr"], split=True)
    decoding = GreedyConfig(min_length=2)
    [[joined]] = multilingual.predict([" ".join(sentences)], options, decoding=decoding)
    outputs = multilingual.predict(sentences, options, decoding=decoding)
    separate = [each[0].text for each in outputs]
    assert joined.text == " ".join(separate)
    assert len(joined.segments) == 2


def test_the_tag_of_the_target_language_is_not_a_word_of_the_text(multilingual: Run) -> None:
    lines = ["dog runs", "big man here"]
    decoding = GreedyConfig(min_length=3)
    text = "\n".join(lines)
    [joined] = multilingual.translate([text], to="fr", decoding=decoding, split=True)
    first, second = multilingual.translate(lines, to="fr", decoding=decoding)
    assert joined.text == f"{first.text}\n{second.text}"
    words = len(first.text.split())
    links = [(i + 2, words + j) for i, j in second.alignment]
    assert joined.alignment == (*first.alignment, *links)
    [[tagged]] = multilingual.predictor.predict(
        ["<2fr> big man here"], decoding, PredictionOptions(attention=True)
    )
    assert second.alignment
    assert second.alignment == tuple((i - 1, j) for i, j in tagged.alignment if i)
    assert second.source_word_of == tagged.source_word_of


def test_labels_are_never_split(folder: Path) -> None:
    from support.small_runs import train_labeller

    labeller = load(train_labeller(folder / "labeller"))
    [[output]] = labeller.label(["dog. Katze. Hund."])
    assert output.segments == ()
    assert output.unknown


# Protected spans


@pytest.mark.parametrize("text", ["😀😀", "12:30", "https://x.org", "…", "42 %", " 7 "])
def test_a_text_with_nothing_to_translate_is_copied(run: Run, text: str) -> None:
    [output] = run.translate([text])
    assert (output.text, output.copied, output.finished, output.score) == (text, True, True, 0.0)
    assert output.pieces == ()
    assert not run.translate([text], pass_through=False)[0].copied


def test_spans_at_the_ends_are_put_back(run: Run) -> None:
    [plain] = run.translate(["Dog runs here."])
    [output] = run.translate(["😀  Dog runs here. https://x.org"])
    assert output.text == f"😀  {plain.text} https://x.org"
    assert output.pieces == plain.pieces
    assert output.alignment == tuple((i + 1, j + 1) for i, j in plain.alignment)
    assert output.copied_parts == ("😀", "https://x.org")


@pytest.mark.parametrize("attention", [True, False])
def test_a_lost_span_in_the_middle_is_inserted_with_a_warning(run: Run, attention: bool) -> None:
    [plain] = run.translate(["Dog runs here big."])
    [output] = run.translate(["Dog runs 😀 here big."], attention=attention)
    words = output.text.split()
    assert words.count("😀") == 1
    assert [word for word in words if word != "😀"] == plain.text.split()
    [warning] = output.warnings
    assert "position that seqloom chose" in warning
    assert (output.attention is not None) == attention
    assert output.text == run.translate(["Dog runs 😀 here big."])[0].text


def test_words_around_a_span_without_spaces_are_translated_as_two_words(run: Run) -> None:
    [plain] = run.translate(["Dog runs here big."])
    [output] = run.translate(["Dog runs😀here big."])
    assert [word for word in output.text.split() if word != "😀"] == plain.text.split()
    # "runs😀here" is one word of the source.
    joined = [min(source, 1) if source < 3 else source - 1 for source, _ in plain.alignment]
    assert {source for source, _ in output.alignment} == set(joined)


def test_missing_numbers_are_reported(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seqloom.inference.texts.preparation.find_spans", lambda *_: [])
    [output] = run.translate(["Dog runs 1234 here."])
    assert "the number 1234 of the source is missing in the output" in output.warnings
    assert run.translate(["Dog runs 1234 here."], pass_through=False)[0].warnings == ()


def test_unknown_characters_are_reported(run: Run) -> None:
    first, second = run.translate(["Dog ß runs. Žž 😀.", "Dog runs."])
    assert first.unknown == ("ß", "Ž", "ž", "😀")
    assert first.to_json()["unknown"] == first.unknown
    assert second.unknown == ()
    assert run.score(["Dog ß"], ["Hund"])[0].unknown == ("ß",)


FRAGMENTS: Sequence[Callable[[Random], str]] = (
    lambda random: random.choice(["Dog", "runs", "here", "big", "cat", "Man"]),
    lambda random: random.choice(["😀", "👍🏽", "👨\u200d👩\u200d👧", "🇩🇪", "❤️", "3️⃣"]),
    lambda random: f"https://x.org/{random.randint(0, 999)}?q=ä",
    lambda random: f"mail{random.randint(0, 99)}@example.org",
    lambda random: str(random.randint(0, 10**6)),
    lambda random: random.choice(["שלום עולם", "مرحبا", "你好。再见", "Ž\u0301a\u0301"]),
    lambda random: random.choice(
        ["e" + "\u0301" * 40, "\u200b", "\x00", "\x07", "\ufeff", "￭", "▁"]
    ),
    lambda random: random.choice([".", "!", "?", "…", ",", "—", "(", ")", "„", "“"]),
    lambda random: random.choice(["\t", "  ", "\u00a0", "\u3000", "\u2028"]),
    lambda random: "x" * random.randint(1, 300),
)


def random_line(random: Random) -> str:
    count = random.choice([0, 1, 2, 5, 10, 20])
    joined = [
        random.choice(FRAGMENTS)(random) + random.choice([" ", " ", "", ". "]) for _ in range(count)
    ]
    return "".join(joined)


def check_random_lines(run: Run, count: int) -> None:
    random = Random(11)
    lines = [random_line(random) for _ in range(count)]
    outputs = [
        each[0] for each in run.predict(lines, TEXT_ONLY, decoding=GreedyConfig(max_length=30))
    ]
    assert len(outputs) == len(lines)
    for line, output in zip(lines, outputs, strict=True):
        assert math.isnan(output.score) or output.score <= 0
        for part in output.segments or (output,):
            assert part.text.strip() or part.warnings or not line.strip()
        for start, end in find_spans(line, run.task.source_tokenizer):
            for word in line[start:end].split():
                assert word in output.text, (line, output.text)


def test_random_lines_keep_their_protected_spans(run: Run) -> None:
    check_random_lines(run, 200)


def test_an_empty_output_is_reported(run: Run) -> None:
    prepared = run.prepare_texts(["Dog runs."], TEXT_ONLY, run.config.decoding, None)
    found = {0: [Prediction("", -1.0)]}
    [[output]] = TextOutputs(prepared.task, prepared.texts[0], found).by_segment()
    assert output.warnings == ("the output of 'Dog runs.' is empty",)
