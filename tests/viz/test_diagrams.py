"""SVG diagrams: well-formed, readable, and with the numbers that the model computes."""

import subprocess
import sys
import xml.etree.ElementTree as xml
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import seqloom
from seqloom import viz
from seqloom.analysis import (
    ForwardTrace,
    LookupTable,
    explain,
    look_up,
    search_example,
    trace_forward,
)
from seqloom.analysis.forward_trace import LayerStates, recurrent_cells
from seqloom.core.errors import ConfigError
from seqloom.models import DecoderModule, Model
from seqloom.models.interface import ContextReader
from seqloom.models.recurrent import ContextUse, context_readers
from seqloom.nn import DecoderLayer, EncoderLayer, FeedForward, MultiHeadAttention
from seqloom.viz.diagrams.transformer_layer import layer_of_paper
from seqloom.viz.drawing import format_entry
from support.cli_runner import run_cli
from support.tiny_runs import tiny_config

SVG = "{http://www.w3.org/2000/svg}"
LANGUAGE_MODEL = ForwardTrace(
    source=(),
    inputs=("<s>", "▁I", "▁am"),
    output=("▁I", "▁am", "</s>"),
    encoder_cell=None,
    decoder_cell="lstm",
    encoder=(),
    decoder=(LayerStates("layer 1", torch.tensor([[0.125, -3.0], [4.5, -0.001], [1.0, 2.0]])),),
    initial=torch.zeros(2),
    attention=None,
    probabilities=torch.tensor([0.25, 0.5, 0.75]),
)
BOTH_DIRECTIONS = ForwardTrace(
    source=("▁Ja", "</s>"),
    inputs=("<s>", "▁I", "▁am"),
    output=("▁I", "▁am", "</s>"),
    encoder_cell="gru",
    decoder_cell="gru",
    encoder=(
        LayerStates("layer 1 →", torch.full((2, 4), 0.1)),
        LayerStates("layer 1 ←", torch.full((2, 4), 0.5)),
    ),
    decoder=(LayerStates("layer 1", torch.ones(3, 8)),),
    initial=torch.zeros(8),
    attention=torch.full((3, 2), 0.5),
    probabilities=torch.tensor([0.25, 0.5, 0.75]),
    contexts=torch.tensor([[7.0, 8.0]]).expand(3, 2),
    readers=frozenset({"state", "output"}),
)


def texts(figure: viz.Svg) -> list[str]:
    """The texts of a figure. Also checks that it is well-formed and has a description."""
    root = xml.fromstring(figure)
    assert root.get("role") == "img"
    assert (root.get("aria-label") or "").endswith(".")
    return [element.text or "" for element in root.iter(f"{SVG}text")]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, session_cache: Path) -> seqloom.Run:
    """A recurrent model with attention that has hardly been trained."""
    folder = tmp_path_factory.mktemp("diagrams") / "run"
    seqloom.train(tiny_config("training.steps=2", "training.evaluate_every=2"), folder)
    return seqloom.load(folder)


@pytest.mark.slow
def test_forward_trace_has_the_probabilities_and_the_attention_of_the_run(run: seqloom.Run) -> None:
    trace = trace_forward(run, "abc", "cb")
    [scored] = run.score(["abc"], ["cb"])
    assert scored.attention is not None
    assert trace.attention is not None
    torch.testing.assert_close(trace.probabilities.log(), torch.tensor(scored.log_probabilities))
    torch.testing.assert_close(trace.attention, scored.attention)
    assert trace.output == scored.pieces
    assert trace.source == scored.source_pieces


@pytest.mark.slow
def test_forward_trace_has_the_states_of_the_encoder(run: seqloom.Run) -> None:
    trace = trace_forward(run, "abc", "cb")
    with torch.inference_mode():
        memory = run.predictor.encode([run.task.prepare("abc")])
    states = torch.cat([layer.states for layer in trace.encoder], dim=-1)  # both directions
    torch.testing.assert_close(states, memory.states[0])


@pytest.mark.slow
def test_encoder_decoder_shows_probabilities_attention_and_states(run: seqloom.Run) -> None:
    trace = trace_forward(run, "abc", "cb")
    shown = texts(viz.draw_encoder_decoder(trace))
    assert trace.attention is not None
    for probability in trace.probabilities.tolist():
        assert f"p {probability:.2f}" in shown
    for weight in trace.attention.flatten().tolist():
        assert f"{weight:.2f}" in shown
    for layer, arrow in zip(trace.encoder, "→←", strict=True):
        assert f"{arrow} {format_entry(layer.states[0, 0].item())}" in shown
    assert format_entry(trace.decoder[0].states[0, 0].item()) in shown
    assert trace.contexts is not None
    assert format_entry(trace.contexts[0, 0].item()) in shown


