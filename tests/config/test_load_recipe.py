"""Loading a recipe: the result, and error messages that list every problem."""

import os
import subprocess
import sys
import tomllib
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from seqloom.config.loading.loader import load_bundled_recipe, load_recipe
from seqloom.config.loading.toml import format_recipe, parse_toml
from seqloom.config.schema.attention import DotScoreConfig
from seqloom.config.schema.decoding import BeamConfig, GreedyConfig
from seqloom.config.schema.recurrent import RecurrentDecoderConfig
from seqloom.config.schema.transformer import TransformerEncoderConfig
from seqloom.core.errors import ConfigError, NotFoundError
from support.source_folder import SOURCE

RECIPE = """
[data.train]
kind = "bundled"
source = "de"
target = "en"

[model.encoder]
kind = "recurrent"

[model.decoder]
kind = "recurrent"

[training]
steps = 100
"""


def tables(**sections: Any) -> dict[str, Any]:
    """Return the recipe above with some of its sections changed."""
    result = tomllib.loads(RECIPE)
    for name, changes in sections.items():
        result[name] = result.get(name, {}) | changes
    return result


def problems(given: dict[str, Any], *overrides: str) -> list[str]:
    """Return the problems that loading these tables reports."""
    with pytest.raises(ConfigError) as caught:
        load_recipe(given, overrides, "run.toml")
    heading, *lines = str(caught.value).split("\n")
    assert heading == "run.toml cannot be used:"
    assert all(line.startswith("  ") for line in lines)
    return [line[2:] for line in lines]


def test_a_recipe_is_loaded_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text("\ufeff" + RECIPE, encoding="utf-8")
    resolved = load_recipe(path, ["training.steps=7"])
    assert resolved.config.training.steps == 7
    assert resolved.config.model.encoder.kind == "recurrent"


def test_all_problems_are_reported_together_with_the_keys_of_the_user() -> None:
    attention = {"kind": "attention", "heads": 8, "width": 100}
    found = problems(
        tables(
            model={
                "encoder": {"kind": "recurrent", "droput": 0.1},
                "decoder": {"kind": "recurrent", "attention": attention},
            },
            training={"steps": -5},
        )
    )
    assert found == [
        "model.encoder.droput: there is no such setting; did you mean 'dropout'?",
        "model.decoder.attention: width 100 cannot be split into 8 heads; "
        "make width a multiple of 8, for example 96",
        "training.steps: must be greater than 0, not -5",
    ]


@pytest.mark.parametrize(
    ("section", "changes", "problem"),
    [
        ("training", {"steps": "100"}, "training.steps: must be a whole number, not '100'"),
        ("training", {"steps": True}, "training.steps: must be a whole number, not true"),
        ("training", {"steps": 2.5}, "training.steps: must be a whole number, not 2.5"),
        (
            "training",
            {"compile": "maybe"},
            "training.compile: must be 'auto', true or false, not 'maybe'",
        ),
        (
            "text",
            {"split_sentences": 5},
            "text.split_sentences: must be 'auto', true or false, not 5",
        ),
        ("training", {"accumulate": 0}, "training.accumulate: must be at least 1, not 0"),
        ("training", {"clip": "x"}, "training.clip: must be a number, not 'x'"),
        (
            "training",
            {"label_smoothing": 1},
            "training.label_smoothing: must be less than 1, not 1",
        ),
        (
            "training",
            {"optimizer": {"learning_rate": float("inf")}},
            "training.optimizer.learning_rate: must be a finite number, not inf",
        ),
        ("training", {"optimizer": 3}, "training.optimizer: must be a table, not 3"),
        ("decoding", {"kind": "sample", "top_p": 2}, "decoding.top_p: must be at most 1, not 2"),
        ("text", {"lowercase": 1}, "text.lowercase: must be true or false, not 1"),
        ("text", {"tags": "<U>"}, "text.tags: must be a list, not '<U>'"),
        ("text", {"tags": [3]}, "text.tags[0]: must be a string in quotes, not 3"),
        ("data", {"train": []}, "data.train: must not be empty"),
        ("data", {"folder": ["a"] * 40}, "data.folder: must be a string in quotes, not "),
        (
            "training",
            {"precision": "fp23"},
            "training.precision: must be 'fp32' or 'bf16' or 'auto', not 'fp23'; "
            "did you mean 'fp32'?",
        ),
        (
            "decoding",
            {"kind": "bem"},
            "decoding.kind: must be 'greedy' or 'sample' or 'beam' or 'exhaustive' or "
            "'minimum-bayes-risk', not 'bem'; did you mean 'beam'?",
        ),
        (
            "text",
            {"tokenizer": {"kind": 7}},
            "text.tokenizer.kind: must be 'characters' or 'words' or 'whitespace' or 'subwords' "
            "or 'imported' or 'module:Name', not 7",
        ),
    ],
)
def test_an_invalid_value_is_described(section: str, changes: dict[str, Any], problem: str) -> None:
    (found,) = problems(tables(**{section: changes}))
    assert found.startswith(problem)
    assert len(found) < 200


