"""Routes that only the web page uses: search trees, training logs, lab reports, examples."""

import json
import time
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

import seqloom
from seqloom.analysis.attention_example import LectureScore, explain_lecture
from seqloom.analysis.search_inspection import SearchInspection
from seqloom.lab.registry import claim_names
from seqloom.serving.api.forecasts import example_window
from seqloom.serving.api.lab_reports import find_reports
from seqloom.serving.api.training_logs import has_event_log, read_events, training_status
from seqloom.viz.search_tree import layout_search_tree
from support.server_process import ServerProcess, error_of


@pytest.mark.slow
def test_search_tree_has_the_layout_of_the_figures(
    server: ServerProcess, runs: dict[str, Path]
) -> None:
    response = server.post_json("/api/search/tree", run="reverser", text="abcd", beam=3, n_best=3)
    run = seqloom.load(runs["reverser"])
    decoding = run.config.decoding.model_copy(update={"width": 3})
    searched = SearchInspection.of(run, "abcd", decoding).search(3)
    layout = layout_search_tree(searched)
    assert [[node["row"] for node in step] for step in response["tree"]["spots"]] == [
        [node.row for node in step] for step in layout.nodes
    ]
    assert [output["text"] for output in response["outputs"]] == [
        output.text for output in searched.outputs
    ]
    assert (response["kind"], response["width"]) == ("beam", 3)
    assert server.post_error("/api/search/tree", run="reverser", text=" ")[:2] == (422, "unusable")
    status, _, message = server.post_error("/api/search/tree", run="reverser", text="a", beam=99)
    assert status == 422
    assert "beam" in message
    assert "99" in message
    assert "8" in message


@pytest.mark.slow
@pytest.mark.parametrize("score", get_args(LectureScore))
def test_worked_example_of_every_score_function(server: ServerProcess, score: str) -> None:
    path = f"/api/explain/lecture?score={score}&choice=argmax"
    response = server.get(path).json()["explanation"]
    assert response == explain_lecture(score, "argmax").to_json()  # type: ignore[arg-type]
    assert server.get("/api/explain/lecture?score=best").status_code == 422


