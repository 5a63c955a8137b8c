"""The Unicode form of a text does not change translations and scores, wherever the text is given."""

from itertools import islice
from pathlib import Path
from typing import Literal
from unicodedata import normalize

import pytest

import seqloom
from seqloom.analysis.comparison import compare_runs
from seqloom.config.schema.corpora import BundledConfig
from seqloom.config.schema.names import EngineKind
from seqloom.config.schema.recipe import RunConfig
from seqloom.data.example import Example
from seqloom.data.readers.bundled import read_bundled
from seqloom.inference.evaluation.report import compare_reports
from seqloom.text.vocabulary import SPECIAL_TOKENS, UNKNOWN
from support.cli_runner import run_cli
from support.server_process import start_server
from support.tiny_runs import tiny_config
from support.toy_languages import WORDS

pytestmark = pytest.mark.slow

TRANSFORMER = tuple(
    f"model.{side}={{kind='transformer', width=16, layers=1, feedforward=32, dropout=0.0, "
    "attention={heads=2}, positions={kind='learned', max_length=40}}"
    for side in ("encoder", "decoder")
)
PAIRS = [
    (f"{WORDS['cs'][i]} {WORDS['cs'][j]}", f"{WORDS['de'][i]} {WORDS['de'][j]}")
    for i in range(8)
    for j in range(8)
]
SOURCES = [source for source, _ in PAIRS[:12]]
FORMS: tuple[Literal["NFC", "NFD", "NFKC", "NFKD"], ...] = ("NFC", "NFD", "NFKC", "NFKD")
DECOMPOSED = [normalize("NFD", source) for source in SOURCES]


