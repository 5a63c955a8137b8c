"""Messages about invalid fields and the description of the API are in plain words."""

import json
from typing import Any

import pytest

from seqloom.serving.api.schemas.validation import location_in_words
from support.in_process_server import respond

JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("/api/translate", {}, "texts: this field is required"),
        ("/api/translate", {"texts": "a"}, "texts: must be a list"),
        ("/api/translate", {"texts": [5]}, "texts, item 1: must be a text"),
        ("/api/translate", {"texts": []}, "texts: must have at least 1 item(s), not 0"),
        ("/api/translate", {"texts": ["a"], "beam": 0}, "beam: must be at least 1"),
        ("/api/translate", {"texts": ["a"], "beam": "2"}, "beam: must be a whole number"),
        ("/api/translate", {"texts": ["a"], "split": 1}, "split: must be true or false"),
        ("/api/translate", {"texts": ["a"], "x": 1}, "x: there is no such field"),
        ("/api/complete", {"temperature": 200}, "temperature: must be at most 100"),
        ("/api/complete", {"top_p": 0}, "top_p: must be greater than 0"),
        ("/api/complete", {"seed": 2**60}, "seed: must be at most"),
        ("/api/forecast", {"windows": [{"observed": [["a"]]}]}, "must be a number"),
        ("/api/forecast", {"windows": [1]}, "windows, item 1: must be an object"),
        ("/translate", {"q": 5, "target": "it"}, "q: must be a text or must be a list"),
        ("/translate", {"q": "a", "target": "it", "alternatives": "x"}, "must be a whole number"),
        ("/translate", {"q": "\ud800", "target": "it"}, "half of a surrogate pair"),
    ],
)
def test_messages_say_what_a_field_must_be(path: str, body: dict[str, Any], message: str) -> None:
    text = respond("POST", path, content=json.dumps(body), headers=JSON).json()["error"]
    assert message in text
    for phrase in ("Input should", "input should", "valid string", "Value error", "function-after"):
        assert phrase not in text


def test_openapi_describes_the_api_key() -> None:
    description = respond("GET", "/openapi.json").json()
    [scheme] = description["components"]["securitySchemes"].values()
    assert (scheme["type"], scheme["scheme"]) == ("http", "bearer")
    assert description["paths"]["/api/translate"]["post"]["security"]
    assert "security" not in description["paths"]["/api/runs"]["get"]


def test_openapi_has_human_summaries_and_describes_the_limits() -> None:
    description = respond("GET", "/openapi.json").json()
    operations = [one for path in description["paths"].values() for one in path.values()]
    for operation in operations:
        assert operation["description"].startswith(operation["summary"])
    assert description["paths"]["/api/translate"]["post"]["summary"] == "Translate texts"
    limits = description["components"]["schemas"]["Limits"]["properties"]
    assert all(limit["description"] for limit in limits.values())


@pytest.mark.parametrize(
    ("location", "words"),
    [
        ("run", "run"),
        ("texts[0]", "texts, item 1"),
        ("windows[1].observed[2][0]", "windows, item 2, observed, row 3, column 1"),
        ("windows[0].context[4]", "windows, item 1, context, row 5"),
    ],
)
def test_messages_count_rows_and_items_from_one(location: str, words: str) -> None:
    assert location_in_words(location) == words
