"""Weights as safetensors files."""

from pathlib import Path

import pytest
import safetensors.torch
import torch
from torch import nn

from seqloom.core.errors import StorageError
from seqloom.core.storage import replace_listed_file
from seqloom.inference.run import load
from seqloom.runs.integrity import weights_store
from seqloom.runs.weights import (
    RENAMED,
    assign_weights,
    current_name,
    limited_size,
    read_tensors,
    write_tensors,
)
from seqloom.training.loop import train
from support.tiny_runs import TRANSFORMER, tiny_config


def test_unreadable_file_is_an_error(tmp_path: Path) -> None:
    for data in (b"", b"x" * 100):
        (tmp_path / "x.safetensors").write_bytes(data)
        with pytest.raises(
            StorageError, match=r"is not a readable safetensors file: .+\. Copy the whole run again"
        ):
            read_tensors(tmp_path / "x.safetensors")


def test_weights_are_restored_exactly(tmp_path: Path) -> None:
    first, second = nn.Linear(3, 2), nn.Linear(3, 2)
    write_tensors(tmp_path / "x.safetensors", dict(first.named_parameters()))
    assign_weights(second, read_tensors(tmp_path / "x.safetensors"), tmp_path / "x.safetensors")
    assert torch.equal(first.weight, second.weight)
    assert torch.equal(first.bias, second.bias)


def test_weights_that_are_no_floating_point_numbers_are_an_error(tmp_path: Path) -> None:
    weights = {"weight": torch.zeros(2, 3), "bias": torch.zeros(2, dtype=torch.int32)}
    with pytest.raises(StorageError, match=r"'bias' has the type torch\.int32, expected a float"):
        assign_weights(nn.Linear(3, 2), weights, tmp_path)


def test_weights_that_do_not_match_the_model_are_an_error_that_says_what_to_do(
    tmp_path: Path,
) -> None:
    weights = {"weight": torch.zeros(9, 3), "new": torch.zeros(1)}
    with pytest.raises(StorageError) as caught:
        assign_weights(nn.Linear(3, 2), weights, tmp_path)
    assert str(caught.value).splitlines() == [
        f"{tmp_path}: does not match the configuration of the model:",
        "  'bias' is missing",
        "  'new' is unexpected",
        "  'weight' is (9, 3), expected (2, 3)",
        "Copy the whole run again from its source, or restore it from a backup. If another version "
        "of seqloom wrote the run, use that version; `seqloom info` prints it.",
    ]


def test_a_model_much_larger_than_its_weights_is_not_built(tmp_path: Path) -> None:
    weights = {"weight": torch.zeros(2, 3)}
    for width in (1_000, 10**9):
        with (
            pytest.raises(
                StorageError,
                match=r"(has 6 values, and the model has more|cannot build .* more memory).*Copy the "
                r"whole run again.*use that version",
            ),
            limited_size(weights, tmp_path),
        ):
            nn.Linear(width, 2 * width)
    with limited_size(weights, tmp_path):
        nn.Linear(300, 300)
    nn.Linear(1_000, 1_001)  # outside the context, the size is not limited


OLD_NAMES = {
    "encoder.layers.0.around_attention.norm.weight": "encoder.layers.0.attention_residual.norm.weight",
    "decoder.layers.1.around_cross.norm.bias": "decoder.layers.1.cross_attention_residual.norm.bias",
    "encoder.layers.0.around_feedforward.x": "encoder.layers.0.feedforward_residual.x",
    "decoder.cross_attention.merge.weight": "decoder.cross_attention.output_projection.weight",
    "decoder.readout.bend.weight": "decoder.readout.hidden_layer.weight",
    "encoder.embedder.fit.weight": "encoder.embedder.projection.weight",
    "encoder.fit.weight": "encoder.projection.weight",
    "average:encoder.fit.weight": "average:encoder.projection.weight",
    "encoder.embedder.lookup.map.weight": "encoder.embedder.lookup.projection.weight",
    "decoder.handover.map.weight": "decoder.initial_state.projection.weight",
    "encoder.patches.cut.weight": "encoder.patches.projection.weight",
    "encoder.patches.places": "encoder.patches.positions",
    "encoder.stages.2.around.weight": "encoder.stages.2.shortcut.weight",
}
"""Names of weights in runs of earlier versions, and the names today."""


@pytest.mark.parametrize(("old", "new"), OLD_NAMES.items())
def test_old_names_become_current_names(old: str, new: str) -> None:
    assert current_name(old) == new
    assert current_name(new) == new


def test_every_renaming_has_an_example() -> None:
    unused = [old.pattern for old, _ in RENAMED if not any(map(old.search, OLD_NAMES))]
    assert unused == []


@pytest.mark.slow
def test_a_run_with_old_weight_names_translates_as_before(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    train(tiny_config(*TRANSFORMER, "training.steps=1", "training.evaluate_every=1"), folder)
    expected = load(folder).translate(["abc"])
    weights = weights_store(folder).current_path()
    assert weights is not None
    [file] = weights.glob("*.safetensors")
    tensors = safetensors.torch.load_file(file)
    old = {
        name.replace("_residual.", ".")
        .replace(".attention.norm", ".around_attention.norm")
        .replace(".cross_attention.norm", ".around_cross.norm")
        .replace(".feedforward.norm", ".around_feedforward.norm")
        .replace("attention.output_projection.", "attention.merge."): tensor
        for name, tensor in tensors.items()
    }
    assert sum(name not in tensors for name in old) >= 8
    replace_listed_file(weights, file.name, safetensors.torch.save(old))
    [output] = load(folder).translate(["abc"])
    assert (output.text, output.score) == (expected[0].text, expected[0].score)
