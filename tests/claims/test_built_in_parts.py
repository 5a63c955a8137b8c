"""Every registered part is complete: it can be built, explained, documented and tested.

A new kind of a part needs nothing else than what these tests ask for.
"""

import inspect
from typing import Any, get_args

import pytest
from zoo import EVERY_DECODER

from seqloom.config.extensions.section import ExtensionConfig
from seqloom.config.loading.json_schema import recipe_schema
from seqloom.config.loading.settings_list import describe_field
from seqloom.config.schema.attention import ScoreConfig
from seqloom.config.schema.embedding import EmbeddingConfig, PositionsConfig
from seqloom.config.schema.encoder_decoder import DecoderConfig, EncoderConfig
from seqloom.config.schema.names import METRICS, ScoreName
from seqloom.config.schema.section import PartConfig, Section, kinds_of
from seqloom.extensions.registry import load_part
from seqloom.metrics.score import Score
from seqloom.nn.attention import AttentionScore
from seqloom.nn.embedding import Lookup
from seqloom.nn.positions import PositionTable

BASES: tuple[type[PartConfig], ...] = (
    ScoreConfig,
    EmbeddingConfig,
    PositionsConfig,
    EncoderConfig,
    DecoderConfig,
)
PARTS: list[type[PartConfig]] = [
    section
    for base in BASES
    for section in kinds_of(base)
    if issubclass(section, PartConfig) and not issubclass(section, ExtensionConfig)
]
every_part = pytest.mark.parametrize("part", PARTS, ids=lambda part: part.__name__)


def kind_of(part: type[PartConfig]) -> str:
    return str(part.model_fields["kind"].default)


def test_every_type_of_part_has_kinds() -> None:
    assert {part.extension_point for part in PARTS} == {base.extension_point for base in BASES}


@every_part
def test_a_kind_is_documented(part: type[PartConfig]) -> None:
    assert inspect.cleandoc(part.__doc__ or "").split("\n\n")[0].endswith(".")
    assert all(describe_field(part, name) for name in part.model_fields)
    assert part.__name__ in recipe_schema()["definitions"]


@every_part
def test_a_kind_names_what_it_builds(part: type[PartConfig]) -> None:
    if part.builds:
        assert callable(part.part_class())
    else:
        assert kind_of(part) == "none"


@every_part
def test_facts_are_the_same_in_settings_and_class(part: type[PartConfig]) -> None:
    built = part.part_class() if part.builds else None
    for fact in part.facts:
        if inspect.isclass(built):
            assert getattr(part, fact) == getattr(built, fact), fact


SCORES = [part for part in PARTS if issubclass(part, ScoreConfig)]


@pytest.mark.parametrize("part", SCORES, ids=kind_of)
def test_a_score_has_formulas(part: type[PartConfig]) -> None:
    score = part.part_class()
    for name in ("formula", "query_gradient", "key_gradient"):
        assert getattr(score, name) is not getattr(AttentionScore, name), name


def test_embeddings_and_positions_have_formulas() -> None:
    for part in PARTS:
        built = part.part_class() if part.builds else None
        for base in (Lookup, PositionTable):
            if inspect.isclass(built) and issubclass(built, base):
                assert built.formula is not base.formula, part.__name__


def sections_in(value: Any) -> set[type[Section]]:
    """All classes of a section and of the sections nested in it."""
    if not isinstance(value, Section):
        return set()
    return {type(value)}.union(
        *(sections_in(getattr(value, name)) for name in type(value).model_fields)
    )


def test_the_zoo_has_every_kind() -> None:
    in_zoo = set[type[Section]]().union(*(sections_in(one.config) for one in EVERY_DECODER))
    missing = [part for part in PARTS if part not in in_zoo]
    # The models of the zoo read tokens.
    assert {getattr(part, "reads", "") for part in missing} == {"images"}


def test_every_metric_is_registered() -> None:
    assert set(METRICS) == set(get_args(ScoreName))


@pytest.mark.parametrize("name", METRICS)
def test_a_metric_has_the_direction_that_its_facts_state(name: str) -> None:
    sources = [["a b c"]] if METRICS[name].reads_sources else []
    score: Score = load_part(METRICS[name].builds)(*sources, ["a b c d"], [("a b c d",)])
    assert score.key == name
    assert score.higher_is_better == METRICS[name].higher_is_better
