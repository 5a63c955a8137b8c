"""Server-sent events: tokens as they are generated."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from support.server_process import ServerProcess, error_of

pytestmark = pytest.mark.slow


def read_events(server: ServerProcess, path: str, **content: Any) -> Iterator[tuple[str, Any]]:
    """(name, data) of each event."""
    with server.client.stream("POST", server.url + path, json=content) as response:
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        name = ""
        for line in response.iter_lines():
            key, _, value = line.partition(": ")
            if key == "event":
                name = value
            elif key == "data":
                yield name, json.loads(value)


@pytest.mark.parametrize("run", ["reverser", "transformer"])
def test_a_greedy_translation_is_streamed_token_by_token(server: ServerProcess, run: str) -> None:
    events = list(read_events(server, "/api/translate/stream", run=run, texts=["abcd dcba"]))
    names = [name for name, _ in events]
    assert names[0] == "start"
    assert names[-1] == "done"
    assert set(names[1:-1]) <= {"token"}
    done = events[-1][1]
    greedy = server.post_json("/api/translate", run=run, texts=["abcd dcba"], beam=1, split=False)
    [output] = greedy["translations"][0]["parts"][0]["outputs"]
    assert (done["text"], done["tokens"]) == (output["text"], output["tokens"])
    tokens = [content for name, content in events if name == "token"]
    assert [token["piece"] for token in tokens] == done["pieces"][: len(tokens)]
    assert len(tokens) >= len(done["pieces"]) - 2  # without END, and perhaps the token before it
    log_probabilities = [token["log_probability"] for token in tokens]
    expected = done["log_probabilities"][: len(tokens)]
    assert log_probabilities == pytest.approx(expected, abs=1e-5)


def test_a_streamed_completion_starts_with_its_prompt(server: ServerProcess) -> None:
    request = {"prompts": ["ab"], "seed": 3}
    events = list(read_events(server, "/api/complete/stream", **request))
    assert events[0] == ("start", {"run": "speaker", "seed": 3})
    texts = [content["text"] for name, content in events if name == "token"]
    assert all(text.startswith("ab") for text in texts)
    output = server.post_json("/api/complete", **request)["completions"][0]["outputs"][0]
    assert events[-1][1]["text"] == output["text"]


@pytest.mark.parametrize(
    ("path", "content", "words"),
    [
        ("/api/translate/stream", {"run": "reverser", "texts": ["a"], "beam": 3}, "greedy search"),
        ("/api/translate/stream", {"run": "reverser", "texts": ["a", "b"]}, "one text"),
        ("/api/translate/stream", {"run": "reverser", "texts": [" "]}, "white space"),
        ("/api/complete/stream", {"samples": 2}, "one text"),
        ("/api/complete/stream", {"run": "reverser"}, "translates; use /api/translate"),
    ],
)
def test_invalid_requests_get_an_error_response_instead_of_a_stream(
    server: ServerProcess, path: str, content: dict[str, Any], words: str
) -> None:
    status, _, message = error_of(server.post(path, **content))
    assert status == 422
    assert words in message
