"""Every route answers what the run itself says."""

import math
from pathlib import Path

import numpy as np
import pytest

import seqloom
from calling_server import Server
from seqloom.data.series import Window
from seqloom.inside.explain import explain
from seqloom.runs.question import Question
from small_runs import picture


def test_the_page_and_its_files_come_from_here(server: Server) -> None:
    index = server.get("/")
    assert index.status_code == 200
    assert index.headers["content-type"] == "text/html; charset=utf-8"
    for path in ("/docs", "/static/main.js", "/static/style.css", "/static/docs.js"):
        response = server.get(path)
        assert response.status_code == 200, path
        assert "//" not in response.text.replace("// ", ""), "nothing is fetched from elsewhere"
    for path in ("/static/../app.py", "/static/..%2fapp.py", "/static/", "/static/%00.js"):
        assert server.get(path).status_code == 404, path


def test_every_answer_keeps_browsers_safe(server: Server) -> None:
    for path in ("/", "/api/runs", "/nowhere", "/static/main.js"):
        headers = server.get(path).headers
        assert "default-src 'none'; script-src 'self'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-opener-policy"] == "same-origin"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert "access-control-allow-origin" not in headers


def test_signs_of_life(server: Server) -> None:
    assert server.get("/health").json() == server.get("/ready").json() == {"status": "ok"}


def test_runs_say_what_they_are(server: Server) -> None:
    found = server.get("/api/runs").json()
    runs = {run["name"]: run for run in found["runs"]}
    assert {name: run["kind"] for name, run in runs.items()} == {
        "reverser": "translation",
        "transformer": "translation",
        "speaker": "language-model",
        "polyglot": "translation",
        "labeller": "labels",
        "captioner": "captioning",
        "forecaster": "forecast",
    }
    assert runs["reverser"]["languages"] == [{"source": "la", "target": "it"}]
    assert runs["transformer"]["languages"] == []
    assert runs["polyglot"]["targets"] == ["de", "fr"]
    assert len(runs["polyglot"]["languages"]) == 3
    assert (runs["transformer"]["layers"], runs["transformer"]["heads"]) == (1, 2)
    assert runs["forecaster"]["columns"] == ["level"]
    for run in runs.values():
        assert run["memory_bytes"] == 4 * run["parameters"] > 0
        assert run["engine"]
    assert found["limits"]["beam"] == 8


def test_a_translation_is_the_runs_own(server: Server, runs: dict[str, Path]) -> None:
    run = seqloom.load(runs["reverser"])
    [own] = run.translate_n_best(["abcd"], 3, beam=4)
    found = server.ask(
        "/api/translate",
        run="reverser",
        texts=["abcd"],
        beam=4,
        n_best=3,
        alignment=True,
        attention=True,
        heads=True,
    )
    assert (found["run"], found["beam"]) == ("reverser", 4)
    [part] = found["translations"][0]["parts"]
    assert len(part["outputs"]) == 3
    for output, mine in zip(part["outputs"], own, strict=True):
        assert output["text"] == mine.text
        assert output["score"] == pytest.approx(mine.score, abs=1e-5)
        assert tuple(output["pieces"]) == mine.pieces
        assert len(output["tokens"]) == len(mine.pieces)
        assert [tuple(pair) for pair in output["alignment"]] == list(mine.alignment)
        assert mine.attention is not None
        assert np.allclose(output["attention"], mine.attention.numpy(), atol=1e-5)
        assert np.shape(output["heads"])[1:3] == (1, 1)
    assert found["translations"][0]["alternatives"] == [one.text for one in own[1:]]


