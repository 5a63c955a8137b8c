"""Request limits from --limit NAME=VALUE."""

import re

import pytest

from seqloom.core.errors import ConfigError
from seqloom.serving.errors import ApiError
from seqloom.serving.server.limits import Limits, parse_limits


def test_limits_are_changed_by_name() -> None:
    limits = parse_limits(["beam=12", "characters=9"])
    assert (limits.beam, limits.characters) == (12, 9)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("beem=3", "beem: unknown limit; did you mean 'beam'?"),
        ("xyz=3", "xyz: unknown limit; choose one of body_bytes"),
        ("beam=0", "beam: must be at least 1"),
        ("beam=many", "beam: must be a whole number"),
        (
            "buffered_bytes=9",
            "buffered_bytes: must be at least 8388608, the maximum of body_bytes and image_bytes",
        ),
        ("beam", "'beam' must have the form NAME=VALUE"),
    ],
)
def test_invalid_limits_are_reported(setting: str, message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        parse_limits([setting])


def test_the_memory_of_bodies_has_room_for_one_body() -> None:
    assert parse_limits(["body_bytes=999999999"]).body_memory == 999999999
    assert parse_limits(["image_bytes=999999999"]).body_memory == 999999999
    assert parse_limits(["buffered_bytes=9000000"]).body_memory == 9000000


def test_a_text_that_is_too_long_gets_413() -> None:
    limits = Limits(characters=3)
    limits.check_texts("texts", ["abc"])
    with pytest.raises(ApiError, match="texts, item 2: has 4 characters; the limit is 3") as caught:
        limits.check_texts("texts", ["a", "abcd"])
    assert (caught.value.status, caught.value.kind) == (413, "too-large")
