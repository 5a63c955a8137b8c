"""The OpenAI API for language models: /v1/completions and /v1/models."""

import json
import math
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.serving.api.openai.outputs import IncrementalText, StopFilter, output_tokens
from support.server_process import ServerProcess

COMPLETIONS = "/v1/completions"
REQUEST: dict[str, Any] = {"model": "speaker", "prompt": "ab", "max_tokens": 8, "seed": 3}


def stream(server: ServerProcess, **request: Any) -> list[dict[str, Any]]:
    """The chunks of a stream, without its end."""
    with server.client.stream(
        "POST", server.url + COMPLETIONS, json={**REQUEST, **request, "stream": True}
    ) as response:
        assert response.status_code == 200, response.read()
        assert response.headers["content-type"].startswith("text/event-stream")
        events = [line for line in response.iter_lines() if line]
    assert events.pop() == "data: [DONE]"
    return [json.loads(event.removeprefix("data: ")) for event in events]


def joined_text(chunks: list[dict[str, Any]]) -> str:
    return "".join(choice["text"] for chunk in chunks for choice in chunk["choices"])


def cut_before_stop(text: str, stops: list[str]) -> str:
    """The text before the stop text that is complete first."""
    for end in range(1, len(text) + 1):
        matches = [stop for stop in stops if text[:end].endswith(stop)]
        if matches:
            return text[:end].removesuffix(max(matches, key=len))
    return text


@given(
    st.lists(st.text("ab", max_size=3), max_size=8),
    st.lists(st.text("ab", min_size=1, max_size=3), max_size=3),
)
def test_stop_texts_do_not_depend_on_the_parts(parts: list[str], stops: list[str]) -> None:
    stop_filter = StopFilter(stops)
    output = "".join(stop_filter.feed(part) for part in parts) + stop_filter.flush()
    text = "".join(parts)
    assert output == cut_before_stop(text, stops)
    assert stop_filter.stopped == any(stop in text for stop in stops)


@given(st.text(max_size=12), st.integers(0, 12))
def test_parts_of_characters_are_held_back(text: str, prefix_length: int) -> None:
    """The tokens are bytes, as in tokenizers with byte fallback."""
    if "\ufffd" in text:
        return
    tokens = list(text.encode())
    prefix_length = min(prefix_length, len(text))
    prefix = list(text[:prefix_length].encode())

    def decode(values: Any) -> str:
        return bytes(values).decode("utf-8", "replace")

    incremental = IncrementalText(decode, prefix)
    new = "".join(incremental.add(token) for token in tokens[len(prefix) :])
    assert new == text[prefix_length:]
    assert incremental.flush() == ""


def test_an_incomplete_last_character_is_not_dropped() -> None:
    incremental = IncrementalText(lambda tokens: bytes(tokens).decode("utf-8", "replace"), b"a")
    output = output_tokens(incremental, [*b"b\xc3"], [-1.0, -2.0], [], finished=False)
    assert "".join(output.texts) == "b\ufffd"
    assert output.finish_reason == "length"


@pytest.mark.slow
def test_models_are_the_language_model_runs(server: ServerProcess) -> None:
    models = server.get("/v1/models").json()
    assert models["object"] == "list"
    assert [model["id"] for model in models["data"]] == ["speaker"]
    assert server.get("/v1/models/speaker").json() == models["data"][0]
    assert server.get("/v1/models/missing").status_code == 404


@pytest.fixture(scope="module")
def seed(server: ServerProcess) -> int:
    """A seed with an output of several tokens. The small model often ends at once."""
    for seed in range(100):
        completion = server.post_json(COMPLETIONS, **{**REQUEST, "seed": seed})
        if completion["usage"]["completion_tokens"] >= 4:
            return seed
    raise AssertionError("all outputs are short")


@pytest.mark.slow
def test_completions_equal_those_of_the_other_route(server: ServerProcess, seed: int) -> None:
    request = {**REQUEST, "seed": seed}
    completion = server.post_json(COMPLETIONS, **request, logprobs=5)
    [choice] = completion["choices"]
    usage, logprobs = completion["usage"], choice["logprobs"]
    start, count = usage["prompt_tokens"], usage["completion_tokens"]
    [other] = server.post_json("/api/complete", prompts=["ab"], seed=seed, max_length=start + 8)[
        "completions"
    ][0]["outputs"]
    assert completion["object"] == "text_completion"
    assert "ab" + choice["text"] == other["text"]
    assert choice["finish_reason"] == ("stop" if other["finished"] else "length")
    assert "".join(logprobs["tokens"]) == choice["text"]
    assert logprobs["text_offset"] == list(range(2, 2 + count))  # the tokens are characters
    values = logprobs["token_logprobs"]
    assert values == pytest.approx(other["log_probabilities"][start : start + count], abs=1e-4)


@pytest.mark.slow
def test_the_likeliest_tokens_of_each_position(server: ServerProcess, seed: int) -> None:
    [choice] = server.post_json(COMPLETIONS, **{**REQUEST, "seed": seed}, logprobs=5)["choices"]
    logprobs = choice["logprobs"]
    columns = (logprobs["tokens"], logprobs["token_logprobs"], logprobs["top_logprobs"])
    found = 0
    for token, value, top in zip(*columns, strict=True):
        assert len(top) == 5
        assert sum(map(math.exp, top.values())) <= 1.0001
        if token in top:
            found += 1
            assert top[token] == pytest.approx(value, abs=1e-4)
        else:
            assert value <= min(top.values()) + 1e-4
    assert found