def test_long_texts_come_back_with_their_white_space(server: Server, runs: dict[str, Path]) -> None:
    """Each sentence as if it were alone, and nothing between them lost."""
    text = "  ab. Cd!\n\n\tdcba\r\n" + "abcd " * 120 + "\n"
    [found] = server.ask("/api/translate", run="reverser", texts=[text])["translations"]
    sources = [part["source"] for part in found["parts"]]
    assert "".join(part["before"] + part["source"] for part in found["parts"]) == text.rstrip()
    assert sources[:3] == ["ab.", "Cd!", "dcba"]
    assert len(sources) > 5, "what is too long to be read at once is cut"
    own = [one.text for one in seqloom.load(runs["reverser"]).translate(sources)]
    assert [part["outputs"][0]["text"] for part in found["parts"]] == own
    joined = "".join(part["before"] + one for part, one in zip(found["parts"], own, strict=True))
    assert found["text"] == joined + " \n"


def test_blank_among_others_is_blank(server: Server) -> None:
    found = server.ask("/api/translate", run="reverser", texts=["", "ab", " \n"])
    assert [one["text"] for one in found["translations"]][::2] == ["", " \n"]
    assert found["translations"][0]["parts"] == []


def test_runs_are_chosen_by_their_languages(server: Server) -> None:
    found = server.ask("/api/translate", texts=["dog"], source="en", target="fr")
    assert (found["run"], found["source"], found["target"]) == ("polyglot", "en", "fr")
    assert server.ask("/api/translate", texts=["ab"], source="la")["run"] == "reverser"


def test_a_beginning_can_be_given(server: Server) -> None:
    found = server.ask("/api/translate", run="reverser", texts=["abcd"], split=False, prefix="dd")
    assert found["translations"][0]["text"].startswith("dd")


def test_completions_can_be_had_again(server: Server, runs: dict[str, Path]) -> None:
    asked = {"prompts": ["ab", ""], "samples": 2, "temperature": 0.8, "top_k": 3, "seed": 5}
    first = server.ask("/api/complete", **asked)
    assert first == server.ask("/api/complete", **asked)
    assert first["seed"] == 5
    run = seqloom.load(runs["speaker"])
    sample = {"kind": "sample", "samples": 2, "temperature": 0.8, "top_k": 3, "seed": 5}
    decoding = (
        type(run.config).model_validate({**run.config.model_dump(), "decoding": sample}).decoding
    )
    own = run.complete(["ab", ""], decoding=decoding, n_best=2)
    texts = [[one["text"] for one in each["outputs"]] for each in first["completions"]]
    assert texts == [[one.text for one in outputs] for outputs in own]
    assert isinstance(server.ask("/api/complete")["seed"], int)
    greedy = server.ask("/api/complete", temperature=0)
    assert greedy["seed"] is None
    assert greedy["completions"] == server.ask("/api/complete", temperature=0)["completions"]
    assert server.ask("/api/complete", prompts=["€"])["completions"][0]["unknown"]


def test_labels_come_with_their_probabilities(server: Server) -> None:
    found = server.ask("/api/label", texts=["hund mann", "", "dog cat"], every=True)["labels"]
    assert found[0][0]["label"] == "de"
    assert found[1] == []
    assert found[2][0]["label"] == "en"
    for each in (found[0], found[2]):
        assert sum(one["probability"] for one in each) == pytest.approx(1, abs=0.01)
    [[likeliest]] = server.ask("/api/label", texts=["hund mann"])["labels"]
    assert likeliest == pytest.approx(found[0][0])


def test_scores_of_given_outputs_are_the_models_own(server: Server, runs: dict[str, Path]) -> None:
    [own] = seqloom.load(runs["reverser"]).score(["abc"], ["cba"])
    [found] = server.ask("/api/score", run="reverser", sources=["abc"], targets=["cba"])["scores"]
    assert found["log_probabilities"] == pytest.approx(own.log_probabilities, abs=1e-5)
    [alone] = server.ask("/api/score", targets=["ab"])["scores"]
    assert alone["score"] < 0
    found = server.ask("/api/score", sources=["dog"], targets=["chien"], source="en", target="fr")
    assert found["run"] == "polyglot"


def test_a_forecast_is_the_runs_own(server: Server, runs: dict[str, Path]) -> None:
    observed = [[float(n), 1.0] for n in range(6)]
    window = Window(np.array(observed), np.zeros((3, 1)), np.ones((3, 1)), "")
    own = seqloom.load_forecaster(runs["forecaster"]).forecast([window])
    asked = {"observed": observed, "context": [[1.0]] * 3}
    found = server.ask("/api/forecast", windows=[asked, asked])
    assert found["columns"] == ["level"]
    assert np.allclose(found["forecasts"], np.repeat(own, 2, axis=0), atol=1e-5)


