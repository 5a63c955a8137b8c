"""Settings of extensions are checked, listed and stored like all others."""

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.config.extensions.section import PROVIDED
from seqloom.config.loading.loader import load_recipe
from seqloom.config.loading.settings_list import list_settings
from seqloom.config.loading.toml import format_recipe, parse_toml
from seqloom.config.schema.recipe import RunConfig
from seqloom.core.errors import ConfigError
from seqloom.core.signature import Signature, Tokens
from seqloom.extensions.registry import POINTS
from seqloom.models.build import build_model
from support.tiny_runs import tiny_config

SCORE = "model.decoder.attention.score"
EVERY_POINT = {
    "score": f"{SCORE}={{kind='custom_parts:Cosine', temperature=0.5}}",
    "metric": "task.scores=['bleu', 'custom_parts:exact_length']",
    "reader": "data.train={kind='custom_parts:read_bars', path='pairs', name='bars', reverse=true}",
    "tokenizer": "text.tokenizer={kind='custom_parts:Syllables', vowels='abc', size=50}",
    "rule": "decoding.rules=[{kind='custom_parts:ForbidText', text='a'}]",
    "encoder": "model.encoder={kind='custom_parts:BagOfWords', width=6}",
    "decoder": "model.decoder={kind='custom_parts:PlainDecoder', width=6}",
}
"""A setting for each extension point."""
every_point = pytest.mark.parametrize("setting", EVERY_POINT.values(), ids=EVERY_POINT)


def reload(config: RunConfig) -> RunConfig:
    return load_recipe(parse_toml(format_recipe(config).encode())).config


def test_there_is_an_example_of_every_point() -> None:
    assert set(EVERY_POINT) == set(POINTS) == set(PROVIDED)


@every_point
def test_a_formatted_recipe_restores_its_extensions(setting: str) -> None:
    config = tiny_config(setting)
    assert len(config.extensions) == 1
    assert reload(config) == config


@every_point
def test_a_recipe_with_extensions_can_be_pickled(setting: str) -> None:
    config = tiny_config(setting)
    assert pickle.loads(pickle.dumps(config)) == config


@every_point
def test_a_dumped_recipe_contains_all_settings_of_extensions(setting: str) -> None:
    config = tiny_config(setting)
    [extension] = config.extensions.values()
    for name, value in extension.part_settings.items():
        if value is not None:
            assert f"'{name}': {value!r}" in str(config.model_dump())


@given(st.floats(1e-6, 1e6), st.sampled_from(["plain", "absolute"]))
def test_any_valid_values_survive_storing(temperature: float, mode: str) -> None:
    config = tiny_config(
        f"{SCORE}={{kind='custom_parts:Cosine', temperature={temperature!r}, mode='{mode}'}}"
    )
    assert config.extensions[SCORE].extension_options == {"temperature": temperature, "mode": mode}
    assert reload(config) == config


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ("temprature=0.5", f"{SCORE}.temprature: there is no such setting; did you mean 'temperat"),
        ("temperature='hot'", f"{SCORE}.temperature: must be a number, not 'hot'"),
        ("temperature=0", f"{SCORE}.temperature: must be greater than 0, not 0"),
        ("mode='plane'", f"{SCORE}.mode: must be 'plain' or 'absolute', not 'plane'; did you mean"),
        ("query_width=8", f"{SCORE}.query_width: there is no such setting"),
    ],
)
def test_invalid_settings_have_the_usual_errors(settings: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        tiny_config(f"{SCORE}={{kind='custom_parts:Cosine', {settings}}}")


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ("data.train={kind='custom_parts:read_bars'}", r"data.train.path: is missing"),
        (
            "decoding.rules=[{kind='custom_parts:ForbidText'}]",
            r"decoding.rules\[0\].text: is missing",
        ),
        ("decoding.rules=[{text='a'}]", r"decoding.rules\[0\].kind: is missing; for example"),
        (
            "data.train={kind='custom_parts:untyped'}",
            "'path' has no type; write for example `path:",
        ),
        (
            "data.train={kind='custom_parts:unsupported'}",
            "'tensor' has a type that a recipe cannot",
        ),
        ("data.train={kind='custom_parts:variadic'}", r"\*paths has no fixed settings"),
        ("data.train={kind='custom_parts:reserved'}", "'name' has a name that seqloom uses itself"),
        ("model.encoder={kind='custom_parts:PlainDecoder2'}", "has no 'PlainDecoder2'"),
        (
            "model.encoder={kind='custom_parts:Cosine'}",
            "the encoder needs a parameter `width: int`",
        ),
        (
            "task.scores=['custom_parts:without_references']",
            r"scores\[0\]: the metric .* must have",
        ),
        (
            "task.scores=['custom_parts:nothing']",
            r"task.scores\[0\]: the module .* has no 'nothing'",
        ),
        ("training.stopping.score='custom_parts:exact_length'", "is not one of task.scores"),
    ],
)
def test_an_extension_that_cannot_be_used_is_an_error_with_its_place(
    setting: str, problem: str
) -> None:
    with pytest.raises(ConfigError, match=problem):
        tiny_config(setting)


