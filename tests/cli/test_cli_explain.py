"""`seqloom explain` and `seqloom gradients` on small runs."""

import copy
import json
import math
import re
from pathlib import Path

import pytest

from seqloom.analysis.explanation import HeadSelection, explain
from seqloom.analysis.gradients import profile_gradients
from seqloom.analysis.output import training_batch
from seqloom.core.errors import ConfigError
from seqloom.inference.run import load
from seqloom.text.vocabulary import END
from seqloom.training.loop import train
from support.cli_runner import run_cli
from support.tiny_runs import LANGUAGE_MODEL, TRANSFORMER, tiny_config

pytestmark = pytest.mark.slow

SHORT = ("training.steps=2", "training.evaluate_every=2", "training.checkpoint_every=2")


def train_run(folder: Path, *changes: str) -> Path:
    """Train for two steps."""
    train(tiny_config(*SHORT, *changes), folder)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("inside")


@pytest.fixture(scope="module")
def reverse(folder: Path) -> Path:
    return train_run(folder / "reverse")


@pytest.fixture(scope="module")
def sentences(folder: Path) -> Path:
    return train_run(folder / "sentences", *LANGUAGE_MODEL)


@pytest.fixture(scope="module")
def bottleneck(folder: Path) -> Path:
    return train_run(folder / "bottleneck", "model.decoder.attention.kind=none")


def test_step_is_explained_from_input_token_to_best_tokens(reverse: Path) -> None:
    result = run_cli("explain", reverse, "abc", "--target", "cba", "--step", 2)
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[0] == "step 2 of 4   layer 1, head 1"
    assert lines[1].split()[-4:] == ["a", "b", "c", "</s>"]
    assert lines[2].split()[-4:] == ["c", "[b]", "a", "</s>"]
    assert lines[3].split()[-1] == "c"
    names = ["embedding", "state", "new state", "query", "keys", "scores", "weights", "values"]
    names += ["context", "features", "logits", "probabilities"]
    shown = [line.split("  ")[1] for line in lines if line[:2] == "  " and line[2:3].isalpha()]
    assert [name for name in shown if name in names] == names
    assert "e = qᵀ W k" in result.stdout
    assert sum(" → " in line for line in lines) == 1  # marks the chosen token


def test_json_contains_all_values(reverse: Path) -> None:
    result = run_cli("explain", reverse, "abc", "--target", "cba", "--step", 2, "--json")
    record = json.loads(result.stdout)
    run = load(reverse)
    expected = run.score(["abc"], ["cba"])[0]
    assert record["answer"]["piece"] == "b"
    assert record["answer"]["probability"] == pytest.approx(
        math.exp(expected.log_probabilities[1]), rel=1e-4
    )
    parts = {part["name"]: part for part in record["parts"]}
    assert expected.attention is not None
    assert parts["weights"]["values"] == pytest.approx(expected.attention[1].tolist(), abs=1e-6)
    assert parts["weights"]["labels"] == ["a", "b", "c", "</s>"]
    assert parts["keys"]["shape"] == [4, 16]
    assert len(parts["keys"]["values"][0]) == 16
    assert len(record["best"]) == 5
    assert record["best"] == sorted(record["best"], key=lambda token: -token["probability"])


def test_full_prints_every_number(reverse: Path) -> None:
    short = run_cli("explain", reverse, "abc").stdout
    full = run_cli("explain", reverse, "abc", "--full").stdout
    assert "…" in short
    assert "…" not in full
    features = next(part for part in explain(load(reverse), "abc", 1).parts if part.name == "query")
    for value in features.values.tolist():
        assert f"{value:.3f}" in full


def test_example_needs_no_run() -> None:
    result = run_cli("example", "attention")
    words = result.stdout.split()
    for number in ("1054", "852", "-396", "23", "46"):
        assert number in words
    assert run_cli("example", "attention", "runs/x").exit_code == 2


def test_documentation_shows_the_output_of_the_example() -> None:
    page = Path(__file__).parents[2] / "docs" / "analysis" / "steps-and-gradients.md"
    blocks = page.read_text(encoding="utf-8").split("```text\n")[1:]
    example = next(block for block in blocks if "1054" in block).partition("```")[0]
    assert example in run_cli("example", "attention").stdout


def test_language_model_is_explained_with_its_prompt(sentences: Path) -> None:
    options = ("abc", "--step", 4, "--set", "decoding.kind=greedy")
    result = run_cli("explain", sentences, *options)
    assert result.exit_code == 0, result.stderr
    record = json.loads(run_cli("explain", sentences, *options, "--json").stdout)
    assert record["source"] == []
    assert record["previous"]["piece"] == "c"


