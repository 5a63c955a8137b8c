"""Pydantic annotations for settings that accept built-in choices and extensions."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, get_args, get_origin

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from seqloom.config.extensions.section import ExtensionConfig, find_metric
from seqloom.config.schema.section import Section, kinds_of
from seqloom.extensions.registry import FORM, Point, is_extension


class ByKind:
    """Annotation for the settings of a part. The `kind` of a recipe table selects their class.

    The annotated type is the base class of these settings, such as `ScoreConfig`; its registered
    kinds are accepted. It can also be a union of section classes.

    Each built-in `kind` has its own class. All extensions share one class. If a pydantic error is
    about an extension, the location of the error contains "module:Name" instead of the `kind`.
    """

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        sections: Sequence[type[Section]] = get_args(source) or kinds_of(source)
        choices = {
            section.model_fields["kind"].default: handler.generate_schema(section)
            for section in sections
        }
        extensions = [section for section in sections if issubclass(section, ExtensionConfig)]
        if not extensions:
            return core_schema.tagged_union_schema(choices, discriminator="kind")
        [extension] = extensions
        tag = _tag_function(extension.extension_point, frozenset(choices))
        return core_schema.tagged_union_schema(choices, discriminator=tag)


def _tag_function(point: Point, choices: frozenset[str]) -> Callable[[Any], str | None]:
    def tag(value: Any) -> str | None:
        kind = value.get("kind") if isinstance(value, dict) else getattr(value, "kind", None)
        if not isinstance(kind, str) or kind in choices:  # built-in kinds have priority
            return kind
        return FORM if is_extension(point, kind) else kind

    return tag


class ByName:
    """Annotation for a setting that is the name of a metric.

    Accepts the built-in names, which the annotated type lists as literals, and the names of metrics
    that are written outside seqloom.
    """

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        literals = [leaf for leaf in get_args(source) if get_origin(leaf) is Literal]
        names = [name for literal in literals for name in get_args(literal)]

        def check(value: Any, literal: core_schema.ValidatorFunctionWrapHandler) -> Any:
            is_other = isinstance(value, str) and value not in names
            if is_other and is_extension("metric", value):
                find_metric(value)
                return value
            return literal(value)

        return core_schema.no_info_wrap_validator_function(
            check,
            core_schema.literal_schema(names),
            serialization=core_schema.plain_serializer_function_ser_schema(str),
        )
