"""Every route under /api returns the results of the run."""

from pathlib import Path

import numpy as np
import pytest

import seqloom
from seqloom.analysis.explanation import explain
from seqloom.analysis.search_inspection import SearchInspection
from seqloom.data.modalities.series import SeriesWindow
from support.server_process import ServerProcess
from support.small_runs import image_bytes

pytestmark = pytest.mark.slow


def test_the_page_and_its_files_load_nothing_from_other_origins(server: ServerProcess) -> None:
    index = server.get("/")
    assert index.status_code == 200
    assert index.headers["content-type"] == "text/html; charset=utf-8"
    for path in ("/docs", "/static/main.js", "/static/style.css", "/static/docs.js"):
        response = server.get(path)
        assert response.status_code == 200, path
        assert "//" not in response.text.replace("// ", ""), path
    for path in ("/static/../app.py", "/static/..%2fapp.py", "/static/", "/static/%00.js"):
        assert server.get(path).status_code == 404, path


def test_every_response_has_the_security_headers(server: ServerProcess) -> None:
    for path in ("/", "/api/runs", "/nowhere", "/static/main.js"):
        headers = server.get(path).headers
        assert "default-src 'none'; script-src 'self'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-opener-policy"] == "same-origin"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert "access-control-allow-origin" not in headers


def test_health_and_ready_are_ok(server: ServerProcess) -> None:
    assert server.get("/health").json() == server.get("/ready").json() == {"status": "ok"}


def test_runs_are_described(server: ServerProcess) -> None:
    response = server.get("/api/runs").json()
    runs = {run["name"]: run for run in response["runs"]}
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
    assert response["limits"]["beam"] == 8


def test_a_translation_equals_the_runs_own(server: ServerProcess, runs: dict[str, Path]) -> None:
    [expected] = seqloom.load(runs["reverser"]).translate_n_best(["abcd"], 3, beam=4)
    response = server.post_json(
        "/api/translate",
        run="reverser",
        texts=["abcd"],
        beam=4,
        n_best=3,
        alignment=True,
        attention=True,
        heads=True,
    )
    assert (response["run"], response["beam"]) == ("reverser", 4)
    [part] = response["translations"][0]["parts"]
    assert len(part["outputs"]) == 3
    for output, prediction in zip(part["outputs"], expected, strict=True):
        assert output["text"] == prediction.text
        assert output["score"] == pytest.approx(prediction.score, abs=1e-5)
        assert tuple(output["pieces"]) == prediction.pieces
        assert len(output["tokens"]) == len(prediction.pieces)
        assert [tuple(pair) for pair in output["alignment"]] == list(prediction.alignment)
        assert prediction.attention is not None
        assert np.allclose(output["attention"], prediction.attention.numpy(), atol=1e-5)
        assert np.shape(output["heads"])[1:3] == (1, 1)
    alternatives = [prediction.text for prediction in expected[1:]]
    assert response["translations"][0]["alternatives"] == alternatives


def test_long_texts_are_split_and_keep_their_white_space(
    server: ServerProcess, runs: dict[str, Path]
) -> None:
    """Each sentence is translated as if it were alone."""
    text = "  ab. Cd!\n\n\tdcba\r\n" + "abcd " * 120 + "\n"
    response = server.post_json("/api/translate", run="reverser", texts=[text], split=True)
    [translation] = response["translations"]
    parts = translation["parts"]
    sources = [part["source"] for part in parts]
    assert "".join(part["before"] + part["source"] for part in parts) == text.rstrip()
    assert sources[:3] == ["ab.", "Cd!", "dcba"]
    assert len(sources) > 5, "a sentence that is too long for the model is split"
    expected = [one.text for one in seqloom.load(runs["reverser"]).translate(sources)]
    assert [part["outputs"][0]["text"] for part in parts] == expected
    joined = "".join(part["before"] + one for part, one in zip(parts, expected, strict=True))
    assert translation["text"] == joined + " \n"


def test_blank_texts_stay_blank(server: ServerProcess) -> None:
    response = server.post_json("/api/translate", run="reverser", texts=["", "ab", " \n"])
    assert [one["text"] for one in response["translations"]][::2] == ["", " \n"]
    assert response["translations"][0]["parts"] == []