def test_encoder_decoder_draws_both_directions_of_the_encoder() -> None:
    shown = texts(viz.draw_encoder_decoder(BOTH_DIRECTIONS))
    assert "→ 0.10" in shown
    assert "← 0.50" in shown
    assert "encoder: GRU, layer 1, both directions" in shown
    one = replace(BOTH_DIRECTIONS, encoder=(LayerStates("layer 1", torch.full((2, 4), 0.1)),))
    assert "→ 0.10" not in texts(viz.draw_encoder_decoder(one))
    arrows = [
        viz.draw_encoder_decoder(trace).count('class="edge-head"')
        for trace in (BOTH_DIRECTIONS, one)
    ]
    assert arrows[0] == arrows[1] + 1  # between two source tokens: one arrow per direction


def test_encoder_decoder_draws_contexts_and_what_is_computed_from_them() -> None:
    def arrows(*readers: ContextReader) -> int:
        figure = viz.draw_encoder_decoder(replace(BOTH_DIRECTIONS, readers=frozenset(readers)))
        return figure.count('class="head"')

    shown = texts(viz.draw_encoder_decoder(BOTH_DIRECTIONS))
    assert {"c₁", "c₂", "c₃", "7.00", "8.00"} <= {*shown}
    steps = len(BOTH_DIRECTIONS.output)
    assert arrows("state") == arrows("output") == arrows() + steps
    assert arrows("next state") == arrows() + steps - 1  # the last step has no next one
    assert arrows("state", "output") == arrows() + 2 * steps


@pytest.mark.slow
def test_forward_trace_has_the_contexts_of_attention(run: seqloom.Run) -> None:
    trace = trace_forward(run, "abc", "cb")
    assert trace.contexts is not None
    assert len(trace.contexts) == len(trace.output)
    for step, context in enumerate(trace.contexts, start=1):
        torch.testing.assert_close(
            context, explain(run, "abc", step, target="cb").find("context").values
        )


@pytest.mark.parametrize(
    ("query_is_previous_state", "uses", "readers"),
    [
        (True, {"input", "readout"}, {"state", "output"}),
        (False, {"input", "readout"}, {"next state", "output"}),
        (False, {"readout"}, {"output"}),
        (True, {"state"}, {"state"}),
        (False, {"state"}, {"output", "next state"}),
        (False, {"layer"}, {"output"}),
        (True, set(), set()),
    ],
)
def test_forward_trace_says_what_is_computed_from_the_context(
    query_is_previous_state: bool, uses: set[ContextUse], readers: set[str]
) -> None:
    assert context_readers(frozenset(uses), query_is_previous_state) == readers


def test_encoder_decoder_rejects_a_language_model() -> None:
    with pytest.raises(ConfigError, match=r"has no encoder.*Draw it as an unrolled RNN"):
        viz.draw_encoder_decoder(LANGUAGE_MODEL)


def test_unrolled_language_model_shows_states_and_predictions() -> None:
    shown = texts(viz.draw_unrolled_rnn(LANGUAGE_MODEL))
    for text in ("<s>", "I", "am", "</s>", "s₁", "s₃", "-3.00", "4.50", "0.25", "0.50", "0.75"):
        assert text in shown
    assert "-0.00" not in shown
    assert "language model, layer 1: LSTM with hidden vectors of width 2" in shown


@pytest.mark.slow
def test_unrolled_encoder_predicts_nothing(run: seqloom.Run) -> None:
    shown = texts(viz.draw_unrolled_rnn(trace_forward(run, "abc", "cb")))
    assert shown.count("U") == len("abc") + 1  # one step for each letter and for END
    assert "V" not in shown


@settings(max_examples=15)
@given(st.lists(st.text(min_size=1, max_size=30), min_size=2, max_size=4))
def test_any_token_gives_a_well_formed_figure(tokens: list[str]) -> None:
    weights = [[1 / len(tokens)] * len(tokens)] * len(tokens)
    texts(viz.draw_attention_matrix(weights, tokens, tokens, title=tokens[0]))


def test_search_tree_shows_the_scores_and_sums_of_the_search() -> None:
    searched = search_example()
    shown = texts(viz.draw_search_tree(searched))
    for rank, output in enumerate(searched.outputs, start=1):
        end = shown.index(f"#{rank} </s> {output.log_probabilities[-1]:.1f}")
        assert shown[end + 1] == f"score {output.score:.2f}"
    sums = torch.tensor(searched.outputs[0].log_probabilities).cumsum(0)
    for total in sums[:-1].tolist():
        assert f"Σ {total:.1f}" in shown


def test_search_tree_draws_the_requested_number_of_dropped_candidates() -> None:
    assert len(texts(viz.draw_search_tree(search_example(), 0))) < len(
        texts(viz.draw_search_tree(search_example(), 2))
    )


def test_soft_lookup_shows_the_weights_and_the_result_of_the_table() -> None:
    table = LookupTable(gamma=0.5)
    found = look_up(table, "soft")
    shown = texts(viz.draw_soft_lookup(table))
    for weight in found.weights:
        assert f"{weight:.3f}" in shown
    assert f"Σ α v = {found.result[0]:.3g}" in shown


