"""Limits: how much may be asked of the service. Every number is bounded."""

from collections.abc import Sequence

from pydantic import Field, ValidationError

from seqloom.config.loading.error_messages import closest_match
from seqloom.config.schema.section import Section
from seqloom.core.errors import ConfigError


class Limits(Section):
    """What one request, and all of them together, may take. Seconds are of the wall clock."""

    body_bytes: int = Field(256 * 1024, ge=1)
    """Of a request that is no image."""
    image_bytes: int = Field(8 * 1024 * 1024, ge=1)
    image_pixels: int = Field(16_000_000, ge=1)
    characters: int = Field(5_000, ge=1)
    """Of each text."""
    texts: int = Field(64, ge=1)
    """Of one request: texts, prompts, windows of numbers."""
    beam: int = Field(8, ge=1)
    alternatives: int = Field(5, ge=0)
    """Outputs for a text, beside the best one."""
    output_tokens: int = Field(256, ge=1)
    """What a completion may be asked to have at most."""
    in_flight: int = Field(32, ge=1)
    """Requests that are worked on at a time."""
    queue: int = Field(128, ge=0)
    """Requests that wait for their turn; one more is refused at once."""
    queue_seconds: float = Field(2.0, gt=0)
    """How long one waits for its turn before it is refused."""
    deadline_seconds: float = Field(30.0, gt=0)
    """How long a request may take in all."""
    body_seconds: float = Field(30.0, gt=0)
    """How long a body may take to arrive."""
    header_seconds: float = Field(10.0, ge=0.001)
    """How long headers may take to arrive, and a connection stay without a request."""

    @property
    def n_best(self) -> int:
        return 1 + self.alternatives


def changed_limits(settings: Sequence[str]) -> Limits:
    """The usual limits, changed by name=value; all problems at once."""
    changes: dict[str, str] = {}
    problems = []
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals:
            problems.append(f"'{setting}' must look like name=value, for example beam=12")
        elif name not in Limits.model_fields:
            near = closest_match(name, list(Limits.model_fields))
            hint = f"did you mean '{near}'?" if near else f"there are {_names()}"
            problems.append(f"{name}: there is no such limit; {hint}")
        else:
            changes[name] = value
    try:
        limits = Limits.model_validate(changes)
    except ValidationError as error:
        problems += [f"{one['loc'][0]}: {_told(one['msg'])}" for one in error.errors()]
    if problems:
        raise ConfigError("\n".join(["--limit cannot be used:", *(f"  {one}" for one in problems)]))
    return limits


def _names() -> str:
    return ", ".join(Limits.model_fields)


def _told(message: str) -> str:
    return message[0].lower() + message[1:]
