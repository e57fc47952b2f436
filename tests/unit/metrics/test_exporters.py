"""A metric could get another name than Apache Hudi gives it, lose a value, or add up what should be replaced.

Events become metrics, and both exporters are read by their own libraries.
"""

import importlib
import socket
import sys
import urllib.request
from collections.abc import Iterator

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from prometheus_client import CollectorRegistry

from pyhudi import HudiTable
from pyhudi.api.reporting import MetricsSettings
from pyhudi.errors import Invalid, Unsupported
from pyhudi.metrics import (
    Backlog,
    LockAsked,
    LockFreed,
    Metric,
    Pending,
    Replanned,
    ServiceDone,
    ServiceFailed,
    VerdictGiven,
    WriteDone,
    WriteFailed,
    metrics_of,
    prometheus,
)
from pyhudi.metrics import opentelemetry as otel
from pyhudi.metrics.listeners import is_listening, tell
from pyhudi.options.entries import Kind
from pyhudi.options.verdicts import find_entry
from pyhudi.storage.memory import MemoryStorage
from tests.support.model import Row, arrow

URI = "memory://t"
WRITE = WriteDone(
    URI, "t", "upsert", "commit", "20260101000000000", "20260101000001000", inserted=5, updated=3, deleted=2,
    replaced=0, files=4, size_bytes=1_000, duration_ms=70, phases_ms={"write": 40}, retries=1,
)  # fmt: skip
CLEAN = ServiceDone(URI, "clean", 9, "20260101000002000", {"files_deleted": 6, "partitions_deleted": 1})


def test_a_write_has_the_names_of_apache_hudi() -> None:
    assert {metric.name: metric.value for metric in metrics_of(WRITE)} == {
        "commit.duration": 70,
        "commit.totalRecordsWritten": 8,
        "commit.totalInsertRecordsWritten": 5,
        "commit.totalUpdateRecordsWritten": 3,
        "commit.totalRecordsDeleted": 2,
        "commit.totalBytesWritten": 1_000,
        "commit.files": 4,
        "commit.replacedFileGroups": 0,
        "commit.phase.write": 40,
        "commit.success.counter": 1,
    }


def test_other_events_have_the_names_of_apache_hudi() -> None:
    pending = {"compaction": Pending(2, "20260101000000123", 5_000)}
    events = {
        LockAsked(URI, "upsert", 12, is_taken=True): [
            Metric("lock.request.latency", 12),
            Metric("lock.acquire.attempts", 1, is_counter=True),
            Metric("lock.acquire.success", 1, is_counter=True),
        ],
        LockAsked(URI, "upsert", 12, is_taken=False): [
            Metric("lock.request.latency", 12), Metric("lock.acquire.failure", 1, is_counter=True),
        ],
        LockFreed(URI, "upsert", 30): [Metric("lock.acquire.duration", 30)],
        VerdictGiven(URI, "commit", "1", "late"): [Metric("conflict_resolution.failure.counter", 1, is_counter=True)],
        VerdictGiven(URI, "commit", "1"): [Metric("conflict_resolution.success.counter", 1, is_counter=True)],
        Replanned(URI, "t", "upsert", "why"): [Metric("write.retry.counter", 1, is_counter=True)],
        WriteFailed(URI, "t", "upsert", "Invalid", 4): [Metric("write.failure.counter", 1, is_counter=True)],
        ServiceFailed(URI, "clean", "Invalid", 4): [Metric("clean.failure.counter", 1, is_counter=True)],
    }  # fmt: skip
    for event, expected in events.items():
        assert list(metrics_of(event)) == expected

    assert {m.name: m.value for m in metrics_of(CLEAN)} == {
        "clean.duration": 9, "clean.numFilesDeleted": 6, "clean.partitions_deleted": 1,
    }  # fmt: skip
    assert {m.name: m.value for m in metrics_of(ServiceDone(URI, "archive", 9, None, {"archived": 3}))} == {
        "archive.duration": 9, "archive.numInstantsArchived": 3,
    }  # fmt: skip
    backlog = {m.name: m.value for m in metrics_of(Backlog(URI, pending))}
    assert backlog["compaction.pendingCompactionInstantCount"] == 2
    assert backlog["compaction.earliestInflightCompactionInstant"] == 20260101000000123
    assert backlog["compaction.oldestPendingAge"] == 5_000
    assert backlog["clustering.pendingClusteringInstantCount"] == 0
    assert "clustering.earliestInflightClusteringInstant" not in backlog