def test_infinite_logits_are_null_in_json(folder: Path) -> None:
    """A label decoder gives END a logit of -inf before the last label."""
    (folder / "labels.tsv").write_text("ab\tv c\nba\tc v\n" * 20, encoding="utf-8")
    corpus = f"{{kind='tsv', path='{folder / 'labels.tsv'}'}}"
    labels = train_run(
        folder / "labels",
        *("task.kind=labels", "text.target_tokenizer={kind='whitespace'}"),
        *(f"data.{split}={corpus}" for split in ("train", "dev", "test")),
        "model.decoder={kind='labels', pooling='none'}",
    )
    result = run_cli("explain", labels, "ab", "--step", 2, "--json")
    assert result.exit_code == 0, result.stderr
    parts = {part["name"]: part for part in json.loads(result.stdout)["parts"]}
    assert parts["logits"]["values"][END] is None
    assert parts["probabilities"]["values"][END] == 0
    assert run_cli("explain", labels, "ab", "--step", 3).exit_code == 0
    gradients = run_cli("gradients", labels, "ab", "v c", "--json")
    assert json.loads(gradients.stdout)["source"]["labels"][:2] == ["a", "b"]
    states = json.loads(
        run_cli("gradients", labels, "ab", "v c", "--at", "states", "--json").stdout
    )
    assert states["encoder"]
    assert states["decoder"] == []
    attention = run_cli("gradients", labels, "ab", "v c", "--at", "attention")
    assert attention.exit_code == 78
    assert "label decoder" in attention.stderr


def test_decoder_without_attention_shows_its_initial_state(bottleneck: Path) -> None:
    result = run_cli("explain", bottleneck, "abc", "--target", "cba", "--step", 2)
    assert "encoder's last state" in result.stdout
    assert "weights" not in result.stdout


@pytest.mark.parametrize(
    ("options", "exit_code", "message"),
    [
        (["abc", "--target", "cb", "--step", "9"], 65, "step 9"),
        (["abc", "--step", "0"], 65, "step 0"),
        (["abc", "--step", "-1"], 65, "step -1"),
        (["  "], 65, "the text is blank"),
        ([], 65, "the text is blank"),
        (["abc", "--layer", "2"], 78, "layer 2"),
        (["abc", "--head", "3"], 78, "head 3"),
        (["abc", "--head", "0"], 78, "head 0"),
        (["abc", "--set", "model.tie=all"], 78, "Only model settings that fit the trained weights"),
        (["abc", "--set", "training.steps=3"], 78, "Only settings of decoding"),
    ],
)
def test_invalid_explain_options_are_rejected(
    reverse: Path, options: list[str], exit_code: int, message: str
) -> None:
    result = run_cli("explain", reverse, *options)
    assert (result.exit_code, result.stdout) == (exit_code, "")
    assert message in result.stderr


def test_head_without_attention_names_the_setting(bottleneck: Path) -> None:
    result = run_cli("explain", bottleneck, "abc", "--head", "1")
    assert result.exit_code == 78
    assert "model.decoder.attention.kind=attention" in result.stderr


def test_ensemble_cannot_be_explained(reverse: Path) -> None:
    run = load([reverse, reverse])
    with pytest.raises(ConfigError, match="explain"):
        explain(run, "abc", 1, target="cba", focus=HeadSelection())


def test_gradients_of_a_sentence_are_listed_by_token(reverse: Path, tmp_path: Path) -> None:
    result = run_cli("gradients", reverse, "abc", "cba", "--step", 2, "--out", tmp_path / "g.svg")
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert re.match(r"gradients of .* 2 \(b\), loss ", lines[0])
    assert [line.split()[0] for line in lines if line.startswith("  ")] == [
        *("state", "a", "b", "c", "</s>"),
        *("own", "<s>", "c", "b", "a"),
    ]
    assert (tmp_path / "g.svg").read_bytes().startswith(b"<svg")
    numbers = run_cli("gradients", reverse, "abc", "cba", "--step", 2, "--json")
    record = json.loads(numbers.stdout)
    assert record["target"]["whole"][2:] == [0.0, 0.0]  # later inputs have no gradient
    assert record["loss"] == pytest.approx(
        -load(reverse).score(["abc"], ["cba"])[0].log_probabilities[1], rel=1e-4
    )