def test_a_run_is_chosen_by_its_languages(server: ServerProcess) -> None:
    response = server.post_json("/api/translate", texts=["dog"], source="en", target="fr")
    assert (response["run"], response["source"], response["target"]) == ("polyglot", "en", "fr")
    assert server.post_json("/api/translate", texts=["ab"], source="la")["run"] == "reverser"


def test_a_translation_starts_with_the_given_prefix(server: ServerProcess) -> None:
    response = server.post_json(
        "/api/translate", run="reverser", texts=["abcd"], split=False, prefix="dd"
    )
    assert response["translations"][0]["text"].startswith("dd")


def test_completions_are_reproducible_by_their_seed(
    server: ServerProcess, runs: dict[str, Path]
) -> None:
    request = {"prompts": ["ab", ""], "samples": 2, "temperature": 0.8, "top_k": 3, "seed": 5}
    response = server.post_json("/api/complete", **request)
    assert response == server.post_json("/api/complete", **request)
    assert response["seed"] == 5
    run = seqloom.load(runs["speaker"])
    sample = {"kind": "sample", "samples": 2, "temperature": 0.8, "top_k": 3, "seed": 5}
    config = type(run.config).model_validate({**run.config.model_dump(), "decoding": sample})
    expected = run.complete(["ab", ""], decoding=config.decoding, n_best=2)
    texts = [[output["text"] for output in one["outputs"]] for one in response["completions"]]
    assert texts == [[prediction.text for prediction in outputs] for outputs in expected]


def test_completions_report_a_random_seed_but_none_for_temperature_0(
    server: ServerProcess,
) -> None:
    assert isinstance(server.post_json("/api/complete")["seed"], int)
    greedy = server.post_json("/api/complete", temperature=0)
    assert greedy["seed"] is None
    again = server.post_json("/api/complete", temperature=0)
    assert greedy["completions"] == again["completions"]


def test_completions_report_unknown_tokens_in_the_prompt(server: ServerProcess) -> None:
    assert server.post_json("/api/complete", prompts=["€"])["completions"][0]["unknown"]


def test_labels_have_probabilities(server: ServerProcess) -> None:
    texts = ["hund mann", "", "dog cat"]
    labels = server.post_json("/api/label", texts=texts, every=True)["labels"]
    assert labels[0][0]["label"] == "de"
    assert labels[1] == []
    assert labels[2][0]["label"] == "en"
    for labels_of_text in (labels[0], labels[2]):
        assert sum(one["probability"] for one in labels_of_text) == pytest.approx(1, abs=0.01)
    [[likeliest]] = server.post_json("/api/label", texts=["hund mann"])["labels"]
    assert likeliest == pytest.approx(labels[0][0])


def test_scores_of_given_targets_equal_the_runs_own(
    server: ServerProcess, runs: dict[str, Path]
) -> None:
    [expected] = seqloom.load(runs["reverser"]).score(["abc"], ["cba"])
    [score] = server.post_json("/api/score", run="reverser", sources=["abc"], targets=["cba"])[
        "scores"
    ]
    assert score["log_probabilities"] == pytest.approx(expected.log_probabilities, abs=1e-5)
    [language_model_score] = server.post_json("/api/score", targets=["ab"])["scores"]
    assert language_model_score["score"] < 0
    response = server.post_json(
        "/api/score", sources=["dog"], targets=["chien"], source="en", target="fr"
    )
    assert response["run"] == "polyglot"


def test_a_forecast_equals_the_runs_own(server: ServerProcess, runs: dict[str, Path]) -> None:
    observed = [[float(n), 1.0] for n in range(6)]
    window = SeriesWindow(np.array(observed), np.zeros((3, 1)), np.ones((3, 1)), "")
    expected = seqloom.load_forecaster(runs["forecaster"]).forecast([window])
    request = {"observed": observed, "context": [[1.0]] * 3}
    response = server.post_json("/api/forecast", windows=[request, request])
    assert response["columns"] == ["level"]
    assert np.allclose(response["forecasts"], np.repeat(expected, 2, axis=0), atol=1e-5)


