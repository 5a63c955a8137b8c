"""Prometheus metrics and the Grafana dashboard that shows them."""

import asyncio
import json
import re
from importlib.metadata import version
from pathlib import Path

from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

import seqloom
from seqloom.serving.server.admission import AdmissionControl
from seqloom.serving.server.batcher import Batcher, BatchReport, FunctionCall
from seqloom.serving.server.limits import Limits
from seqloom.serving.server.monitoring import Monitoring
from support.async_runner import run_async

DASHBOARD = Path(__file__).parents[2] / "deploy" / "grafana.json"


def monitoring_of(admission: AdmissionControl) -> Monitoring:
    monitoring = Monitoring()
    monitoring.watch_admission(admission)
    return monitoring


def samples(monitoring: Monitoring) -> dict[str, float]:
    """The values of all metrics, by name and labels: name{label=value,…}"""
    text = generate_latest(monitoring.registry).decode()
    return {
        sample.name
        + "".join(f",{name}={value}" for name, value in sorted(sample.labels.items())): (
            sample.value
        )
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if not sample.name.endswith("_created")
    }


def test_a_batch_is_recorded() -> None:
    monitoring = Monitoring()
    report = BatchReport(waited=(0.5, 1.5), seconds=2.0, source_tokens=7, output_tokens=9)
    monitoring.batch_observer("demo")(report)
    values = samples(monitoring)
    assert values["seqloom_batch_size_sum,run=demo"] == 2
    assert values["seqloom_batch_duration_seconds_sum,run=demo"] == 2
    assert values["seqloom_job_queue_duration_seconds_sum,run=demo"] == 2
    assert values["seqloom_job_queue_duration_seconds_count,run=demo"] == 2
    assert values["seqloom_source_tokens_total,run=demo"] == 7
    assert values["seqloom_output_tokens_total,run=demo"] == 9


def test_a_batcher_reports_its_batches() -> None:
    reports: list[BatchReport] = []
    batcher = Batcher("demo", reports.append)
    run_async(batcher.submit(FunctionCall(lambda: None), [None], [5]))
    batcher.close()
    [report] = reports
    assert (report.source_tokens, report.output_tokens) == (5, 0)
    assert len(report.waited) == 1
    assert 0 <= report.waited[0] < 10
    assert report.seconds >= 0


def test_requests_are_recorded_by_route() -> None:
    monitoring = Monitoring()
    monitoring.observe_request({}, 404, 0.25)
    values = samples(monitoring)
    assert values["seqloom_requests_total,route=other,status=404"] == 1
    assert values["seqloom_request_duration_seconds_sum,route=other"] == 0.25


def test_the_waiting_time_of_requests_is_recorded() -> None:
    admission = AdmissionControl(Limits(in_flight=1))
    monitoring = monitoring_of(admission)

    async def admit_two() -> None:
        await admission.acquire()
        second = asyncio.ensure_future(admission.acquire())
        await asyncio.sleep(0.05)
        admission.release()
        await second
        admission.release()

    run_async(admit_two())
    values = samples(monitoring)
    assert values["seqloom_request_queue_duration_seconds_count"] == 2
    assert values["seqloom_request_queue_duration_seconds_sum"] >= 0.04
    assert values["seqloom_requests_in_flight"] == 0


def test_versions_and_the_process_are_exported() -> None:
    values = samples(Monitoring())
    assert values[f"seqloom_build_info,torch={version('torch')},version={seqloom.__version__}"] == 1
    assert values["process_resident_memory_bytes"] > 0
    assert values["process_cpu_seconds_total"] > 0


def test_names_follow_the_conventions() -> None:
    """Base units, and names without abbreviations of units."""
    for family in monitoring_of(AdmissionControl(Limits())).registry.collect():
        assert re.fullmatch("[a-z][a-z0-9_]*", family.name)
        assert family.documentation
        if "duration" in family.name:
            assert family.name.endswith("_duration_seconds")


def test_the_dashboard_uses_existing_metrics_and_labels() -> None:
    monitoring = monitoring_of(AdmissionControl(Limits()))
    monitoring.observe_request({}, 200, 0.1)
    monitoring.batch_observer("demo")(BatchReport((0.1,), 0.1, 1, 1))
    exported = {name.partition(",")[0] for name in samples(monitoring)}
    labels = {
        label for name in samples(monitoring) for label in re.findall(r",([a-z]+)=", name)
    } | {"job", "instance"}  # Prometheus adds these
    dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    expressions += [
        variable["query"]
        for variable in dashboard["templating"]["list"]
        if variable["type"] == "query"
    ]
    used = {
        name for text in expressions for name in re.findall(r"\b(?:seqloom|process)_[a-z_]+", text)
    }
    assert len(used) > 10
    assert used <= exported
    for text in expressions:
        for group in re.findall(r"by \(([^)]*)\)", text):
            assert set(group.split(", ")) <= labels
    legends = " ".join(t["legendFormat"] for panel in dashboard["panels"] for t in panel["targets"])
    assert set(re.findall(r"{{(\w+)}}", legends)) <= labels


def test_the_dashboard_shows_every_metric_of_seqloom() -> None:
    text = DASHBOARD.read_text(encoding="utf-8")
    for family in monitoring_of(AdmissionControl(Limits())).registry.collect():
        if family.name.startswith("seqloom_"):
            assert family.name in text