def test_a_section_must_be_a_table() -> None:
    assert problems(tables() | {"decoding": 5}) == ["decoding: must be a table, not 5"]


def test_paths_have_an_index_only_if_the_user_wrote_a_list() -> None:
    wrong = {"kind": "tsv", "path": 3}
    assert problems(tables(data={"train": wrong})) == [
        "data.train.path: must be a string in quotes or a list of such strings, not 3"
    ]
    assert problems(tables(data={"train": [wrong, wrong | {"kid": 1}]})) == [
        "data.train[1].kid: there is no such setting; did you mean 'kind'?",
        "data.train[0].path: must be a string in quotes or a list of such strings, not 3",
        "data.train[1].path: must be a string in quotes or a list of such strings, not 3",
    ]


def test_a_missing_key_is_reported_with_an_example() -> None:
    assert problems({}) == [
        'data: is missing; for example [data.train] with kind = "bundled", '
        'source = "de", target = "en"',
        'model: is missing; for example [model.encoder] and [model.decoder], each with kind = "recurrent"',
        "training: is missing; for example [training] with steps = 10000",
    ]
    [problem] = problems(tables(data={"train": {"path": "x"}}))
    assert problem.startswith("data.train.kind: is missing; it must be 'parallel' or 'tsv' or ")
    assert " or 'languages'" in problem


def test_a_mistyped_required_key_is_reported_once() -> None:
    given = tables()
    given["training"] = {"step": 5}
    assert problems(given) == ["training.step: there is no such setting; did you mean 'steps'?"]


def test_a_key_in_the_wrong_table_is_reported_with_the_right_table() -> None:
    assert problems(tables(training={"shared": True})) == [
        "training.shared: there is no such setting; did you mean text.shared?"
    ]


def test_an_unknown_key_without_similar_keys_is_reported_with_all_keys() -> None:
    assert problems(tables(data={"filter": {"qqqq": True}})) == [
        "data.filter.qqqq: there is no such setting; "
        "the settings here are max_ratio, max_source_tokens, max_target_tokens"
    ]


def test_a_language_model_has_no_encoder_by_default() -> None:
    given = tables(task={"kind": "language-model"}, model={"decoder": {"kind": "recurrent"}})
    del given["model"]["encoder"]
    resolved = load_recipe(given)
    config = resolved.config
    assert isinstance(config.model.decoder, RecurrentDecoderConfig)
    assert config.model.encoder.kind == config.model.decoder.attention.kind == "none"
    assert config.model.decoder.initial_state == "zeros"
    assert resolved.origins["model.encoder.kind"] == "default"
    assert resolved.origins["model.decoder.initial_state"] == "default"
    assert load_recipe(parse_toml(format_recipe(config).encode())).config == config


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("model.encoder.kind=recurrent", "model.encoder: a language model has no source"),
        ("model.decoder.initial_state=mlp", "there is no encoder to take the initial state from"),
        ("model.decoder.attention.heads=2", "there is no encoder to attend to"),
    ],
)
def test_a_language_model_with_a_source_is_rejected(setting: str, message: str) -> None:
    given = tables(task={"kind": "language-model"}, model={"decoder": {"kind": "recurrent"}})
    del given["model"]["encoder"]
    assert any(message in problem for problem in problems(given, setting))


