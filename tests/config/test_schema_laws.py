"""Laws that hold for every setting of every section, now and whenever one is added."""

import tomllib
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from pydantic.fields import FieldInfo

from seqloom.config.complete import UnknownKey, complete
from seqloom.config.load import dump, resolve
from seqloom.config.places import Path, kind_of, place_of, sections_in, settings_of
from seqloom.config.problems import EXAMPLES, unknown_key_problem
from seqloom.config.run import RunConfig
from seqloom.config.section import Section
from seqloom.config.show import lines
from seqloom.config.toml import format_value, parse

TABLES = sections_in(RunConfig)
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
    place = place_of(field)
    if place.sections:
        one = st.sampled_from([*place.sections.values()]).flatmap(sections)
        several = st.lists(one, max_size=2).map(tuple)
        return several if place.many else st.none() | one if place.optional else one
    if place.choices:
        word = st.sampled_from(place.choices)
        return st.lists(word, max_size=2).map(tuple) if place.many else word
    types = {*get_args(field.annotation), field.annotation}
    simple: Any = st.nothing()
    if bool in types:
        simple |= st.booleans()
    if int in types:
        simple |= st.sampled_from([0, 1, 2, 4, 8, 64, 512, 99_999])
    if float in types:
        simple |= st.floats(0, 1) | st.sampled_from([1.5, 2.5, 1e-9])
    if str in types:
        simple |= st.text()
    simple = st.lists(simple, max_size=2).map(tuple) if place.many else simple
    return st.none() | simple if place.optional else simple


def sections(section: type[Section]) -> st.SearchStrategy[Section]:
    """A section of this class with some of its settings drawn; refused ones are left as before."""

    @st.composite
    def draw_one(draw: st.DrawFn) -> Section:
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

    return draw_one()


def _built(section: type[Section], given: dict[str, Any]) -> Section | None:
    try:
        return section(**given)
    except ValidationError:
        return None


@st.composite
def recipes(draw: st.DrawFn) -> RunConfig:
    """A valid recipe, some steps of random change away from a plain one."""
    config = resolve(draw(st.sampled_from(BASES))).config
    for _ in range(draw(st.integers(0, 8))):
        _, owner, name = draw(st.sampled_from(settings_of(config)))
        value = draw(values_of(type(owner).model_fields[name]))
        changed = _replaced(config, owner, name, value)
        config = changed or config
    return config


def _replaced(config: RunConfig, owner: Section, name: str, value: Any) -> RunConfig | None:
    def rebuilt(here: Any) -> Any:
        if isinstance(here, tuple):
            return tuple(rebuilt(item) for item in here)
        if not isinstance(here, Section):
            return here
        fields = {key: rebuilt(getattr(here, key)) for key in type(here).model_fields}
        return type(here)(**fields | ({name: value} if here is owner else {}))

    try:
        result = rebuilt(config)
    except ValidationError:
        return None
    assert isinstance(result, RunConfig)
    return result


@given(recipes())
@settings(max_examples=150, deadline=None)
def test_a_recipe_written_out_and_read_again_is_the_same(config: RunConfig) -> None:
    assert resolve(parse(dump(config).encode())).config == config


@given(recipes())
@settings(max_examples=30, deadline=None)
def test_what_is_shown_of_a_recipe_can_be_set_again(config: RunConfig) -> None:
    """The keys and values `seqloom config` shows are the keys and values --set takes."""
    resolved = resolve(parse(dump(config).encode()))
    plain = [line for line in lines(resolved) if line.value]
    again = resolve(parse(dump(config).encode()), [f"{line.key}={line.value}" for line in plain])
    assert again.config == config
    assert all(again.origins[line.key] == "--set" for line in plain)


@given(st.text() | st.integers() | st.booleans() | st.floats(allow_nan=False) | st.lists(st.text()))
def test_a_value_written_as_toml_is_read_back(value: Any) -> None:
    assert tomllib.loads(f"x = {format_value(value)}")["x"] == value


def typos(name: str) -> set[str]:
    """A letter too few, a letter too many, two letters swapped: at every place."""
    cuts = {name[:i] + name[i + 1 :] for i in range(len(name))}
    doubles = {name[:i] + name[i] + name[i:] for i in range(len(name))}
    swaps = {name[:i] + name[i + 1] + name[i] + name[i + 2 :] for i in range(len(name) - 1)}
    return cuts | doubles | swaps


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.__name__)
def test_every_typo_is_refused_with_a_did_you_mean(section: type[Section]) -> None:
    for name in section.model_fields:
        for typo in typos(name) - set(section.model_fields):
            unknown: list[UnknownKey] = []
            complete({typo: 1}, section, None, ("here",), unknown)
            (key,) = unknown
            assert key.path == ("here", typo)
            problem = unknown_key_problem(key)
            assert problem.startswith(f"here.{typo}: there is no such setting; did you mean '")
            # A typo may lie as near to another key; far more often it does not.
            assert f"'{name}'" in problem or any(f"'{other}'" in problem for other in key.valid)


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.__name__)
def test_a_letter_left_out_of_a_key_is_put_back(section: type[Section]) -> None:
    for name in section.model_fields:
        if len(name) > 3:
            key = UnknownKey(("here", name[:-2] + name[-1]), tuple(section.model_fields))
            assert unknown_key_problem(key).endswith(f"did you mean '{name}'?")


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.__name__)
def test_every_required_setting_has_an_example(section: type[Section]) -> None:
    for name, field in section.model_fields.items():
        if field.is_required() and not place_of(field).choices:
            assert name in EXAMPLES


def test_the_kinds_of_one_place_are_all_different() -> None:
    for _, section in TABLES:
        for field in section.model_fields.values():
            place = place_of(field)
            for kind, inner in place.sections.items():
                assert kind == kind_of(inner)
                assert not place.tagged or kind


def test_every_section_is_reached() -> None:
    def below(parent: type[Section]) -> set[type[Section]]:
        return {parent}.union(*(below(child) for child in parent.__subclasses__()))

    abstract = {
        "Section",
        "RulesConfig",
        "DrawingConfig",
        "SightConfig",
        "LayersConfig",
        "TaggedConfig",
        "TransformerLayersConfig",
    }
    every = {section for section in below(Section) if section.__name__ not in abstract}
    ours = {section for section in every if section.__module__.startswith("seqloom.config")}
    assert ours == set(SECTIONS)


def test_a_path_reads_as_users_write_it() -> None:
    paths: list[Path] = [path for path, _, _ in settings_of(resolve(BASES[0]).config)]
    assert ("data", "train", 0, "source") in paths