def test_all_problems_of_an_extension_are_listed() -> None:
    with pytest.raises(ConfigError) as error:
        tiny_config("data.train={kind='custom_parts:reserved'}")
    assert all(f"'{name}' has a name" in str(error.value) for name in ("kind", "name", "copy"))


def test_another_kind_removes_the_settings_that_the_extension_does_not_have() -> None:
    tables = {"kind": "recurrent", "cell": "lstm", "width": 6}
    resolved = load_recipe(
        {
            "data": {"train": {"kind": "bundled", "source": "de", "target": "en"}},
            "model": {"encoder": tables, "decoder": {"kind": "recurrent"}},
            "training": {"steps": 10},
        },
        ["model.encoder.kind=custom_parts:BagOfWords"],
    )
    encoder = resolved.config.extensions["model.encoder"]
    assert encoder.part_settings == {"width": 6}
    assert any("removed model.encoder.cell of the recipe" in note for note in resolved.notes)


def test_a_misspelt_score_is_one_problem() -> None:
    with pytest.raises(ConfigError) as error:
        tiny_config("task.scores=['bleux']")
    [problem] = str(error.value).splitlines()[1:]
    assert problem.startswith("  task.scores[0]: must be 'bleu' or ")
    assert problem.endswith("not 'bleux'; did you mean 'bleu'?")


def test_settings_are_listed_with_the_descriptions_of_the_docstring() -> None:
    resolved = load_recipe(parse_toml(format_recipe(tiny_config(EVERY_POINT["score"])).encode()))
    shown = {setting.key: setting for setting in list_settings(resolved)}
    assert shown[f"{SCORE}.kind"].meaning == "The cosine of query and key."
    assert shown[f"{SCORE}.temperature"].value == "0.5"
    assert shown[f"{SCORE}.temperature"].meaning == "divisor of the cosine, above 0."


SIGNATURE = Signature(Tokens(9), Tokens(9), shared=False)


def build(*settings: str) -> Any:
    return build_model(tiny_config(*settings).model, SIGNATURE)


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ("'custom_parts:WeightedDot'", "cannot be created: the widths 8 and 16 differ"),
        ("'custom_parts:Cosine'", "fails for queries of width 8 and keys of width 16: Runtime"),
        ("'custom_parts:WrongShape'", r"returns the shape \(1, 1, 2\)"),
        ("'custom_parts:NotAScore'", "must be a subclass of seqloom.nn.AttentionScore"),
    ],
)
def test_a_wrong_score_is_reported_when_the_model_is_built(setting: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        build(f"{SCORE}.kind={setting}")


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        (
            "encoder={kind='custom_parts:DoubleWidth'}",
            r"states of the shape \(2, 3, 16\), but \(2, 3, 8",
        ),
        (
            "decoder={kind='custom_parts:NotAScore'}",
            "must be a subclass of seqloom.models.DecoderMod",
        ),
    ],
)
def test_a_wrong_model_is_reported_when_it_is_built(setting: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        build(f"model.{setting}")


def test_building_an_extension_uses_no_random_numbers() -> None:
    """The check of an encoder must not change the initial weights of the decoder."""
    import torch

    from seqloom.models.build import build_encoder

    config = tiny_config("model.encoder={kind='custom_parts:NoisyBag', width=6}").model
    torch.manual_seed(1)
    build_encoder(config, SIGNATURE)
    after_check = torch.rand(1)
    torch.manual_seed(1)
    torch.nn.Embedding(9, 6)
    assert torch.equal(torch.rand(1), after_check)


@pytest.mark.parametrize("tie", ["output", "all"])
def test_extensions_cannot_share_embeddings(tie: str) -> None:
    with pytest.raises(
        ConfigError, match="'custom_parts:PlainDecoder' is outside seqloom; use tie"
    ):
        tiny_config(EVERY_POINT["decoder"], f"model.tie={tie}", "text.shared=true")


def test_models_with_extensions_are_not_packed_or_captured() -> None:
    import torch

    from seqloom.training.fast.select import choose_batching, uses_cuda_graphs

    gpu = torch.device("cuda")
    for point in ("score", "encoder", "decoder"):
        config = tiny_config(EVERY_POINT[point])
        assert not uses_cuda_graphs(config, gpu)
        assert choose_batching(config, gpu) == "padded"
    assert uses_cuda_graphs(tiny_config(), gpu)


def test_facts_of_an_extension_come_from_its_class() -> None:
    assert not tiny_config(EVERY_POINT["score"]).model.is_static
    config = tiny_config(f"{SCORE}={{kind='custom_parts:StaticCosine'}}", "model.decoder.width=16")
    assert config.model.is_static
    with pytest.raises(ConfigError, match="compares encoder states of width 16 with decoder state"):
        tiny_config(f"{SCORE}={{kind='custom_parts:StaticCosine'}}")
