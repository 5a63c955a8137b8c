"""Settings of extensions: classes and functions outside seqloom that a recipe names.

The parameters of an extension's constructor are its settings. For the class

    class Cosine(AttentionScore):
        def __init__(self, query_width: int, key_width: int, temperature: float = 1.0) -> None: ...

a recipe can contain `score = {kind = "mypackage:Cosine", temperature = 0.5}`. seqloom provides the
parameters `query_width` and `key_width` itself (`PROVIDED`). `extension_section` creates a section
class with the field `temperature`, so that the settings of extensions are checked, listed and
stored like all others.
"""

import inspect
import re
from collections.abc import Callable
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, Union, cast, get_args, get_origin

from pydantic import (
    ModelWrapValidatorHandler,
    create_model,
    model_serializer,
    model_validator,
)
from pydantic_core import PydanticUndefined

from seqloom.config.schema.section import PartConfig, Section
from seqloom.core.errors import ConfigError
from seqloom.extensions.registry import FORM, ExtensionError, Point, find_extension

PROVIDED: dict[Point, tuple[str, ...]] = {
    "score": ("query_width", "key_width", "heads"),
    "metric": ("hypotheses", "references"),
    "reader": ("folder", "split", "origin"),
    "tokenizer": ("vocabulary", "preprocessing"),
    "rule": ("tokenizer",),
    "encoder": ("source", "signature"),
    "decoder": ("target", "signature", "encoder", "encoder_width"),
}
"""The parameters of an extension that seqloom provides, if the extension has them. All others are
settings."""