def test_labels_are_split_at_white_space_and_decoded_greedily_by_default() -> None:
    given = tables(task={"kind": "labels"}, model={"decoder": {"kind": "labels"}})
    resolved = load_recipe(given)
    assert resolved.config.text.target.kind == "whitespace"
    assert resolved.config.decoding == GreedyConfig()
    assert resolved.origins["decoding.kind"] == "default"
    given["decoding"] = {"kind": "beam", "width": 3}
    assert load_recipe(given).config.decoding == BeamConfig(width=3)


def test_a_translation_recipe_needs_an_encoder() -> None:
    given = tables()
    del given["model"]["encoder"]
    assert "model.encoder: is missing" in problems(given)[0]


def test_rules_between_settings_name_the_setting() -> None:
    decoder = {"summary": ["input"], "initial_state": "mlp", "attention": {"kind": "attention"}}
    given = tables(
        task={"kind": "language-model"},
        model={"encoder": {"kind": "none"}, "decoder": {"kind": "recurrent", **decoder}},
    )
    assert problems(given) == [
        "model.decoder.attention: there is no encoder to attend to; set attention.kind = 'none'",
        "model.decoder.initial_state: there is no encoder to take the initial state from; set it to 'zeros'",
        "model.decoder.summary: there is no encoder to summarise; remove it",
    ]
    assert problems(tables(model={"tie": "all", "decoder": {"kind": "transformer"}})) == [
        "model.tie: one matrix for source and target needs one vocabulary; "
        "set text.shared = true, or model.tie = 'output'"
    ]


@pytest.mark.parametrize("kind", ["recurrent", "transformer"])
def test_copying_needs_attention_and_a_shared_vocabulary(kind: str) -> None:
    decoder = {"kind": kind, "copying": True}
    assert problems(tables(model={"decoder": decoder})) == [
        "model.decoder.copying: copied tokens need one vocabulary for source and target; "
        "set text.shared = true, or copying = false"
    ]
    shared = {"shared": True}
    load_recipe(tables(model={"decoder": decoder}, text=shared))
    decoder_only = {"encoder": {"kind": "none"}, "decoder": decoder}
    assert "model.decoder.copying: there is no encoder to copy from; set it to false" in problems(
        tables(task={"kind": "language-model"}, model=decoder_only)
    )
    if kind == "recurrent":
        without_attention = {**decoder, "attention": {"kind": "none"}}
        assert problems(tables(model={"decoder": without_attention}, text=shared)) == [
            "model.decoder.copying: copies the source positions that attention selects, but "
            "attention.kind is 'none'; switch attention on, or set copying = false"
        ]


@pytest.mark.parametrize("kind", ["characters", "words", "whitespace"])
def test_only_subwords_can_be_sampled(kind: str) -> None:
    assert load_recipe(tables(text={"sampling": {}})).config.text.sampling is not None
    for text in ({"tokenizer": {"kind": kind}}, {"target_tokenizer": {"kind": kind}}):
        assert problems(tables(text={**text, "sampling": {"alpha": 0.1}})) == [
            f"text: sampling needs subwords, but the tokenizer kind is '{kind}'; "
            "remove sampling, or use kind = 'subwords'"
        ]


@pytest.mark.parametrize("kind", ["characters", "words", "whitespace"])
def test_byte_fallback_needs_subwords(kind: str) -> None:
    assert problems(tables(text={"tokenizer": {"kind": kind}, "byte_fallback": True})) == [
        f"text: byte_fallback needs subwords, but the tokenizer kind is '{kind}'; "
        "remove byte_fallback, or use kind = 'subwords'"
    ]
    load_recipe(tables(text={"tokenizer": {"kind": kind}, "byte_fallback": False}))
    only_source = {"target_tokenizer": {"kind": kind}, "byte_fallback": True}
    assert load_recipe(tables(text=only_source)).config.text.byte_fallback