def test_prometheus_replaces_gauges_and_adds_counters() -> None:
    registry = CollectorRegistry()
    end = prometheus.export(registry)
    try:
        for _ in range(3):
            tell(WRITE)
        tell(CLEAN)
        tell(LockAsked(URI, "upsert", 12, is_taken=True))
    finally:
        end()
    tell(WRITE)

    of_table = {"table": URI}
    assert registry.get_sample_value("hoodie_commit_totalRecordsWritten", of_table) == 8
    assert registry.get_sample_value("hoodie_commit_success_total", of_table) == 3
    assert registry.get_sample_value("hoodie_commit_phase_write", of_table) == 40
    assert registry.get_sample_value("hoodie_clean_numFilesDeleted", of_table) == 6
    assert registry.get_sample_value("hoodie_lock_acquire_success_total", of_table) == 1


def test_prometheus_goes_on_with_what_a_registry_has(caplog: pytest.LogCaptureFixture) -> None:
    """A second export to a registry failed at every event, and its metrics stood still."""
    registry, of_table = CollectorRegistry(), {"table": URI}

    def landed() -> float | None:
        return registry.get_sample_value("hoodie_commit_success_total", of_table)

    first, second = prometheus.export(registry), prometheus.export(registry)
    try:
        tell(WRITE)
        assert landed() == 1, "an event counts once"
        first()
        first()
        tell(WRITE)
        assert landed() == 2, "the other export goes on"
    finally:
        first()
        second()
    tell(WRITE)
    assert landed() == 2

    ends = [
        prometheus.export(registry),
        prometheus.export(registry, prefix="a-b"),
        prometheus.export(registry, prefix="a b"),
    ]
    second()
    tell(WRITE)
    for end in ends:
        end()
    assert landed() == 3
    assert registry.get_sample_value("a_b_commit_success_total", of_table) == 1
    assert not is_listening()
    assert not caplog.records


def test_prometheus_refuses_what_no_metrics_can_be_kept_in() -> None:
    with pytest.raises(Invalid, match=r"prefix='1x': expected a text that begins with no digit"):
        prometheus.export(CollectorRegistry(), prefix="1x")
    with pytest.raises(Invalid, match=r"registry=5: expected a prometheus_client\.CollectorRegistry"):
        prometheus.export(5)  # type: ignore[arg-type]
    for port in (70_000, -1, 0, True, "x", 9090.0):
        with pytest.raises(Invalid, match=r"port=.*: expected a whole number from 1 to 65,535"):
            prometheus.serve(port)  # type: ignore[arg-type]
    assert not is_listening()


def test_prometheus_has_other_prefixes_and_none() -> None:
    for prefix, name in (("trips", "trips_commit_duration"), ("", "commit_duration"), ("a-b", "a_b_commit_duration")):
        registry = CollectorRegistry()
        prometheus.PrometheusExporter(registry, prefix=prefix)(WRITE)
        assert registry.get_sample_value(name, {"table": URI}) == 70


def test_opentelemetry_replaces_gauges_and_adds_counters() -> None:
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    end = otel.export(provider)
    try:
        for _ in range(3):
            tell(WRITE)
    finally:
        end()
    tell(WRITE)

    data = reader.get_metrics_data()
    assert data is not None
    found = {
        metric.name.lower(): [(dict(point.attributes or {}), point.value) for point in metric.data.data_points]  # type: ignore[union-attr]
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }
    assert found["hoodie.commit.totalrecordswritten"] == [({"table": URI}, 8)]
    assert found["hoodie.commit.success.counter"] == [({"table": URI}, 3)]
    provider.shutdown()


