"""The base classes of the sections of a recipe, which are its tables.

`PartConfig` is the base class of the settings of a part: a table whose `kind` selects what is built.
The settings of the additive attention score, for example, name the class that they build:

    class AdditiveScoreConfig(ScoreConfig):
        builds: ClassVar[str] = "seqloom.nn.attention:AdditiveScore"
        kind: Literal["additive"] = "additive"
        width: int = Field(128, gt=0)

Defining such a class registers it. A setting of the type `Annotated[ScoreConfig, ByKind()]` then
accepts the kind "additive", like all other registered kinds and like extensions, whose settings
seqloom derives from the parameters of their constructors (`ExtensionConfig`).

What the configuration has to know about a part before torch is imported is a fact: a class variable
that the base class of the settings declares, with its default. A built-in part states it in its
settings, an extension in its class.
"""

import inspect
from collections.abc import Callable
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict

from seqloom.extensions.registry import FORM, built_in_parts, load_part, register_built_in


class Section(BaseModel):
    """A table of a recipe. Sections are immutable and reject unknown keys.

    The docstring under each field describes the setting; `seqloom config` prints it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class PartConfig(Section):
    """Settings of a part. A subclass for each type of part, such as attention scores, is the base
    class of its kinds."""

    extension_point: ClassVar[str]
    """The type of the part, such as "score"."""
    builds: ClassVar[str] = ""
    """The class or function that builds the part, in the form "module:Name". A class that sets this
    variable is registered as a kind."""
    facts: ClassVar[tuple[str, ...]] = ()
    """Names of the class variables, besides `is_static`, that an extension sets in its own class."""
    is_static: ClassVar[bool] = True
    """True if the part runs the same operations for all inputs of one shape. Training steps can then
    be captured as CUDA graphs."""

    kind: str

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        if "builds" in vars(cls):
            register_built_in(cls.extension_point, cls.model_fields["kind"].default, cls)

    @property
    def part_settings(self) -> dict[str, Any]:
        """Maps the name of each setting except `kind` to its value."""
        return {name: getattr(self, name) for name in type(self).model_fields if name != "kind"}

    @classmethod
    def part_class(cls) -> Callable[..., Any]:
        """Return the class or function that builds the part. Imports its module if necessary."""
        return load_part(cls.builds)

    def build_part(self, **provided: Any) -> Any:
        """Build the part: call its class or function with the settings.

        provided: values that seqloom passes in addition, such as `query_width`. Values that are
                  not parameters of the class or function are left out, and so are settings
        """
        target = self.part_class()
        parameters = inspect.signature(target).parameters
        values = {**self.part_settings, **provided}
        return target(**{name: values[name] for name in values if name in parameters})


def kinds_of(base: type[Section]) -> list[type[Section]]:
    """Return the section classes that a setting of the type `base` accepts.

    If `base` is the base class of a type of part, these are its registered kinds, in the order of
    their definition. Otherwise, the setting accepts only `base` itself.
    """
    if not issubclass(base, PartConfig) or not base.model_fields["kind"].is_required():
        return [base]
    sections = built_in_parts(base.extension_point).values()
    return [section for section in sections if issubclass(section, base)]


def names_of_kinds(base: type[PartConfig], fact: str, *, value: bool = True) -> str:
    """Return the built-in kinds for which a fact has this value: "'dot' or 'rbf'"."""
    kinds = [
        f"'{kind}'"
        for kind, section in built_in_parts(base.extension_point).items()
        if kind != FORM and issubclass(section, base) and getattr(section, fact) is value
    ]
    return " or ".join([", ".join(kinds[:-1]), kinds[-1]] if len(kinds) > 1 else kinds)
