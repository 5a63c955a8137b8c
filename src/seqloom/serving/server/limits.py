"""Request limits: what one request may contain, and how many requests run at a time.

`seqloom serve --limit NAME=VALUE` changes a limit; GET /api/runs lists them.
"""

from collections.abc import Mapping, Sequence

from pydantic import ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from seqloom.config.loading.error_messages import closest_match
from seqloom.config.schema.section import Section
from seqloom.core.errors import ConfigError
from seqloom.inference.options import OPTIONS
from seqloom.serving.api.schemas.option_fields import OptionsRequest
from seqloom.serving.api.schemas.validation import invalid_fields
from seqloom.serving.errors import ApiError, invalid_field


class Limits(Section):
    """Maximum values for requests, and methods that check request fields against them.

    Times are in seconds.
    """

    model_config = ConfigDict(use_attribute_docstrings=True)  # describes them in /openapi.json

    body_bytes: int = Field(256 * 1024, ge=1)
    """Maximum size of a request body that is not an image, in bytes."""
    image_bytes: int = Field(8 * 1024 * 1024, ge=1)
    """Maximum size of an image file, in bytes."""
    buffered_bytes: int = Field(256 * 1024 * 1024, ge=1)
    """Maximum total size of the request bodies that are in memory, in bytes. A body is in memory from
    the arrival of its first byte to the end of the response. The server rejects further bodies with
    503. The default is larger if body_bytes or image_bytes is larger."""
    image_pixels: int = Field(16_000_000, ge=1)
    """Maximum number of pixels of an image: width times height."""
    characters: int = Field(5_000, ge=1)
    """Maximum number of characters of one text."""
    texts: int = Field(64, ge=1)
    """Maximum number of texts, prompts or windows of numbers in one request."""
    glossary: int = Field(256, ge=0)
    """Maximum number of pairs in the glossary of one request."""
    beam: int = Field(8, ge=1)
    """Maximum beam width."""
    alternatives: int = Field(5, ge=0)
    """Maximum number of outputs per text in addition to the best one."""
    output_tokens: int = Field(256, ge=1)
    """Maximum of `max_length` in a completion request, and maximum number of output tokens that a
    client can send to the inspection routes."""
    in_flight: int = Field(32, ge=1)
    """Maximum number of requests that are processed at the same time."""
    queue: int = Field(128, ge=0)
    """Maximum number of waiting requests. The server rejects further requests with 503."""
    queue_seconds: float = Field(2.0, gt=0)
    """Maximum time that a request waits before the server rejects it."""
    deadline_seconds: float = Field(30.0, gt=0)
    """Maximum time from the complete request body to the complete response."""
    files: int = Field(32, ge=1)
    """Maximum number of translated files that wait for their download. The server rejects further
    files with 503."""
    file_seconds: float = Field(600.0, gt=0)
    """Maximum time that a translated file waits for its download."""
    body_seconds: float = Field(30.0, gt=0)
    """Maximum time for the request body to arrive."""
    header_seconds: float = Field(10.0, ge=0.001)
    """Maximum time for the request headers to arrive, and maximum idle time of a connection."""

    @field_validator("buffered_bytes")
    @classmethod
    def _check_buffered_bytes(cls, value: int, info: ValidationInfo) -> int:
        # If a single body did not fit, all retries of its client would be rejected too.
        minimum = max(info.data.get("body_bytes", 1), info.data.get("image_bytes", 1))
        if value < minimum:
            raise ValueError(
                f"must be at least {minimum}, the maximum of body_bytes and image_bytes"
            )
        return value

    @property
    def body_memory(self) -> int:
        """Maximum total size of the request bodies in memory: `buffered_bytes`, or a single body."""
        return max(self.buffered_bytes, self.body_bytes, self.image_bytes)

    @property
    def n_best(self) -> int:
        """Maximum number of outputs per text, including the best one."""
        return 1 + self.alternatives

    def check_texts(self, field: str, texts: Sequence[str]) -> None:
        """Raise a 413 error if there are too many texts or one of them is too long."""
        self.check_count(field, len(texts))
        for index, text in enumerate(texts):
            if len(text) > self.characters:
                raise _too_large(
                    f"{field}[{index}]",
                    f"has {len(text):,} characters; the limit is {self.characters:,} per text",
                )

    def check_options(self, request: OptionsRequest) -> None:
        """Raise an error with status 413 or 422 if an option of the request exceeds its limit."""
        for name, field in request.option_names.items():
            value, limit = getattr(request, field), OPTIONS[name].limit
            if isinstance(value, Mapping):
                self.check_glossary(field, value)
            elif limit:
                check_maximum(field, value, getattr(self, limit))

    def check_glossary(self, field: str, pairs: Mapping[str, str]) -> None:
        """Raise a 413 error if a glossary has too many pairs or one of its phrases is too long."""
        if len(pairs) > self.glossary:
            raise _too_large(field, f"has {len(pairs)} pairs; the limit is {self.glossary}")
        for phrase in (*pairs, *pairs.values()):
            if len(phrase) > self.characters:
                raise _too_large(
                    field,
                    f"has a phrase of {len(phrase):,} characters; the limit is {self.characters:,}",
                )

    def check_count(self, field: str, count: int) -> None:
        """Raise a 413 error if the number of items in a list exceeds the limit `texts`."""
        if count > self.texts:
            raise _too_large(field, f"has {count} items; the limit is {self.texts} per request")


def _too_large(field: str, message: str) -> ApiError:
    error = invalid_field(field, message)
    return ApiError(413, "too-large", str(error), error.details)


def check_maximum(field: str, value: int | None, maximum: int) -> None:
    """Raise a 422 error if a number exceeds its maximum. None is always accepted."""
    if value is not None and value > maximum:
        raise invalid_field(field, f"{value} is too large; the limit is {maximum}")


def check_not_blank(field: str, texts: Sequence[str]) -> None:
    """Raise a 422 error if all texts are blank. Blank texts among others are allowed."""
    if not any(text.strip() for text in texts):
        raise invalid_field(field, "contains only white space; send some text")


def parse_limits(settings: Sequence[str]) -> Limits:
    """Return the default limits, changed by the options --limit NAME=VALUE.

    Raises one ConfigError that lists all invalid settings.
    """
    changes: dict[str, str] = {}
    errors = []
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals:
            errors.append(f"'{setting}' must have the form NAME=VALUE, for example beam=12")
        elif name not in Limits.model_fields:
            suggestion = closest_match(name, list(Limits.model_fields))
            hint = (
                f"did you mean '{suggestion}'?"
                if suggestion
                else f"choose one of {', '.join(Limits.model_fields)}"
            )
            errors.append(f"{name}: unknown limit; {hint}")
        else:
            changes[name] = value
    try:
        limits = Limits.model_validate(changes)
    except ValidationError as error:
        problems = invalid_fields(error.errors())
        errors += (f"{name}: {problem}" for name, problem in problems.items())
    if errors:
        raise ConfigError("\n".join(["invalid --limit:", *(f"  {error}" for error in errors)]))
    return limits