def test_two_exports_to_opentelemetry_count_an_event_once() -> None:
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    ends = [otel.export(provider), otel.export(provider)]
    tell(WRITE)
    for end in ends:
        end()
    end = otel.export(provider)
    tell(WRITE)
    end()

    data = reader.get_metrics_data()
    assert data is not None
    (scope,) = (scope for resource in data.resource_metrics for scope in resource.scope_metrics)
    (landed,) = (metric for metric in scope.metrics if metric.name.endswith("success.counter"))
    with pytest.raises(Invalid, match=r"provider=5: expected a MeterProvider"):
        otel.export(5)  # type: ignore[arg-type]
    assert [point.value for point in landed.data.data_points] == [2]  # type: ignore[union-attr]
    provider.shutdown()


@pytest.fixture
def port() -> Iterator[int]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number = free.getsockname()[1]
    yield number
    prometheus.stop(number)


def test_an_option_serves_the_metrics_of_a_write(port: int) -> None:
    on = {
        "hoodie.metrics.on": "true",
        "hoodie.metrics.reporter.type": "PROMETHEUS",
        "hoodie.metrics.prometheus.port": port,
        "hoodie.metrics.reporter.metricsname.prefix": "trips",
    }
    table = HudiTable.create("", name="t", record_key="id", storage=MemoryStorage())
    for v in range(2):
        table.upsert(arrow([Row("a", "oslo", v, v)]), options=on)

    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    assert f'trips_commit_success_total{{table="{table.path}"}} 2.0' in text
    assert f'trips_commit_totalUpdateRecordsWritten{{table="{table.path}"}} 1.0' in text


@pytest.mark.parametrize(
    "library,module,extra",
    [("prometheus_client", "prometheus", "prometheus"), ("opentelemetry.metrics", "opentelemetry", "opentelemetry")],
)
def test_an_exporter_whose_library_is_missing_names_the_extra(
    library: str, module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.delitem(sys.modules, f"pyhudi.metrics.{module}")
    with pytest.raises(Unsupported) as caught:
        importlib.import_module(f"pyhudi.metrics.{module}")
    assert f"pip install 'pyhudi[{extra}]'" in str(caught.value)


EACH = [
    ("is_on", "hoodie.metrics.on", "true", True),
    ("port", "hoodie.metrics.prometheus.port", "1234", 1234),
    ("reporter", "hoodie.metrics.reporter.type", "inmemory", "INMEMORY"),
    ("prefix", "hoodie.metrics.reporter.metricsname.prefix", "trips", "trips"),
]


@pytest.mark.parametrize("name,option,text,value", EACH)
def test_an_option_arrives_in_its_field(name: str, option: str, text: str, value: object) -> None:
    reporter = {"hoodie.metrics.reporter.type": "INMEMORY"} if name == "is_on" else {}
    assert getattr(MetricsSettings.from_options({**reporter, option: text}), name) == value
    assert MetricsSettings.from_options({option: ""}) == MetricsSettings()
    assert find_entry(option).kind is Kind.SETTING


def test_a_reporter_that_is_not_there_is_refused_where_metrics_are_on() -> None:
    assert MetricsSettings.from_options({"hoodie.metrics.reporter.type": "DATADOG"}).is_on is False
    table = HudiTable.create("", name="t", record_key="id", storage=MemoryStorage())
    for options in ({}, {"hoodie.metrics.reporter.type": "DATADOG"}):
        with pytest.raises(Unsupported, match=r"hoodie\.metrics\.reporter\.type"):
            table.upsert(arrow([Row("a", "oslo", 1, 1)]), options={"hoodie.metrics.on": "true", **options})
    with pytest.raises(Invalid, match=r"hoodie\.metrics\.prometheus\.port.*at most 65,535"):
        table.upsert(arrow([Row("a", "oslo", 1, 1)]), options={"hoodie.metrics.prometheus.port": "65536"})
    assert table.timeline() == ()


def test_a_table_cannot_open_a_port() -> None:
    on = {"hoodie.metrics.on": "true", "hoodie.metrics.reporter.type": "DATADOG"}
    table = HudiTable.create("", name="t", record_key="id", storage=MemoryStorage(), properties=on)
    assert table.upsert(arrow([Row("a", "oslo", 1, 1)])).requested