class ExtensionConfig(PartConfig):
    """A class or function that is written outside seqloom. `kind` is its name: "module:Name" or a
    registered name. The other settings of the table are its parameters."""

    extension_point: ClassVar[Point]
    """The type of the part, for example "score"."""
    extension_target: ClassVar[Any] = None
    """The class or function that the recipe names. None in a section class that is the base for all
    extensions of one point."""

    is_static: ClassVar[bool] = False
    """seqloom does not assume it of other code. An extension can state it in its class."""
    required_settings: ClassVar[tuple[str, ...]] = ()
    """Settings that an extension of this point must have."""

    kind: str = FORM

    @model_validator(mode="wrap")
    @classmethod
    def _specialise(cls, value: Any, handler: ModelWrapValidatorHandler["ExtensionConfig"]) -> Any:
        """Validate a table of a recipe with the pydantic class of its extension.

        The setting `kind` of the table names the extension. `extension_section` creates the
        pydantic class, which has a field for each setting of the extension.
        """
        if cls.extension_target is None and isinstance(value, dict):
            if "kind" not in value:
                raise ExtensionError(f"kind: is missing; for example kind = '{FORM}'")
            return extension_section(cls, value["kind"]).model_validate(value, strict=True)
        return handler(value)

    @model_serializer(mode="plain")
    def _all_settings(self) -> dict[str, Any]:
        """Return all settings of the extension as a dictionary.

        Without this serializer, pydantic would leave out the settings that the base class does not
        have.
        """
        return {"kind": self.kind, **self.part_settings}

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the settings, with `kind`, instead of a reference to the class.

        pickle cannot import this class, because `create_section` creates it at run time.
        """
        return _restore, (self.extension_base(), self._all_settings())

    @classmethod
    def extension_base(cls) -> type["ExtensionConfig"]:
        """Return the class that all extensions of this type share as their base.

        For attention scores, for example, this is `ScoreExtensionConfig`.
        """
        return next(each for each in cls.__mro__[1:] if issubclass(each, ExtensionConfig))

    @classmethod
    def part_class(cls) -> Callable[..., Any]:
        target: Callable[..., Any] = cls.extension_target
        return target

    def build_part(self, **provided: Any) -> Any:
        """Build the part. It gets only the values in `PROVIDED`; other names can be its settings.

        Raises ConfigError if the extension raises a ValueError or TypeError.
        """
        names = PROVIDED[self.extension_point]
        try:
            return super().build_part(
                **{name: provided[name] for name in names if name in provided}
            )
        except (TypeError, ValueError) as error:
            raise ConfigError(
                f"the {self.extension_point} '{self.kind}' cannot be created: {error}"
            ) from error

    @property
    def extension_options(self) -> dict[str, Any]:
        """The settings that the extension takes as parameters.

        Leaves out settings that seqloom itself uses, such as `tag` of a corpus.
        """
        names = inspect.signature(self.extension_target).parameters
        return {name: value for name, value in self.part_settings.items() if name in names}


def _restore(base: type[ExtensionConfig], values: dict[str, Any]) -> ExtensionConfig:
    return extension_section(base, values["kind"])(**values)


def extension_section(base: type[ExtensionConfig], kind: str) -> type[ExtensionConfig]:
    """Return the pydantic class for the table of an extension, with one field per setting.

    base: the base class for extensions of this type, such as attention scores
    kind: name of the extension: "module:Name" or a registered name

    Raises ExtensionError if there is no such extension, or if its parameters do not have
    names and types that settings of this extension point can have.
    """
    return create_section(base, kind, find_extension(base.extension_point, kind))


@cache
def create_section(base: type[ExtensionConfig], kind: str, target: Any) -> type[ExtensionConfig]:
    """Create the pydantic class for the table of an extension, with one field per setting.

    base:   the base class for extensions of this type, such as attention scores
    kind:   name of the extension
    target: the class or function with this name
    """
    try:
        parameters = inspect.signature(target, eval_str=True).parameters.values()
    except (TypeError, ValueError, NameError) as error:
        raise ExtensionError(f"the parameters of '{kind}' cannot be read: {error}") from error
    problems = [
        f"'{kind}' cannot be used: the {base.extension_point} needs a parameter `{name}: int`"
        for name in base.required_settings
        if name not in (parameter.name for parameter in parameters)
    ]
    fields: dict[str, Any] = {}
    for parameter in parameters:
        if parameter.name in PROVIDED[base.extension_point]:
            continue
        if problem := _parameter_problem(base, parameter):
            problems.append(f"'{kind}' cannot be used: the parameter {problem}")
        else:
            default = PydanticUndefined if _is_required(parameter) else parameter.default
            fields[parameter.name] = (parameter.annotation, default)
    if problems:
        raise ExtensionError("\n".join(problems))
    section = create_model(
        f"{target.__name__}Extension",
        __base__=base,
        __module__=target.__module__,
        __doc__=inspect.getdoc(target) or f"The {base.extension_point} {kind}.",
        kind=(str, kind),
        **fields,
    )
    section.extension_target = staticmethod(target)  # a plain function would become a method
    for fact in ("is_static", *base.facts):
        setattr(section, fact, getattr(target, fact, getattr(base, fact)))
    return section


def _is_required(parameter: inspect.Parameter) -> bool:
    return parameter.default is inspect.Parameter.empty


def _parameter_problem(base: type[ExtensionConfig], parameter: inspect.Parameter) -> str | None:
    """Return why a parameter cannot be a setting, or None if it can."""
    name = parameter.name
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        return f"*{name} has no fixed settings; list the settings as separate parameters"
    if parameter.kind is parameter.POSITIONAL_ONLY:
        return f"'{name}' is positional-only; remove the '/' from the parameters"
    is_taken = name in base.model_fields or hasattr(base, name)
    if is_taken or name.startswith(("_", "model_")):
        return f"'{name}' has a name that seqloom uses itself; rename it"
    if parameter.annotation is inspect.Parameter.empty:
        return f"'{name}' has no type; write for example `{name}: float`"
    if not _is_supported(parameter.annotation):
        return (
            f"'{name}' has a type that a recipe cannot contain; use str, int, float, bool, Literal, "
            "or a tuple or list of them"
        )
    return None


def _is_supported(annotation: Any) -> bool:
    """True if a recipe can contain values of this type."""
    origin = get_origin(annotation)
    if origin is Literal or annotation in (str, int, float, bool, NoneType):
        return True
    if origin is Annotated:
        return _is_supported(get_args(annotation)[0])
    if origin in (Union, UnionType, tuple, list):
        return all(_is_supported(each) for each in get_args(annotation) if each is not Ellipsis)
    return False


def describe_option(section: type[ExtensionConfig], name: str) -> str:
    """Return the description of a setting from the docstring of its extension.

    The docstring describes a setting in a line "name: description", which may continue in indented
    lines. Return "" if there is no such line.
    """
    match = re.search(
        rf"^{re.escape(name)}: +(.*(?:\n +.*)*)", inspect.cleandoc(section.__doc__ or ""), re.M
    )
    return " ".join(match[1].split()) if match else ""


class MetricExtensionConfig(ExtensionConfig):
    """A metric outside seqloom. A recipe contains only the name of the metric, no settings."""

    extension_point: ClassVar[Point] = "metric"


def find_metric(name: str) -> MetricExtensionConfig:
    """Return the metric with this name.

    Raises ExtensionError if there is no such metric, if the metric does not have the parameters
    `hypotheses` and `references`, or if another parameter has no default.
    """
    section = extension_section(MetricExtensionConfig, name)
    parameters = inspect.signature(section.extension_target).parameters
    missing = [each for each in PROVIDED["metric"] if each not in parameters]
    extra = [each for each, field in section.model_fields.items() if field.is_required()]
    if missing or extra:
        raise ExtensionError(
            f"the metric '{name}' must have the parameters hypotheses and references, and defaults "
            f"for all others, but its parameters are {', '.join(parameters) or 'none'}"
        )
    return cast("MetricExtensionConfig", section())


def list_extensions(section: Section, path: str = "") -> dict[str, ExtensionConfig]:
    """Find all extensions in a section and its nested sections.

    Returns a dictionary that maps the path of each extension in the recipe to its settings.

    path: the path of the section in the recipe. Default: the root
    """
    if isinstance(section, ExtensionConfig):
        return {path: section}
    found: dict[str, ExtensionConfig] = {}
    for name in type(section).model_fields:
        value = getattr(section, name)
        key = f"{path}.{name}" if path else name
        if isinstance(value, Section):
            found |= list_extensions(value, key)
        elif isinstance(value, tuple):
            for index, item in enumerate(value):
                if isinstance(item, Section):
                    found |= list_extensions(item, f"{key}[{index}]")
    return found