@pytest.mark.slow
def test_training_states_and_event_logs(server: ServerProcess, runs: dict[str, Path]) -> None:
    response = {each["run"]: each for each in server.get("/api/trainings").json()["trainings"]}
    assert response["reverser"]["state"] == "ended"
    assert (response["reverser"]["step"], response["reverser"]["steps"]) == (40, 40)
    assert len(response) == 7
    log = server.get("/api/trainings/reverser").json()
    lines = (runs["reverser"] / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    assert log["events"] == [json.loads(line) for line in lines]
    assert (log["begin"], log["more"]) == (0, False)
    rest = server.get(f"/api/trainings/reverser?after={log['next']}").json()
    assert rest["events"] == []
    status, kind, _ = error_of(server.get("/api/trainings/unknown"))
    assert (status, kind) == (404, "no-such-run")


def test_event_log_is_read_while_it_is_written(tmp_path: Path) -> None:
    assert not has_event_log(tmp_path)
    event_log = tmp_path / "metrics.jsonl"
    event = {"event": "step", "step": 1, "steps": 9, "time": time.time()}
    line = json.dumps(event).encode() + b"\n"
    event_log.write_bytes(line + line[:20])
    first = read_events("run", tmp_path, 0)
    assert (first.events, first.next) == ([event], len(line)), "an incomplete line is not returned"
    assert training_status("run", tmp_path).state == "running"
    with event_log.open("ab") as file:
        file.write(line[20:])
    second = read_events("run", tmp_path, first.next)
    assert (second.begin, second.events) == (first.next, [event])
    event_log.write_bytes(line)
    restarted = read_events("run", tmp_path, second.next)
    assert (restarted.begin, restarted.events) == (0, [event]), (
        "a truncated log is read from its start"
    )
    event_log.write_bytes(json.dumps(event | {"time": 1.0}).encode() + b"\n")
    assert training_status("run", tmp_path).state == "silent"


def test_long_event_log_is_returned_in_several_responses(tmp_path: Path) -> None:
    line = json.dumps({"event": "step", "step": 1, "padding": "x" * 1000}).encode() + b"\n"
    (tmp_path / "metrics.jsonl").write_bytes(line * 1000)
    position, count = 0, 0
    for _ in range(10):
        chunk = read_events("run", tmp_path, position)
        position, count = chunk.next, count + len(chunk.events)
        if not chunk.more:
            break
    assert count == 1000


def test_event_log_that_is_a_symbolic_link_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("{}", encoding="utf-8")
    (tmp_path / "metrics.jsonl").symlink_to(tmp_path / "secret")
    assert not has_event_log(tmp_path)


@pytest.mark.slow
def test_lab_reports_beside_the_runs_are_listed(server: ServerProcess, reports: Path) -> None:
    summaries = server.get("/api/lab").json()["reports"]
    [summary] = [each for each in summaries if not each["published"]]
    report = json.loads((reports / "report.json").read_bytes())
    assert summary["sentence"] == report["sentence"]
    assert (summary["claim"], summary["size"], summary["state"]) == ("scale", "tiny", "undecided")
    assert server.get("/api/lab/scale").json()["report"] == report
    for claim in ("unknown", "..", "..%2f..%2fconfig.toml", "%00"):
        status, kind, _ = error_of(server.get(f"/api/lab/{claim}"))
        assert (status, kind) == (404, "not-found"), claim


def test_largest_report_of_a_claim_is_listed_and_invalid_ones_are_skipped(tmp_path: Path) -> None:
    content = {"claim": "a", "sentence": "A is.", "verdict": {"state": "confirmed", "reason": "x"}}
    for size in ("tiny", "small"):
        folder = tmp_path / "lab" / size / "a"
        folder.mkdir(parents=True)
        (folder / "report.json").write_text(json.dumps({**content, "size": size}), encoding="utf-8")
    for name, text in {"b": "{", "c": "[]", "d": '{"claim": "d"}', "e": '{"verdict": 1}'}.items():
        (tmp_path / "lab" / "full" / name).mkdir(parents=True)
        (tmp_path / "lab" / "full" / name / "report.json").write_text(text, encoding="utf-8")
    reports = find_reports([tmp_path / "run"])
    found = [report.summary for report in reports.values() if not report.summary.published]
    assert [(summary.claim, summary.size) for summary in found] == [("a", "small")]


def test_published_reports_are_available_without_a_lab_folder(tmp_path: Path) -> None:
    reports = find_reports([])
    assert list(reports) == sorted(claim_names())
    assert all(report.summary.published for report in reports.values())
    folder = tmp_path / "lab" / "tiny" / "scale"
    folder.mkdir(parents=True)
    own = {**reports["scale"].content, "size": "tiny"}
    (folder / "report.json").write_text(json.dumps(own), encoding="utf-8")
    summary = find_reports([tmp_path / "run"])["scale"].summary
    assert (summary.size, summary.published) == ("tiny", False)


@pytest.mark.slow
def test_forecast_example_has_the_shape_and_scale_of_the_run(
    server: ServerProcess, runs: dict[str, Path]
) -> None:
    run = seqloom.load_forecaster(runs["forecaster"])
    observed, context = example_window(run)
    assert observed.shape == (6, 2)
    assert context.shape == (3, 1)
    assert np.abs(observed - run.task.scale.mean).max() <= 2 * run.task.scale.deviation.max()
    response = server.get("/api/forecast/example").json()
    assert response["observed"] == observed.tolist()
    assert server.post_json(
        "/api/forecast", windows=[{key: response[key] for key in ("observed", "context")}]
    )
    assert error_of(server.get("/api/forecast/example?run=reverser"))[0] == 422


@pytest.mark.slow
def test_alignment_refers_to_the_text_without_its_language_tag(server: ServerProcess) -> None:
    response = server.post_json(
        "/api/score",
        run="polyglot",
        sources=["big"],
        targets=["grand"],
        target="fr",
        attention=True,
    )
    assert response["scores"][0]["alignment"] in ([[0, 0]], [])


@pytest.mark.slow
def test_unchanged_static_files_are_not_sent_again(server: ServerProcess) -> None:
    path = "/static/main.js"
    first = server.get(path)
    again = server.client.get(server.url + path, headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]
    other = server.client.get(server.url + path, headers={"If-None-Match": '"outdated"'})
    assert other.content == first.content
