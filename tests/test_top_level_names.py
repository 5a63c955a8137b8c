"""The names that `import seqloom` and `from seqloom import …` offer."""

import pytest

import seqloom
from seqloom.config.schema.decoding import SampleConfig


@pytest.mark.parametrize("name", seqloom.__all__)
def test_every_public_name_can_be_imported(name: str) -> None:
    assert getattr(seqloom, name).__name__ == name


def test_a_search_can_be_configured_with_public_names_only() -> None:
    assert seqloom.SampleConfig(temperature=0.5) == SampleConfig(temperature=0.5)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        seqloom.__getattr__("Nothing")