def config_of(folder: Path, *settings: str) -> RunConfig:
    """Translation from Czech to German. The sources of the split "dev" and all texts of the split
    "test" are decomposed."""
    files = {
        "train": PAIRS,
        "dev": [(normalize("NFD", source), target) for source, target in PAIRS],
        "test": [(normalize("NFD", source), normalize("NFD", target)) for source, target in PAIRS],
    }
    for name, pairs in files.items():
        text = "".join(f"{source}\t{target}\n" for source, target in pairs)
        (folder / f"{name}.tsv").write_text(text, encoding="utf-8")
    data = [f"data.{name}={{kind='tsv', path='{name}.tsv'}}" for name in files]
    return tiny_config(
        f"data.folder='{folder}'", *data, *TRANSFORMER, "training.evaluate_every=100", *settings
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unicode")
    subwords = ("text.tokenizer={kind='subwords', size=310}", "text.byte_fallback=true")
    config = config_of(folder, *subwords, "training.steps=100", "training.batch_tokens=300")
    seqloom.train(config, folder / "run")
    return folder / "run"


@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
def test_translations_are_the_same_in_python(run: Path, engine: EngineKind) -> None:
    loaded = seqloom.load(run, engine=engine)
    outputs = [output.text for output in loaded.translate(SOURCES)]
    assert [output.text for output in loaded.translate(DECOMPOSED)] == outputs
    assert len(set(outputs)) > 6


def test_forced_targets_have_the_same_scores(run: Path) -> None:
    loaded = seqloom.load(run)
    targets = [target for _, target in PAIRS[:12]]
    scores = [
        [forced.log_probabilities for forced in loaded.score(sources, forms)]
        for sources, forms in (
            (SOURCES, targets),
            (DECOMPOSED, [normalize("NFD", target) for target in targets]),
        )
    ]
    assert scores[0] == scores[1]


def test_translations_are_the_same_on_the_command_line(run: Path) -> None:
    outputs = [
        run_cli("translate", run, stdin="\n".join(sources).encode())
        for sources in (SOURCES, DECOMPOSED)
    ]
    assert outputs[0].exit_code == 0
    assert outputs[0].stdout == outputs[1].stdout
    assert len(set(outputs[0].stdout.splitlines())) > 6


def test_translations_and_prefixes_are_the_same_over_http(run: Path) -> None:
    server = start_server([run])
    try:
        texts, prefixed = (
            [
                [one["text"] for one in server.post_json("/api/translate", **body)["translations"]]
                for body in bodies
            ]
            for bodies in (
                [{"texts": SOURCES}, {"texts": DECOMPOSED}],
                [
                    {"texts": sources[1:2], "prefix": prefix, "split": False}
                    for sources, prefix in ((SOURCES, "läuft"), (DECOMPOSED, "la\u0308uft"))
                ],
            )
        )
    finally:
        server.stop()
    assert texts[0] == texts[1]
    assert len(set(texts[0])) > 6
    assert prefixed[0] == prefixed[1]
    assert prefixed[0][0].startswith("läuft")


@pytest.mark.long
def test_500_bundled_sentences_are_translated_the_same_in_every_form(tmp_path: Path) -> None:
    result = run_cli("demo", "--quick", "--run", tmp_path / "demo")
    assert result.exit_code == 0, result.stderr
    examples = read_bundled(BundledConfig(source="de", target="en"), "train")
    changed = (
        text for text in (str(one.source) for one in examples) if text != normalize("NFD", text)
    )
    sentences = list(islice(changed, 500))
    loaded = seqloom.load(tmp_path / "demo")
    server = start_server([tmp_path / "demo"])
    outputs = []
    try:
        for form in FORMS:
            texts = [normalize(form, text) for text in sentences]
            printed = run_cli("translate", tmp_path / "demo", stdin="\n".join(texts).encode())
            answers = [
                server.post_json("/api/translate", texts=texts[start : start + 25])
                for start in range(0, len(texts), 25)
            ]
            outputs.append(
                (
                    [output.text for output in loaded.translate(texts)],
                    printed.stdout.splitlines(),
                    [one["text"] for answer in answers for one in answer["translations"]],
                )
            )
    finally:
        server.stop()
    # The batches of the three ways differ, so a hardly trained model may choose another of two
    # words that are equally probable up to rounding. The forms of one way must not differ.
    for by_form in zip(*outputs, strict=True):
        assert all(texts == by_form[0] for texts in by_form)
        assert len(by_form[0]) == 500
        assert len(set(by_form[0])) > 100


def test_scores_do_not_depend_on_the_form_of_the_references(run: Path) -> None:
    loaded = seqloom.load(run)
    usual, decomposed = loaded.evaluate("dev"), loaded.evaluate("test", lowercase=True)
    for first, second in zip(usual.scores[:2], decomposed.scores[:2], strict=True):
        assert first.value == second.value
        assert str(second.signature).endswith("|unicode:nfc")
        assert "unicode" not in str(first.signature)
    assert usual.by_length[0].score.value == decomposed.by_length[0].score.value
    [lowercased] = [one for one in decomposed.scores if one.name == "BLEU lower-cased"]
    assert str(lowercased.signature).endswith("|unicode:nfc")
    for comparison in compare_reports(usual, decomposed):
        assert comparison.baseline.score == comparison.system.score
        assert comparison.signature.endswith("|unicode:nfc")
    assert comparison.system.score > 10


def test_comparisons_do_not_depend_on_the_form_of_the_references(run: Path) -> None:
    loaded = seqloom.load(run)
    decoding = loaded.config.decoding
    qualities = []
    for form in ("NFC", "NFD"):
        texts = [[normalize(form, text) for text in pair] for pair in PAIRS[:6]]
        examples = [Example(source, target, (target,), "") for source, target in texts]
        comparison = compare_runs((loaded, loaded), examples, (decoding, decoding))
        qualities.append([pair.qualities for pair in comparison.pairs])
    assert qualities[0] == qualities[1]


def test_unknown_characters_are_translated_as_bytes_by_both_engines(run: Path) -> None:
    texts = ["☃", "kočka ☃", "漢字 muž"]
    outputs = []
    for engine in ("torch", "ctranslate2"):
        predictions = seqloom.load(run, engine=engine).translate(texts)
        outputs.append([output.text for output in predictions])
    assert outputs[0] == outputs[1]
    [prediction] = seqloom.load(run).translate(["☃"])
    assert SPECIAL_TOKENS[UNKNOWN] not in prediction.source_pieces
    assert "<0xE2>" in prediction.source_pieces


def test_compatibility_characters_are_the_same_with_nfkc(tmp_path: Path) -> None:
    config = config_of(tmp_path, "text.normalization=nfkc", "training.steps=30")
    seqloom.train(config, tmp_path / "run")
    loaded = seqloom.load(tmp_path / "run")
    wide = ["ｐｅｓ ｋｏčｋａ", *(normalize("NFKD", source) for source in SOURCES)]
    outputs = [output.text for output in loaded.translate(wide)]
    assert outputs == [output.text for output in loaded.translate(["pes kočka", *SOURCES])]