def test_means_over_files_are_aligned_at_the_end_of_sentences(
    reverse: Path, tmp_path: Path
) -> None:
    pairs = [("abc", "cba"), ("ab", "ba"), ("", ""), ("dcba", "abcd")]
    for name, side in (("source", 0), ("target", 1)):
        text = "".join(f"{pair[side]}\n" for pair in pairs)
        (tmp_path / name).write_text(text, encoding="utf-8")
    files = (tmp_path / "source", tmp_path / "target")
    result = run_cli("gradient-profile", reverse, *files, "--out", tmp_path / "g.json")
    assert result.exit_code == 0, result.stderr
    assert "skipped 1 of 4 lines: blank" in result.stderr
    record = json.loads((tmp_path / "g.json").read_bytes())
    assert record["counts"]["source"] == [3, 3, 3, 2, 1]
    run = load(reverse)
    separate = [profile_gradients(run, [source], [target]) for source, target in pairs if source]
    for distance, count in enumerate(record["counts"]["source"]):
        norms = [
            each.source.whole[distance] for each in separate if len(each.source.whole) > distance
        ]
        assert len(norms) == count
        mean = sum(norms) / count
        assert record["source"]["whole"][distance] == pytest.approx(mean, rel=1e-4)
    short = run_cli("gradient-profile", reverse, *files, "--step", 4)
    assert "skipped 1 of 3 sentences: fewer than 4 target tokens" in short.stderr


def test_gradients_of_a_language_model_have_no_source(sentences: Path) -> None:
    result = run_cli("gradients", sentences, "abc")
    assert result.exit_code == 0, result.stderr
    record = json.loads(run_cli("gradients", sentences, "abc", "--json").stdout)
    assert record["source"]["labels"] == []
    assert record["target"]["labels"][:2] == ["<s>", "a"]


