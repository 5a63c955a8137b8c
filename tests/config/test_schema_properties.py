"""Properties of every setting of every section, including those added later."""

import re
import tomllib
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from pydantic.fields import FieldInfo

from seqloom.config.loading.defaults import UnknownKey, fill_defaults
from seqloom.config.loading.error_messages import EXAMPLES, unknown_key_problem
from seqloom.config.loading.fields import (
    KeyPath,
    SettingRef,
    all_sections,
    field_spec,
    list_setting_refs,
    section_kind,
)
from seqloom.config.loading.loader import load_recipe
from seqloom.config.loading.settings_list import describe_field, list_settings
from seqloom.config.loading.toml import format_recipe, format_value, parse_toml
from seqloom.config.schema.recipe import RunConfig
from seqloom.config.schema.section import Section, kinds_of
from seqloom.extensions.registry import FORM

TABLES = all_sections(RunConfig)
SECTIONS = sorted({section for _, section in TABLES}, key=lambda section: section.__name__)
BASES = [
    {
        "data": {"train": {"kind": "bundled", "source": "de", "target": "en"}},
        "model": {"encoder": {"kind": encoder}, "decoder": {"kind": decoder}},
        "training": {"steps": 100_000},
    }
    for encoder in ("recurrent", "transformer")
    for decoder in ("recurrent", "transformer")
]


def values_of(field: FieldInfo) -> st.SearchStrategy[Any]:
    """Values of a setting's type, some of them out of its range."""
    spec = field_spec(field)
    if spec.sections:
        built_in = [section for kind, section in spec.sections.items() if kind != FORM]
        if not built_in:
            return st.just(())  # a list of extensions
        one = st.sampled_from(built_in).flatmap(sections)
        several = st.lists(one, max_size=2).map(tuple)
        return several if spec.is_list else st.none() | one if spec.optional else one
    if spec.choices:
        word = st.sampled_from(spec.choices)
        return st.lists(word, max_size=2).map(tuple) if spec.is_list else word
    types = _parts_of(field.annotation)
    simple: Any = st.nothing()
    if bool in types:
        simple |= st.booleans()
    if int in types:
        simple |= st.sampled_from([0, 1, 2, 4, 8, 64, 512, 99_999])
    if float in types:
        simple |= st.floats(0, 1) | st.sampled_from([1.5, 2.5, 1e-9])
    if str in types:
        simple |= st.text()
    simple = st.lists(simple, max_size=2).map(tuple) if spec.is_list else simple
    return st.none() | simple if spec.optional else simple


def _parts_of(annotation: Any) -> set[Any]:
    """The annotation and all types that it contains."""
    return {annotation}.union(*map(_parts_of, get_args(annotation)))


def sections(section: type[Section]) -> st.SearchStrategy[Section]:
    """A section of this class with some settings drawn. Rejected values are left out."""

    @st.composite
    def draw_section(draw: st.DrawFn) -> Section:
        given = {}
        for name, field in section.model_fields.items():
            if field.is_required():
                given[name] = draw(values_of(field))
        names = st.sampled_from(sorted(set(section.model_fields) - {"kind"}) or ["kind"])
        result = _built(section, given)
        for name in draw(st.lists(names, max_size=3)):
            if name != "kind":
                field = section.model_fields[name]
                result = _built(section, {**given, name: draw(values_of(field))}) or result
        return result or draw(st.nothing())

    return draw_section()


def _built(section: type[Section], given: dict[str, Any]) -> Section | None:
    try:
        return section(**given)
    except ValidationError:
        return None


@st.composite
def recipes(draw: st.DrawFn) -> RunConfig:
    """A valid recipe, a few random changes away from a plain one."""
    config = load_recipe(draw(st.sampled_from(BASES))).config
    for _ in range(draw(st.integers(0, 8))):
        ref = draw(st.sampled_from(list_setting_refs(config)))
        value = draw(values_of(type(ref.section).model_fields[ref.name]))
        changed = _replaced(config, ref, value)
        config = changed or config
    return config


def _replaced(config: RunConfig, ref: SettingRef, value: Any) -> RunConfig | None:
    def rebuilt(node: Any) -> Any:
        if isinstance(node, tuple):
            return tuple(rebuilt(item) for item in node)
        if not isinstance(node, Section):
            return node
        fields = {key: rebuilt(getattr(node, key)) for key in type(node).model_fields}
        return type(node)(**fields | ({ref.name: value} if node is ref.section else {}))

    try:
        result = rebuilt(config)
    except ValidationError:
        return None
    assert isinstance(result, RunConfig)
    return result


@pytest.mark.slow
@given(recipes())
@settings(max_examples=60, deadline=None)
def test_formatting_and_loading_a_recipe_restores_it(config: RunConfig) -> None:
    assert load_recipe(parse_toml(format_recipe(config).encode())).config == config