def test_a_table_without_a_kind_has_the_kind_of_its_default() -> None:
    config = load_recipe(tables(decoding={"width": 3}, data={"dev": {"fraction": 0.1}})).config
    assert config.decoding.kind == "beam"
    assert config.data.dev[0].kind == "hold-out"


def test_changing_one_setting_of_a_default_table_keeps_the_others() -> None:
    encoder = {"kind": "transformer", "attention": {"heads": 4, "score": {"scale": "one"}}}
    config = load_recipe(tables(model={"encoder": encoder})).config
    assert isinstance(config.model.encoder, TransformerEncoderConfig)
    attention = config.model.encoder.attention
    assert (attention.heads, attention.projection, attention.output_projection) == (
        4,
        "linear",
        True,
    )
    assert attention.score == DotScoreConfig(scale="one")


def test_none_switches_a_setting_off() -> None:
    assert load_recipe(tables(training={"clip": "none"})).config.training.clip is None


def test_every_value_has_an_origin() -> None:
    given = tables(decoding={"width": 3}, data={"dev": [{"fraction": 0.1}]})
    origins = load_recipe(given, ["training.seed=5", "data.train.0.source=de"]).origins
    assert origins["training.steps"] == "recipe"
    assert origins["training.seed"] == "--set"
    assert origins["training.clip"] == "default"
    assert origins["decoding.kind"] == "default"
    assert origins["decoding.width"] == "recipe"
    assert origins["data.train.source"] == "--set"
    assert origins["data.train.target"] == "recipe"
    assert origins["data.dev[0].fraction"] == "recipe"
    assert origins["text.tokenizer.size"] == "default"


def test_an_override_can_fill_an_empty_list() -> None:
    """For example to score a run whose recipe has no test set."""
    resolved = load_recipe(tables(data={"test": []}), ["data.test={kind='tsv', path='x.tsv'}"])
    assert resolved.origins["data.test.path"] == "--set"
    assert len(resolved.config.data.test) == 1
    listed = load_recipe(tables(data={"test": []}), ["data.test=[{kind='tsv', path='x.tsv'}]"])
    assert listed.origins["data.test[0].path"] == "--set"


def test_loading_does_not_change_the_given_tables() -> None:
    given = tables()
    before = deepcopy(given)
    load_recipe(
        given, ["training.steps=1", "data.train.kind=bundled", "model.encoder.kind=transformer"]
    )
    assert given == before


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"a = 1\nb == 2\n", "line 2, column 4: invalid value"),
        (b"a = 1\na = 2\n", "line 2, column 6: cannot overwrite a value"),
        (b'a = """x\n', "line 2: the file ends too early: unterminated string"),
        (b'a = 1\nb = "\xff"\n', "line 2: is not UTF-8 (byte 0xff); save the file as UTF-8"),
        (b"a = " + b"[" * 5000, "tables or lists are nested too deeply"),
    ],
)
def test_invalid_toml_is_reported_with_its_location(
    content: bytes, problem: str, tmp_path: Path
) -> None:
    path = tmp_path / "run.toml"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        load_recipe(path)
    assert str(caught.value) == f"{path} cannot be used:\n  {problem}"


def test_a_missing_recipe_is_reported_with_a_similar_name(tmp_path: Path) -> None:
    (tmp_path / "german.toml").write_text(RECIPE, encoding="utf-8")
    with pytest.raises(NotFoundError, match=r"grman\.toml: there is no such file; did you mean .*"):
        load_recipe(tmp_path / "grman.toml")
    with pytest.raises(NotFoundError, match="is a folder; give a recipe"):
        load_recipe(tmp_path)
    with pytest.raises(NotFoundError, match=r"tiny is a preset, .*, or with --set preset=tiny"):
        load_recipe(Path("tiny"))
    with pytest.raises(NotFoundError, match="zzz: there is no such file"):
        load_recipe("zzz")