@pytest.mark.parametrize(
    ("options", "exit_code", "message"),
    [
        (["abc", "cba", "--step", "5"], 65, "step 5"),
        ([" "], 65, "the text is blank"),
        (["abc", "--out", "x.gif"], 78, "png, svg, pdf"),
        (["abc", "--at", "nowhere"], 2, "'nowhere' is not one of"),
        (["abc", "--layer", "1", "--head", "2"], 2, "--layer and --head can only be used with"),
        (["abc", "--full", "--at", "attention"], 2, "--full can only be used with"),
        (["abc", "--at", "states", "--step", "9"], 65, "step 9"),
        (["abc", "--at", "attention", "--head", "3"], 78, "head 3"),
        (["abc", "--at", "attention", "--layer", "0"], 78, "layer 0"),
        (["abc", "--at", "weights", "--out", "x.gif"], 78, "png, svg, pdf"),
    ],
)
def test_invalid_gradients_options_are_rejected(
    reverse: Path,
    options: list[str],
    exit_code: int,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run_cli("gradients", reverse, *options)
    assert (result.exit_code, result.stdout) == (exit_code, "")
    assert message in " ".join(result.stderr.replace("│", " ").split())


@pytest.mark.parametrize(
    ("arguments", "exit_code", "message"),
    [
        (["abc"], 78, "needs two files"),
        (["abc", "cba"], 66, "abc: no such file"),
        (["one", "two"], 65, "one: ends after line 1, but the other file has more lines"),
        (["blank", "blank"], 65, "all lines are blank"),
        (["one", "one", "--step", "9"], 65, "step 9"),
        (["one", "one", "--step", "0"], 65, "step 0"),
        (["one", "one", "--out", "x.gif"], 78, "png, svg, pdf"),
    ],
)
def test_invalid_files_and_options_of_a_gradient_profile_are_rejected(
    reverse: Path,
    arguments: list[str],
    exit_code: int,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in (("one", "ab\n"), ("two", "ab\nba\n"), ("blank", "\n")):
        Path(name).write_text(text, encoding="utf-8")
    result = run_cli("gradient-profile", reverse, *arguments)
    assert (result.exit_code, result.stdout) == (exit_code, "")
    assert message in result.stderr


def test_gradients_of_a_language_model_take_one_text(sentences: Path) -> None:
    result = run_cli("gradients", sentences, "I see", "it.")
    assert result.exit_code == 78
    assert "Give one text" in result.stderr


def test_gradients_at_states_attention_and_weights_are_those_of_the_training_loss(
    reverse: Path, tmp_path: Path
) -> None:
    run = load(reverse)
    output = run.score(["abc"], ["cba"])[0]
    batch = training_batch(run, ["abc"], [output])
    model = copy.deepcopy(run.model).requires_grad_(True)
    loss = run.task.loss(model, batch)
    loss.backward()
    records = {}
    for place in ("states", "attention", "weights"):
        figure = tmp_path / f"{place}.png"
        options = ("abc", "cba", "--at", place, "--json", "--out", figure)
        result = run_cli("gradients", reverse, *options)
        assert result.exit_code == 0, result.stderr
        assert figure.read_bytes().startswith(b"\x89PNG")
        records[place] = json.loads(result.stdout)
        assert records[place]["loss"] == pytest.approx(loss.item(), rel=1e-4)
    norms = {each["name"]: each["norm"] for each in records["weights"]["weights"]}
    for name, parameter in model.named_parameters():
        expected = 0.0 if parameter.grad is None else float(parameter.grad.norm())
        assert norms[name] == pytest.approx(expected, rel=1e-3, abs=1e-6)
    [decoder] = records["states"]["decoder"]
    assert decoder["labels"] == ["initial", "c", "b", "a", "</s>"]
    assert [layer["name"] for layer in records["states"]["encoder"]] == ["layer 1 →", "layer 1 ←"]
    [head] = records["attention"]["attention"]
    # A softmax does not change if a constant is added to all scores.
    assert [sum(row) for row in head["scores"]] == pytest.approx([0.0] * 4, abs=1e-6)


def test_backward_pass_of_an_attention_step_is_printed_with_formulas(reverse: Path) -> None:
    options = ("abc", "cba", "--at", "attention", "--step", 2)
    result = run_cli("gradients", reverse, *options)
    assert result.exit_code == 0, result.stderr
    formulas = ["L = -log p(y₂)", "∂L/∂a₂", "∂L/∂v = α ∂L/∂a₂", "∂L/∂α = v · ∂L/∂a₂"]
    formulas += ["∂L/∂e = (diag(α) - α αᵀ) ∂L/∂α", "∂L/∂q = Σ ∂L/∂e · W k", "∂L/∂k = ∂L/∂e · Wᵀ q"]
    positions = [result.stdout.index(formula) for formula in formulas]
    assert positions == sorted(positions)
    assert "state s₁" in result.stdout
    full = run_cli("gradients", reverse, *options, "--full").stdout
    assert "…" in result.stdout
    assert "…" not in full
    record = json.loads(run_cli("gradients", reverse, *options, "--json").stdout)
    names = [part["name"] for part in record["explanation"]["parts"]]
    assert {"context", "weights", "scores", "query", "keys"} <= set(names)


def test_hard_attention_has_no_gradient_at_scores(folder: Path) -> None:
    hard = train_run(folder / "hard", "model.decoder.attention.selection=argmax")
    result = run_cli("gradients", hard, "abc", "cba", "--at", "attention")
    assert "gradients at scores, queries and keys are zero" in " ".join(result.stdout.split())
    explained = run_cli("gradients", hard, "abc", "cba", "--at", "attention", "--step", 1)
    assert "∂L/∂q = 0, because ∂L/∂e = 0" in explained.stdout
    record = json.loads(
        run_cli("gradients", hard, "abc", "cba", "--at", "attention", "--json").stdout
    )
    [head] = record["attention"]
    assert not any(map(any, head["scores"]))
    assert any(map(any, head["weights"]))


def test_gradients_inside_attention_of_a_transformer_have_layers_and_heads(folder: Path) -> None:
    transformer = train_run(folder / "transformer", *TRANSFORMER)
    options = ("abc", "cba", "--at", "attention", "--layer", 1, "--head", 2)
    result = run_cli("gradients", transformer, *options)
    assert "layer 1, head 2" in result.stdout
    record = json.loads(run_cli("gradients", transformer, *options, "--json").stdout)
    assert [(head["layer"], head["head"]) for head in record["attention"]] == [(1, 1), (1, 2)]
    states = run_cli("gradients", transformer, "abc", "cba", "--at", "states")
    assert states.exit_code == 0, states.stderr


def test_models_without_attention_have_gradients_at_states_and_weights(
    bottleneck: Path, sentences: Path
) -> None:
    for run, texts in ((bottleneck, ("abc", "cba")), (sentences, ("abc",))):
        for place in ("states", "weights"):
            result = run_cli("gradients", run, *texts, "--at", place)
            assert result.exit_code == 0, result.stderr
            assert "decoder layer 1" in result.stdout
    result = run_cli("gradients", bottleneck, "abc", "cba", "--at", "attention")
    assert result.exit_code == 78
    assert "model.decoder.attention.kind" in result.stderr
    result = run_cli("gradients", sentences, "abc", "--at", "attention")
    assert result.exit_code == 78
    assert "reads no source to attend to" in result.stderr
