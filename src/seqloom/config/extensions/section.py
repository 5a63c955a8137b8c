"""Settings of extensions: parts of a recipe that are written outside seqloom.

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
from functools import cache
from typing import Any, ClassVar, cast

from pydantic import (
    ModelWrapValidatorHandler,
    PydanticUserError,
    create_model,
    model_serializer,
    model_validator,
)
from pydantic_core import PydanticUndefined

from seqloom.config.schema.section import Section
from seqloom.core.errors import ConfigError
from seqloom.extensions.registry import FORM, ExtensionError, Point, find_extension

PROVIDED: dict[Point, tuple[str, ...]] = {
    "score": ("query_width", "key_width", "heads"),
    "metric": ("hypotheses", "references"),
    "reader": ("folder", "split"),
    "tokenizer": ("vocabulary", "tags", "lowercase"),
    "rule": ("tokenizer",),
    "encoder": ("source",),
    "decoder": ("target", "encoder_width"),
}
"""The parameters of an extension that seqloom provides, if the extension has them. All others are
settings."""


class ExtensionConfig(Section):
    """A class or function outside seqloom, named "module:Name" or by its registered name. Its
    parameters are the other settings of the table."""

    point: ClassVar[Point]
    """The extension point."""
    target: ClassVar[Any] = None
    """The class or function that the recipe names. None: this class is not specialised yet."""

    kind: str = FORM

    @model_validator(mode="wrap")
    @classmethod
    def _specialise(cls, value: Any, handler: ModelWrapValidatorHandler["ExtensionConfig"]) -> Any:
        """Validate a table with the section class of its extension."""
        if cls.target is None and isinstance(value, dict):
            if "kind" not in value:
                raise ExtensionError(f"kind: is missing; for example kind = '{FORM}'")
            return extension_section(cls, value["kind"]).model_validate(value, strict=True)
        return handler(value)

    @model_serializer(mode="plain")
    def _all_settings(self) -> dict[str, Any]:
        """Return all fields. pydantic itself would return those of the declared class only."""
        return {"kind": self.kind, **self.all_options}

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by `kind`, because the class was created when the recipe was loaded."""
        return _restore, (self.base(), self._all_settings())

    @classmethod
    def base(cls) -> type["ExtensionConfig"]:
        """Return the section class of the extension point, which this class specialises."""
        return next(each for each in cls.__mro__[1:] if issubclass(each, ExtensionConfig))

    @property
    def all_options(self) -> dict[str, Any]:
        """All settings except `kind`."""
        return {name: getattr(self, name) for name in type(self).model_fields if name != "kind"}

    @property
    def options(self) -> dict[str, Any]:
        """The settings that are parameters of the extension."""
        names = inspect.signature(self.target).parameters
        return {name: value for name, value in self.all_options.items() if name in names}

    def build(self, **provided: Any) -> Any:
        """Call the extension with its settings, and with those of `provided` that it has as
        parameters.

        Raises ConfigError if the extension raises a ValueError or TypeError.
        """
        parameters = inspect.signature(self.target).parameters
        wanted = {name: value for name, value in provided.items() if name in parameters}
        try:
            return self.target(**wanted, **self.options)
        except (TypeError, ValueError) as error:
            raise ConfigError(
                f"the {self.point} '{self.kind}' cannot be created: {error}"
            ) from error


def _restore(base: type[ExtensionConfig], values: dict[str, Any]) -> ExtensionConfig:
    return extension_section(base, values["kind"])(**values)


def extension_section(base: type[ExtensionConfig], kind: str) -> type[ExtensionConfig]:
    """Return the section class of an extension, with one field for each of its settings.

    base: the section class of the extension point
    kind: "module:Name" or a registered name

    Raises ExtensionError if there is no such extension, or if its parameters cannot be settings.
    """
    return _create_section(base, kind, find_extension(base.point, kind))


@cache
def _create_section(base: type[ExtensionConfig], kind: str, target: Any) -> type[ExtensionConfig]:
    try:
        parameters = inspect.signature(target, eval_str=True).parameters.values()
    except (TypeError, ValueError, NameError) as error:
        raise ExtensionError(f"the parameters of '{kind}' cannot be read: {error}") from error
    problems = []
    fields: dict[str, Any] = {}
    for parameter in parameters:
        if parameter.name in PROVIDED[base.point]:
            continue
        if problem := _parameter_problem(base, parameter):
            problems.append(f"'{kind}' cannot be used: the parameter {problem}")
        else:
            default = PydanticUndefined if _is_required(parameter) else parameter.default
            fields[parameter.name] = (parameter.annotation, default)
    if problems:
        raise ExtensionError("\n".join(problems))
    try:
        section = create_model(
            f"{target.__name__}Extension",
            __base__=base,
            __module__=target.__module__,
            __doc__=inspect.getdoc(target) or f"The {base.point} {kind}.",
            kind=(str, kind),
            **fields,
        )
    except PydanticUserError as error:
        raise ExtensionError(
            f"'{kind}' cannot be used: a parameter has a type that recipes do not support; use "
            f"str, int, float, bool, Literal, or a tuple or list of them. {error.message}"
        ) from error
    section.target = staticmethod(target)  # a plain function would become a method
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
    if name in base.model_fields or name.startswith(("_", "model_")):
        return f"'{name}' has a name that seqloom uses itself; rename it"
    if parameter.annotation is inspect.Parameter.empty:
        return f"'{name}' has no type; write for example `{name}: float`"
    return None


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
    """A metric outside seqloom. Recipes name metrics in lists, so metrics have no settings."""

    point: ClassVar[Point] = "metric"


def find_metric(name: str) -> MetricExtensionConfig:
    """Return the metric with this name.

    Raises ExtensionError if there is no such metric, or if it has parameters that need a value.
    """
    section = extension_section(MetricExtensionConfig, name)
    parameters = inspect.signature(section.target).parameters
    missing = [each for each in PROVIDED["metric"] if each not in parameters]
    extra = [each for each, field in section.model_fields.items() if field.is_required()]
    if missing or extra:
        raise ExtensionError(
            f"the metric '{name}' must have the parameters hypotheses and references, and defaults "
            f"for all others, but its parameters are {', '.join(parameters) or 'none'}"
        )
    return cast("MetricExtensionConfig", section())


def list_extensions(section: Section, path: str = "") -> dict[str, ExtensionConfig]:
    """Return all extensions in a section and in the sections nested in it, by their settings.

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