@pytest.mark.parametrize("form", ["PNG", "JPEG", "GIF", "BMP", "WEBP", "TIFF"])
def test_an_image_is_captioned(server: ServerProcess, form: str) -> None:
    response = server.client.post(
        f"{server.url}/api/caption?n_best=2&beam=3",
        content=image_bytes("red", form=form),
        headers={"Content-Type": f"image/{form.lower()}"},
    )
    assert response.status_code == 200, response.text
    caption = response.json()
    assert len(caption["outputs"]) == 2
    rows, columns = caption["grid"]
    for weights in caption["outputs"][0]["attention"]:
        assert len(weights) == rows * columns
        assert sum(weights) == pytest.approx(1, abs=1e-4)


def test_attention_weights_by_layer_and_head(server: ServerProcess) -> None:
    response = server.post_json("/api/attention", run="transformer", text="ab cd", pieces=True)
    layers, heads, rows, columns = np.shape(response["heads"])
    assert (layers, heads) == (1, 2)
    assert (rows, columns) == (len(response["outputs"]), len(response["sources"]))
    assert np.allclose(np.mean(response["heads"], axis=(0, 1)), response["weights"], atol=1e-6)
    assert np.allclose(np.sum(response["weights"], axis=1), 1, atol=1e-4)
    given = server.post_json(
        "/api/attention", run="transformer", text="ab", output="dd", pieces=True
    )
    assert given["outputs"] == ["d", "d", "</s>"]


def test_a_search_is_returned_with_all_candidates(
    server: ServerProcess, runs: dict[str, Path]
) -> None:
    response = server.post_json("/api/search", run="reverser", text="abc", beam=3)
    inspection = SearchInspection.of(seqloom.load(runs["reverser"]), "abc")
    expected = inspection.run.translate(["abc"], beam=3)
    assert response["outputs"][0]["text"] == expected[0].text
    assert response["record"]["width"] == 3
    steps = response["record"]["steps"]
    assert {"kept", "finished"} <= {candidate["fate"] for step in steps for candidate in step}
    for step in steps:
        assert all(str(candidate["token"]) in response["pieces"] for candidate in step)


def test_alternatives_of_each_step_can_be_continued(server: ServerProcess) -> None:
    response = server.post_json("/api/alternatives", run="reverser", text="abc", count=3)
    assert len(response["steps"]) == len(response["tokens"]) + 1
    assert [len(step) for step in response["steps"]] == [3] * len(response["steps"])
    letter = next(choice for choice in response["steps"][0] if choice["piece"] in "abcd")
    continued = server.post_json(
        "/api/continue", run="reverser", text="abc", begin=[letter["token"]]
    )
    assert continued["output"]["pieces"][0] == letter["piece"]
    instead = server.post_json("/api/instead", run="reverser", text="abc", step=1, piece="d")
    assert instead["changed"]["text"].startswith("d")
    tokens = response["tokens"]
    assert instead["original"]["tokens"][: len(tokens)] == tokens


def test_a_decoder_step_is_explained(server: ServerProcess, runs: dict[str, Path]) -> None:
    response = server.post_json("/api/explain", run="reverser", text="abc", step=2)
    explanation = response["explanation"]
    expected = explain(seqloom.load(runs["reverser"]), "abc", 2)
    assert [part["name"] for part in explanation["parts"]] == [part.name for part in expected.parts]
    assert sum(one["probability"] for one in explanation["best"]) <= 1 + 1e-6


def test_the_lecture_example_is_explained(server: ServerProcess) -> None:
    explanation = server.get("/api/explain/lecture").json()["explanation"]
    scores = next(part for part in explanation["parts"] if part["name"] == "scores")
    assert [round(value) for value in scores["values"]] == [1054, 852, -396]


def test_the_openapi_schema_describes_every_route(server: ServerProcess) -> None:
    paths = server.get("/openapi.json").json()["paths"]
    assert {"/api/translate", "/api/caption", "/translate", "/detect", "/ready"} <= set(paths)
    for path, methods in paths.items():
        for method in methods.values():
            assert method.get("description"), path