@pytest.mark.parametrize("form", ["PNG", "JPEG", "GIF", "BMP", "WEBP", "TIFF"])
def test_an_image_is_captioned(server: Server, form: str) -> None:
    response = server.client.post(
        f"{server.url}/api/caption?n_best=2&beam=3",
        content=picture("red", form=form),
        headers={"Content-Type": f"image/{form.lower()}"},
    )
    assert response.status_code == 200, response.text
    found = response.json()
    assert len(found["outputs"]) == 2
    rows, columns = found["grid"]
    for row in found["outputs"][0]["attention"]:
        assert len(row) == rows * columns
        assert sum(row) == pytest.approx(1, abs=1e-4)


def test_attention_by_layer_and_head(server: Server) -> None:
    found = server.ask("/api/attention", run="transformer", text="ab cd", pieces=True)
    layers, heads, rows, columns = np.shape(found["heads"])
    assert (layers, heads) == (1, 2)
    assert (rows, columns) == (len(found["outputs"]), len(found["sources"]))
    assert np.allclose(np.mean(found["heads"], axis=(0, 1)), found["weights"], atol=1e-6)
    assert np.allclose(np.sum(found["weights"], axis=1), 1, atol=1e-4)
    given = server.ask("/api/attention", run="transformer", text="ab", output="dd", pieces=True)
    assert given["outputs"] == ["d", "d", "</s>"]


def test_a_search_can_be_played_again(server: Server, runs: dict[str, Path]) -> None:
    found = server.ask("/api/search", run="reverser", text="abc", beam=3)
    own = Question.of(seqloom.load(runs["reverser"]), "abc").run.translate(["abc"], beam=3)
    assert found["outputs"][0]["text"] == own[0].text
    assert found["record"]["width"] == 3
    fates = {one["fate"] for step in found["record"]["steps"] for one in step}
    assert {"kept", "finished"} <= fates
    for step in found["record"]["steps"]:
        assert all(str(one["token"]) in found["pieces"] for one in step)


def test_what_if_another_token_had_stood_there(server: Server) -> None:
    known = server.ask("/api/alternatives", run="reverser", text="abc", count=3)
    assert len(known["steps"]) == len(known["tokens"]) + 1
    assert [len(step) for step in known["steps"]] == [3] * len(known["steps"])
    other = next(one for one in known["steps"][0] if one["piece"] in "abcd")
    output = server.ask("/api/continue", run="reverser", text="abc", begin=[other["token"]])
    assert output["output"]["pieces"][0] == other["piece"]
    changed = server.ask("/api/instead", run="reverser", text="abc", step=1, piece="d")
    assert changed["changed"]["text"].startswith("d")
    assert changed["original"]["tokens"][: len(known["tokens"])] == known["tokens"]


def test_one_step_laid_open(server: Server, runs: dict[str, Path]) -> None:
    found = server.ask("/api/explain", run="reverser", text="abc", step=2)["explanation"]
    own = explain(seqloom.load(runs["reverser"]), "abc", 2)
    assert [part["name"] for part in found["parts"]] == [part.name for part in own.parts]
    assert sum(one["probability"] for one in found["best"]) <= 1 + 1e-6
    lecture = server.get("/api/explain/lecture").json()["explanation"]
    scores = next(part for part in lecture["parts"] if part["name"] == "scores")
    assert [round(value) for value in scores["values"]] == [1054, 852, -396]


def test_the_schema_describes_every_route(server: Server) -> None:
    paths = server.get("/openapi.json").json()["paths"]
    assert {"/api/translate", "/api/caption", "/translate", "/detect", "/ready"} <= set(paths)
    for path, methods in paths.items():
        for method in methods.values():
            assert method.get("description"), path
    assert math.isfinite(len(paths))
