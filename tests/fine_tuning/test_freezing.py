"""Frozen parts of a model stay bit-identical, and everything else is trained."""

from pathlib import Path

import pytest
import torch
from fine_tuned_runs import FEW_STEPS, copy_recipe, train_parent

import seqloom
from seqloom.config.schema.names import ModelPart
from seqloom.core.errors import ConfigError
from seqloom.core.signature import Signature, Tokens
from seqloom.models.build import build_model
from seqloom.runs.integrity import checkpoint_store, weights_store
from seqloom.runs.weights import read_tensors
from seqloom.training.fine_tuning.freezing import PATTERNS, freeze, model_parts
from seqloom.training.fine_tuning.start import OPTIMIZER
from support.tiny_runs import LANGUAGE_MODEL, TRANSFORMER, latest_checkpoint, tiny_config

pytestmark = pytest.mark.slow
KINDS = {"recurrent": (), "transformer": TRANSFORMER}
LOOPS = {"recurrent": "plain", "transformer": "captured"}
"""Without a GPU, the captured loop runs the same functions without capturing them."""


@pytest.fixture(scope="module")
def parents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("parents")
    decay = "training.optimizer.weight_decay=0.1"
    return {kind: train_parent(folder / kind, decay, *KINDS[kind]) for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("part", PATTERNS)
def test_a_frozen_part_is_bit_identical_and_the_rest_is_trained(
    kind: str, part: ModelPart, parents: dict[str, Path], tmp_path: Path
) -> None:
    settings = [*FEW_STEPS, f"training.freeze=['{part}']", f"training.loop={LOOPS[kind]}"]
    settings += ["training.averaging={kind='last', count=3}", "training.evaluate_every=2"]
    settings += ["data.parent.dev=[]"]
    seqloom.fine_tune(copy_recipe(), parents[kind], tmp_path / "run", settings=settings)
    start = weights_store(parents[kind]).current()
    best = weights_store(tmp_path / "run").current()
    checkpoint = checkpoint_store(tmp_path / "run").current()
    assert start is not None
    assert best is not None
    assert checkpoint is not None
    before = read_tensors(start / "model.safetensors")
    model = build_model(tiny_config(*KINDS[kind]).model, Signature(Tokens(8), Tokens(8), False))
    frozen = {id(parameter) for parameter in model_parts(model)[part]}
    names = {name for name, parameter in model.named_parameters() if id(parameter) in frozen}
    assert names
    for folder in (best, checkpoint):
        after = read_tensors(folder / "model.safetensors")
        assert all(torch.equal(after[name], before[name]) for name in names)
    trained = {name for name in before if not torch.equal(after[name], before[name])}
    # A key bias has no effect on the softmax, so it has no gradient.
    assert trained >= {name for name in before.keys() - names if "to_key.bias" not in name}
    state = read_tensors(checkpoint / OPTIMIZER)
    assert {key.rpartition(":")[0] for key in state} == before.keys() - names


def test_a_part_that_the_model_does_not_have_is_an_error_with_its_parts(tmp_path: Path) -> None:
    config = tiny_config(*LANGUAGE_MODEL, "training.freeze=['cross-attention']")
    with pytest.raises(ConfigError, match="no cross-attention; its parts are decoder, embeddings"):
        seqloom.train(config, tmp_path / "run")
    with pytest.raises(ConfigError, match=r"training\.freeze"):
        tiny_config("training.freeze=['head']")


def test_freezing_everything_is_an_error() -> None:
    model = build_model(tiny_config().model, Signature(Tokens(8), Tokens(8), False))
    with pytest.raises(ConfigError, match="nothing is left to train"):
        freeze(model, [*model_parts(model)])


def test_the_parts_contain_every_parameter_and_shared_ones_in_each_part() -> None:
    signature = Signature(Tokens(8), Tokens(8), True)
    config = tiny_config(*TRANSFORMER, "text.shared=true", "model.tie=all")
    model = build_model(config.model, signature)
    parts = model_parts(model)
    listed = {id(parameter) for part in parts.values() for parameter in part}
    assert listed == {id(parameter) for parameter in model.parameters()}
    tied = model.decoder.readout.output.weight
    assert all(any(tied is each for each in parts[part]) for part in ("embeddings", "output"))


def test_freezing_works_without_a_parent_too(tmp_path: Path) -> None:
    seqloom.train(tiny_config("training.freeze=['encoder']", "training.steps=2"), tmp_path / "run")
    state = read_tensors(latest_checkpoint(tmp_path / "run") / OPTIMIZER)
    assert not any(key.startswith("encoder.forward_layers") for key in state)
