"""What the page asks for beside everybody's API."""

import json
import time
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

import seqloom
from calling_server import Server, refusal
from seqloom.inside.lecture import LectureScore, explain_lecture
from seqloom.runs.question import Question
from seqloom.serving.beginnings import made_up_window
from seqloom.serving.journals import describe_training, has_journal, read_journal
from seqloom.serving.reports import find_reports
from seqloom.viz.tree_layout import lay_out


def test_a_tree_is_laid_out_as_pictures_have_it(server: Server, runs: dict[str, Path]) -> None:
    found = server.ask("/api/search/tree", run="reverser", text="abcd", beam=3, n_best=3)
    run = seqloom.load(runs["reverser"])
    decoding = run.config.decoding.model_copy(update={"width": 3})
    searched = Question.of(run, "abcd", decoding).search(3)
    layout = lay_out(searched)
    assert [[one["row"] for one in step] for step in found["tree"]["spots"]] == [
        [spot.row for spot in step] for step in layout.spots
    ]
    assert [one["text"] for one in found["outputs"]] == [one.text for one in searched.outputs]
    assert (found["kind"], found["width"]) == ("beam", 3)
    assert server.refusal("/api/search/tree", run="reverser", text=" ")[:2] == (422, "unusable")
    status, _, sentence = server.refusal("/api/search/tree", run="reverser", text="a", beam=99)
    assert (status, sentence) == (422, "beam: 99 is too large; at most 8 here")


@pytest.mark.parametrize("score", get_args(LectureScore))
def test_the_lectures_example_is_asked_for_by_its_score(server: Server, score: str) -> None:
    path = f"/api/explain/lecture?score={score}&choice=argmax"
    found = server.get(path).json()["explanation"]
    assert found == explain_lecture(score, "argmax").to_json()  # type: ignore[arg-type]
    assert server.get("/api/explain/lecture?score=best").status_code == 422


def test_how_trainings_stand(server: Server, runs: dict[str, Path]) -> None:
    found = {one["run"]: one for one in server.get("/api/trainings").json()["trainings"]}
    assert found["reverser"]["state"] == "ended"
    assert (found["reverser"]["step"], found["reverser"]["steps"]) == (40, 40)
    assert len(found) == 7
    whole = server.get("/api/trainings/reverser").json()
    lines = (runs["reverser"] / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    assert whole["events"] == [json.loads(line) for line in lines]
    assert (whole["begin"], whole["more"]) == (0, False)
    again = server.get(f"/api/trainings/reverser?after={whole['next']}").json()
    assert again["events"] == []
    status, kind, _ = refusal(server.get("/api/trainings/nobody"))
    assert (status, kind) == (404, "no-such-run")


def test_a_journal_is_read_while_it_is_written(tmp_path: Path) -> None:
    assert not has_journal(tmp_path)
    journal = tmp_path / "metrics.jsonl"
    event = {"event": "step", "step": 1, "steps": 9, "time": time.time()}
    line = json.dumps(event).encode() + b"\n"
    journal.write_bytes(line + line[:20])
    first = read_journal("run", tmp_path, 0)
    assert (first.events, first.next) == ([event], len(line)), "half a line is no line yet"
    assert describe_training("run", tmp_path).state == "running"
    with journal.open("ab") as file:
        file.write(line[20:])
    second = read_journal("run", tmp_path, first.next)
    assert (second.begin, second.events) == (first.next, [event])
    journal.write_bytes(line)
    back = read_journal("run", tmp_path, second.next)
    assert (back.begin, back.events) == (0, [event]), "training went back to a checkpoint"
    journal.write_bytes(json.dumps(event | {"time": 1.0}).encode() + b"\n")
    assert describe_training("run", tmp_path).state == "silent"


def test_a_long_journal_comes_in_parts(tmp_path: Path) -> None:
    line = json.dumps({"event": "step", "step": 1, "words": "x" * 1000}).encode() + b"\n"
    (tmp_path / "metrics.jsonl").write_bytes(line * 1000)
    place, events = 0, 0
    for _ in range(10):
        part = read_journal("run", tmp_path, place)
        place, events = part.next, events + len(part.events)
        if not part.more:
            break
    assert events == 1000


def test_a_journal_elsewhere_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("{}", encoding="utf-8")
    (tmp_path / "metrics.jsonl").symlink_to(tmp_path / "secret")
    assert not has_journal(tmp_path)


def test_reports_are_found_beside_the_runs(server: Server, reports: Path) -> None:
    [line] = server.get("/api/lab").json()["reports"]
    whole = json.loads((reports / "report.json").read_bytes())
    assert line["sentence"] == whole["sentence"]
    assert (line["claim"], line["size"], line["state"]) == ("scale", "tiny", "undecided")
    assert server.get("/api/lab/scale").json()["report"] == whole
    for claim in ("bottleneck", "..", "..%2f..%2fconfig.toml", "%00"):
        status, kind, _ = refusal(server.get(f"/api/lab/{claim}"))
        assert (status, kind) == (404, "not-found"), claim


def test_of_a_claim_the_largest_size_is_shown_and_what_is_no_report_is_not(tmp_path: Path) -> None:
    content = {"claim": "a", "sentence": "A is.", "verdict": {"state": "confirmed", "reason": "x"}}
    for size in ("tiny", "small"):
        folder = tmp_path / "lab" / size / "a"
        folder.mkdir(parents=True)
        (folder / "report.json").write_text(json.dumps({**content, "size": size}), encoding="utf-8")
    for name, text in {"b": "{", "c": "[]", "d": '{"claim": "d"}', "e": '{"verdict": 1}'}.items():
        (tmp_path / "lab" / "full" / name).mkdir(parents=True)
        (tmp_path / "lab" / "full" / name / "report.json").write_text(text, encoding="utf-8")
    [(line, _)] = find_reports([tmp_path / "run"])
    assert (line.claim, line.size) == ("a", "small")


def test_made_up_beginnings_are_of_the_size_that_a_run_knows(
    server: Server, runs: dict[str, Path]
) -> None:
    run = seqloom.load_forecaster(runs["forecaster"])
    observed, context = made_up_window(run)
    assert observed.shape == (6, 2)
    assert context.shape == (3, 1)
    assert np.abs(observed - run.task.scale.mean).max() <= 2 * run.task.scale.deviation.max()
    found = server.get("/api/forecast/example").json()
    assert found["observed"] == observed.tolist()
    assert server.ask(
        "/api/forecast", windows=[{key: found[key] for key in ("observed", "context")}]
    )
    assert refusal(server.get("/api/forecast/example?run=reverser"))[0] == 422


def test_scores_are_aligned_with_the_text_as_it_was_given(server: Server) -> None:
    """Not with the tag that was put before it."""
    found = server.ask(
        "/api/score",
        run="polyglot",
        sources=["big"],
        targets=["grand"],
        target="fr",
        attention=True,
    )
    assert found["scores"][0]["alignment"] in ([[0, 0]], [])


def test_what_a_browser_has_it_is_not_sent_again(server: Server) -> None:
    path = "/static/main.js"
    first = server.get(path)
    again = server.client.get(server.url + path, headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]
    other = server.client.get(server.url + path, headers={"If-None-Match": '"of another day"'})
    assert other.content == first.content