@pytest.mark.slow
def test_soft_lookup_of_a_decoder_step_shows_its_weights(run: seqloom.Run) -> None:
    step = explain(run, "abc", 2, target="cb")
    shown = texts(viz.draw_soft_lookup(step))
    for weight in step.find("weights").values.tolist():
        assert f"{weight:.3f}" in shown
    assert step.find("scores").formula in shown
    result = step.find("weights").values @ step.find("values").values
    assert any(text.startswith(f"Σ α v = ({result[0]:.3g}, ") for text in shown)


def test_transformer_layer_shows_shapes_and_the_number_of_parameters() -> None:
    attention = MultiHeadAttention(12, heads=3)
    cross = MultiHeadAttention(12, heads=2, key_width=20)
    layer = DecoderLayer(attention, cross, FeedForward(12, 40, "gelu", 0.0), "pre", 0.0)
    shown = "\n".join(texts(viz.draw_transformer_layer(layer)))
    count = sum(parameter.numel() for parameter in layer.parameters())
    assert f"{count:,} parameters, pre-norm" in shown
    assert "masked self-attention, 3 heads\nq: B × 3 × T × 4,  k: B × 3 × T × 4" in shown
    assert "α: B × 2 × T × S,  v: B × 2 × S × 6" in shown
    assert "Wk: 12 × 20" in shown
    assert "encoder output\nB × S × 20" in shown
    assert "W1: 40 × 12, W2: 12 × 40" in shown


@pytest.mark.parametrize("skip", [True, False])
def test_transformer_layer_without_a_skip_connection_shows_none(skip: bool) -> None:
    attention, feedforward = MultiHeadAttention(12, heads=3), FeedForward(12, 40, "gelu", 0.0)
    layer = EncoderLayer(attention, feedforward, "pre", 0.0, skip=skip)
    svg = viz.draw_transformer_layer(layer)
    assert texts(svg).count("+") == (2 if skip else 1)
    exception = "" if skip else ", except that of self-attention"
    assert f"Each output is added to its input{exception}." in svg


def test_layer_of_the_paper_has_its_sizes() -> None:
    layer = layer_of_paper("encoder")
    assert isinstance(layer, EncoderLayer)
    shown = "\n".join(texts(viz.draw_transformer_layer(layer)))
    assert "self-attention, 8 heads\nq: B × 8 × S × 64" in shown
    assert "3,152,384 parameters, post-norm" in shown


@pytest.mark.slow
def test_public_names_are_imported_on_first_use() -> None:
    code = "import sys; from seqloom import viz; print('torch' in sys.modules, len(dir(viz)))"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert printed.stdout.split() == ["False", str(len(viz.__all__))]
    assert all(getattr(viz, name) for name in viz.__all__)
    with pytest.raises(AttributeError, match=r"seqloom\.viz"):
        getattr(viz, "unknown_name")  # noqa: B009


def test_figures_are_pictures_in_notebooks() -> None:
    figure = viz.draw_soft_lookup(LookupTable())
    assert figure._repr_svg_() == figure._repr_html_() == figure


def test_charts_have_a_description_for_screen_readers() -> None:
    line = viz.LineChart("step <1>", "loss", [viz.Series("a & b", [1, 2], [[3.0], [4.0]])])
    bars = viz.BarChart("norm", ["x", "y"], [[1.0, 2.0], [0.25]])
    names = [xml.fromstring(viz.render_svg(chart)).get("aria-label") for chart in (line, bars)]
    assert names == ["Line chart: loss by step <1>, for a & b", "Bar chart: norm: x 1.5, y 0.25"]


@pytest.mark.slow
def test_draw_writes_a_file_or_prints_the_figure(tmp_path: Path, run: seqloom.Run) -> None:
    file = tmp_path / "figure.svg"
    folder = str(run.folder)
    result = run_cli("draw", "encoder-decoder", folder, "abc", "--target", "cb", "--out", str(file))
    assert result.exit_code == 0, result.error
    drawn = viz.draw_encoder_decoder(trace_forward(run, "abc", "cb"))
    assert file.read_text(encoding="utf-8") == drawn
    for kind in ("search", "lookup"):
        printed = run_cli("draw", kind)
        assert texts(viz.Svg(printed.stdout.strip()))


def test_draw_writes_only_svg() -> None:
    result = run_cli("draw", "search", "--out", "figure.png")
    assert result.exit_code == 2
    assert "Name the file figure.svg" in result.error


@pytest.mark.slow
def test_draw_transformer_names_the_kind_of_a_decoder_without_layers(run: seqloom.Run) -> None:
    result = run_cli("draw", "transformer", run.folder)
    assert result.exit_code == ConfigError.exit_code
    assert "the decoder has no Transformer layers (it is a RecurrentDecoder)" in result.error
    assert "model.decoder.kind = 'transformer'" in result.error


def test_forward_trace_rejects_a_decoder_that_is_not_recurrent() -> None:
    with pytest.raises(ConfigError, match=r"decoder is a DecoderModule.*kind = 'recurrent'"):
        recurrent_cells("run", Model(None, DecoderModule()))
