"""Tokens as they are decided."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from calling_server import Server, refusal


def events(server: Server, path: str, **content: Any) -> Iterator[tuple[str, Any]]:
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
def test_a_greedy_translation_is_told_token_by_token(server: Server, run: str) -> None:
    told = list(events(server, "/api/translate/stream", run=run, texts=["abcd dcba"]))
    names = [name for name, _ in told]
    assert names[0] == "start"
    assert names[-1] == "done"
    assert set(names[1:-1]) <= {"token"}
    done = told[-1][1]
    whole = server.ask("/api/translate", run=run, texts=["abcd dcba"], beam=1, split=False)
    [same] = whole["translations"][0]["parts"][0]["outputs"]
    assert (done["text"], done["tokens"]) == (same["text"], same["tokens"])
    tokens = [content for name, content in told if name == "token"]
    assert [one["piece"] for one in tokens] == done["pieces"][: len(tokens)]
    assert len(tokens) >= len(done["pieces"]) - 2  # END, and perhaps the one before it
    likely = [one["log_probability"] for one in tokens]
    assert likely == pytest.approx(done["log_probabilities"][: len(tokens)], abs=1e-5)


def test_a_completion_grows_from_its_prompt(server: Server) -> None:
    asked = {"prompts": ["ab"], "seed": 3}
    told = list(events(server, "/api/complete/stream", **asked))
    assert told[0] == ("start", {"run": "speaker", "seed": 3})
    texts = [content["text"] for name, content in told if name == "token"]
    assert all(text.startswith("ab") for text in texts)
    whole = server.ask("/api/complete", **asked)["completions"][0]["outputs"][0]
    assert told[-1][1]["text"] == whole["text"]


@pytest.mark.parametrize(
    ("path", "content", "words"),
    [
        ("/api/translate/stream", {"run": "reverser", "texts": ["a"], "beam": 3}, "greedy search"),
        ("/api/translate/stream", {"run": "reverser", "texts": ["a", "b"]}, "one text"),
        ("/api/translate/stream", {"run": "reverser", "texts": [" "]}, "white space"),
        ("/api/complete/stream", {"samples": 2}, "one text"),
        ("/api/complete/stream", {"run": "reverser"}, "translates; ask it at /api/translate"),
    ],
)
def test_what_cannot_be_streamed_is_refused_before_it_starts(
    server: Server, path: str, content: dict[str, Any], words: str
) -> None:
    status, _, sentence = refusal(server.post(path, **content))
    assert status == 422
    assert words in sentence