@pytest.mark.slow
@pytest.mark.parametrize("extra", [{}, {"logprobs": 0}, {"logprobs": 2}, {"echo": True}])
def test_a_stream_contains_the_same_output(
    server: ServerProcess, seed: int, extra: dict[str, Any]
) -> None:
    completion = server.post_json(COMPLETIONS, **{**REQUEST, "seed": seed}, **extra)
    chunks = stream(server, **extra, seed=seed, stream_options={"include_usage": True})
    assert joined_text(chunks) == completion["choices"][0]["text"]
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"] == completion["usage"]
    assert chunks[-2]["choices"][0]["finish_reason"] == completion["choices"][0]["finish_reason"]
    if extra.get("logprobs") is not None:
        parts = [c["choices"][0]["logprobs"] for c in chunks[:-1] if c["choices"][0]["logprobs"]]
        values = [value for part in parts for value in part["token_logprobs"]]
        expected = completion["choices"][0]["logprobs"]["token_logprobs"]
        assert values == pytest.approx(expected, abs=1e-4)


@pytest.mark.slow
def test_outputs_end_before_a_stop_text(server: ServerProcess, seed: int) -> None:
    request = {**REQUEST, "seed": seed}
    text = server.post_json(COMPLETIONS, **request)["choices"][0]["text"]
    stop = text[len(text) // 2]
    [choice] = server.post_json(COMPLETIONS, **request, stop=[stop])["choices"]
    assert choice["text"] == text[: text.index(stop)]
    assert choice["finish_reason"] == "stop"
    assert joined_text(stream(server, seed=seed, stop=stop)) == choice["text"]


@pytest.mark.slow
def test_several_prompts_and_outputs(server: ServerProcess) -> None:
    completion = server.post_json(COMPLETIONS, **{**REQUEST, "prompt": ["a", "bc"]}, n=2)
    assert [choice["index"] for choice in completion["choices"]] == [0, 1, 2, 3]
    chunks = stream(server, prompt=["a", "bc"], n=2)
    assert [chunk["choices"][0]["text"] for chunk in chunks] == [
        choice["text"] for choice in completion["choices"]
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "status", "param", "words"),
    [
        ({"model": "missing"}, 404, None, "there is no run 'missing'"),
        ({"model": "reverser"}, 422, None, "/api/translate"),
        ({"best_of": 3}, 422, "best_of", "not supported"),
        ({"frequency_penalty": 0.5}, 422, "frequency_penalty", "not supported"),
        ({"presence_penalty": 0.5}, 422, "presence_penalty", "not supported"),
        ({"logit_bias": {"5": 1}}, 422, "logit_bias", "not supported"),
        ({"suffix": "x"}, 422, "suffix", "not supported"),
        ({"echo": True, "logprobs": 1}, 422, "echo", "/api/score"),
        ({"stop": ["a", "b", "c", "d", "e"]}, 422, "stop", "at most 4"),
        ({"stop": ""}, 422, "stop", "none of them empty"),
        ({"prompt": []}, 422, "prompt", "empty"),
        (
            {"temperature": 0, "n": 2},
            422,
            "n",
            "n: with temperature 0, all outputs are equal; use n = 1 or raise temperature",
        ),
        ({"max_tokens": 100_000}, 422, "max_tokens", "too large"),
        ({"n": 100}, 422, "n", "too large"),
        ({"prompt": "a" * 6_000}, 413, "prompt[0]", "limit is 5,000"),
        ({"top_k": 3}, 422, "top_k", "no such field"),
    ],
)
def test_errors_have_the_format_of_openai(
    server: ServerProcess, changes: dict[str, Any], status: int, param: str | None, words: str
) -> None:
    response = server.post(COMPLETIONS, **{**REQUEST, **changes})
    assert response.status_code == status, response.text
    error = response.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert (error["type"], error["param"]) == ("invalid_request_error", param)
    assert words in error["message"]


@pytest.mark.slow
def test_the_official_client_works(server: ServerProcess, seed: int) -> None:
    openai: Any = import_module("openai")  # without its types, which do not accept a dictionary
    request = {**REQUEST, "seed": seed}
    client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="unused", max_retries=0)
    assert [model.id for model in client.models.list()] == ["speaker"]
    assert client.models.retrieve("speaker").owned_by == "seqloom"
    completion = client.completions.create(**request, logprobs=2)
    [choice] = completion.choices
    assert "".join(choice.logprobs.tokens) == choice.text
    assert len(choice.logprobs.top_logprobs[0]) == 2
    chunks = list(client.completions.create(**request, stream=True))
    assert "".join(chunk.choices[0].text for chunk in chunks) == choice.text
    with pytest.raises(openai.NotFoundError, match="there is no run 'missing'"):
        client.completions.create(**{**request, "model": "missing"})
    with pytest.raises(openai.UnprocessableEntityError, match="not supported") as caught:
        client.completions.create(**request, presence_penalty=1)
    assert caught.value.param == "presence_penalty"