@pytest.mark.slow
@given(recipes())
@settings(max_examples=30, deadline=None)
def test_listed_settings_can_be_used_as_overrides(config: RunConfig) -> None:
    """--set accepts the keys and values that `seqloom config` shows."""
    resolved = load_recipe(parse_toml(format_recipe(config).encode()))
    shown = [setting for setting in list_settings(resolved) if setting.value]
    overrides = [f"{setting.key}={setting.value}" for setting in shown]
    again = load_recipe(parse_toml(format_recipe(config).encode()), overrides)
    assert again.config == config
    assert all(again.origins[setting.key] == "--set" for setting in shown)


@given(st.text() | st.integers() | st.booleans() | st.floats(allow_nan=False) | st.lists(st.text()))
def test_parsing_restores_a_formatted_value(value: Any) -> None:
    assert tomllib.loads(f"x = {format_value(value)}")["x"] == value


def typos(name: str) -> set[str]:
    """Every word with one letter missing, one letter doubled or two letters swapped."""
    cuts = {name[:i] + name[i + 1 :] for i in range(len(name))}
    doubles = {name[:i] + name[i] + name[i:] for i in range(len(name))}
    swaps = {name[:i] + name[i + 1] + name[i] + name[i + 2 :] for i in range(len(name) - 1)}
    return cuts | doubles | swaps


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.__name__)
def test_every_typo_is_rejected_with_a_suggestion(section: type[Section]) -> None:
    for name in section.model_fields:
        for typo in typos(name) - set(section.model_fields):
            unknown: list[UnknownKey] = []
            fill_defaults({typo: 1}, section, None, ("here",), unknown)
            (key,) = unknown
            assert key.path == ("here", typo)
            problem = unknown_key_problem(key)
            assert problem.startswith(f"here.{typo}: there is no such setting; did you mean '")
            # A typo may be as similar to another key, but seldom is.
            assert f"'{name}'" in problem or any(f"'{other}'" in problem for other in key.valid)


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.__name__)
def test_a_key_with_a_missing_letter_is_recognised(section: type[Section]) -> None:
    for name in section.model_fields:
        if len(name) > 3:
            key = UnknownKey(("here", name[:-2] + name[-1]), tuple(section.model_fields))
            assert unknown_key_problem(key).endswith(f"did you mean '{name}'?")


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.__name__)
def test_every_required_setting_has_an_example(section: type[Section]) -> None:
    for name, field in section.model_fields.items():
        if field.is_required() and not field_spec(field).choices:
            assert name in EXAMPLES


def test_the_kinds_of_a_field_are_all_different() -> None:
    for _, section in TABLES:
        for field in section.model_fields.values():
            spec = field_spec(field)
            for kind, inner in spec.sections.items():
                assert kind == section_kind(inner)
                assert not spec.has_kinds or kind


def test_every_section_is_part_of_the_schema() -> None:
    def descendants(parent: type[Section]) -> set[type[Section]]:
        return {parent}.union(*(descendants(child) for child in parent.__subclasses__()))

    abstract = {
        "AnyCorpusConfig",
        "Section",
        "PartConfig",
        "ExtensionConfig",
        "MetricExtensionConfig",
        "SearchRulesConfig",
        "SamplingRulesConfig",
        "ImageAugmentationConfig",
        "LayerStackConfig",
        "RecordsConfig",
        "TaggedCorpusConfig",
        "TransformerLayersConfig",
    }
    concrete = {
        section
        for section in descendants(Section)
        if section.__name__ not in abstract and kinds_of(section) == [section]
    }
    sections_of_schema = {
        section for section in concrete if section.__module__.startswith("seqloom.config")
    }
    assert sections_of_schema == set(SECTIONS)


def test_paths_of_settings_have_list_indices() -> None:
    paths: list[KeyPath] = [ref.path for ref in list_setting_refs(load_recipe(BASES[0]).config)]
    assert ("data", "train", 0, "source") in paths


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.__name__)
def test_every_setting_is_described(section: type[Section]) -> None:
    for name in section.model_fields:
        description = describe_field(section, name)
        assert description.endswith("."), f"{section.__name__}.{name}"


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.__name__)
def test_the_description_of_a_setting_states_its_default(section: type[Section]) -> None:
    for name, field in section.model_fields.items():
        if name == "kind" or field.is_required():
            continue
        description = describe_field(section, name)
        if isinstance(field.default, bool | int | float | str):
            stated = f"Default: {format_value(field.default)}"
            assert re.search(rf"{re.escape(stated)}[.;]", description), f"{section.__name__}.{name}"
        elif not field_spec(field).sections:
            assert "Default: " in description, f"{section.__name__}.{name}"
