"""Creates the recipe section of an extension from settings that a test gives as arguments."""

from collections.abc import Callable
from typing import Any, TypeVar

from seqloom.config.extensions.section import ExtensionConfig, create_section

Config = TypeVar("Config", bound=ExtensionConfig)


def section_of(base: type[Config], extension: Callable[..., Any], settings: Any) -> Config:
    """Return the recipe section that selects an extension with these settings.

    base: the section class for extensions of this kind, such as `ScoreExtensionConfig`

    Raises pydantic.ValidationError if a setting is not valid.
    """
    kind = f"{extension.__module__}:{extension.__qualname__}"
    section = create_section(base, kind, extension)(kind=kind, **settings)
    assert isinstance(section, base)
    return section