def test_a_bundled_recipe_is_loaded_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    here = Path(__file__).parent
    recipe = here / "bundled-recipe.toml"
    monkeypatch.setattr("seqloom.config.loading.loader.bundled_recipes", lambda: {"toy": recipe})
    assert load_recipe("toy", ["training.steps=9"]).config.training.steps == 9
    assert load_bundled_recipe("toy", ["training.steps=8"]).config.training.steps == 8
    with pytest.raises(
        NotFoundError, match="there is no such bundled recipe; the bundled recipes are toy"
    ):
        load_bundled_recipe("demo")
    with pytest.raises(NotFoundError, match="for the bundled recipe, write toy"):
        load_recipe("toy.toml")
    with pytest.raises(NotFoundError, match="did you mean the bundled recipe toy"):
        load_recipe("tooy")


@pytest.mark.slow
def test_an_invalid_recipe_is_reported_without_importing_torch(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from seqloom.config.loading.loader import load_recipe\n"
        "try:\n    load_recipe({'trainin': 1})\n"
        "except Exception as error:\n    print(type(error).__name__)\n"
        "sys.exit('torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    assert done.stdout == "ConfigError\n"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            ["model.encoder.width=5", "model.decoder.attention={projection='linear', heads=4}"],
            "model.decoder.attention: width 10 cannot be split into 4 heads",
        ),
        (
            [
                "model.decoder={kind='transformer', width=6, attention={projection='none', "
                "values='learned', width=8, heads=4, output_projection=true}}"
            ],
            "model.decoder: width 6 cannot be split into 4 heads",
        ),
        (
            [
                "model.decoder={kind='transformer', width=6, positions={kind='rotary'}, "
                "attention={projection='none', values='states', width=8, heads=2, output_projection=true}}"
            ],
            "a head is 3 wide",
        ),
    ],
)
def test_heads_must_divide_every_width_they_split(settings: list[str], message: str) -> None:
    tables = {
        "data": {"train": {"kind": "bundled", "source": "de", "target": "en"}},
        "model": {"encoder": {"kind": "recurrent"}, "decoder": {"kind": "recurrent"}},
        "training": {"steps": 1},
    }
    with pytest.raises(ConfigError, match=message):
        load_recipe(tables, settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["training.batching=packed"], "only Transformers can separate pairs"),
        (
            ["training.batching=packed", "training.decoder_input.kind=free-running"],
            "decoder_input.kind = 'free-running' needs one pair per row; use 'padded'",
        ),
        (
            ["training.loop=captured", "training.decoder_input.kind=free-running"],
            "the decoder's inputs change at each step; use loop = 'plain'",
        ),
    ],
)
def test_fast_paths_are_rejected_where_they_would_be_wrong(
    settings: list[str], message: str
) -> None:
    tables = {
        "data": {"train": {"kind": "bundled", "source": "de", "target": "en"}},
        "model": {"encoder": {"kind": "recurrent"}, "decoder": {"kind": "recurrent"}},
        "training": {"steps": 1},
    }
    with pytest.raises(ConfigError, match=message):
        load_recipe(tables, settings)


def test_a_path_may_be_a_string(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text(RECIPE, encoding="utf-8")
    assert load_recipe(str(path)) == load_recipe(path)


def test_a_recipe_can_be_a_dictionary_or_the_name_of_a_bundled_recipe() -> None:
    assert load_recipe(tables(), ["training.steps=7"]).config.training.steps == 7
    assert load_recipe("demo").config == load_bundled_recipe("demo").config
    with pytest.raises(ConfigError, match="recipe cannot be used:\n  data: is missing"):
        load_recipe({})


def test_a_file_takes_precedence_over_a_bundled_recipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "demo").write_text(RECIPE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert load_recipe("demo").config.training.steps == 100
    assert load_bundled_recipe("demo").config.training.steps != 100
