"""Metrics for Prometheus, through `prometheus_client` (the extra `prometheus`)."""

import re
import threading
from collections.abc import Callable
from typing import Any

from pyhudi.errors import Unavailable, Unsupported
from pyhudi.metrics.events import Event
from pyhudi.metrics.listeners import subscribe
from pyhudi.metrics.names import metrics_of

try:
    from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, start_http_server
except ImportError as missing:
    raise Unsupported("metrics for Prometheus need prometheus_client: pip install 'pyhudi[prometheus]'") from missing

PREFIX = "hoodie"
_LABEL = "table"

_serving: dict[int, Callable[[], None]] = {}
_starting = threading.Lock()


class PrometheusExporter:
    """Keeps a gauge or a counter of each metric in a registry, with the table's URI as the label `table`.

    Apache Hudi's `commit.duration` is `hoodie_commit_duration` here. A counter's name ends in `_total`.
    """

    def __init__(self, registry: CollectorRegistry = REGISTRY, *, prefix: str = PREFIX) -> None:
        self._registry, self._prefix = registry, prefix
        self._known: dict[str, Any] = {}
        self._making = threading.Lock()

    def __call__(self, event: Event) -> None:
        for metric in metrics_of(event):
            of_table = self._metric(metric.name, is_counter=metric.is_counter).labels(event.uri)
            if metric.is_counter:
                of_table.inc(metric.value)
            else:
                of_table.set(metric.value)

    def _metric(self, name: str, *, is_counter: bool) -> Any:
        with self._making:
            if name not in self._known:
                kind = Counter if is_counter else Gauge
                whole = f"{self._prefix}.{name}" if self._prefix else name
                shown = re.sub(r"[^A-Za-z0-9_:]", "_", whole.removesuffix(".counter"))
                self._known[name] = kind(shown, f"pyhudi: {name}", [_LABEL], registry=self._registry)
            return self._known[name]


def export(registry: CollectorRegistry = REGISTRY, *, prefix: str = PREFIX) -> Callable[[], None]:
    """Put the metrics of this process into a registry from now on. Returns the function that ends this."""
    return subscribe(PrometheusExporter(registry, prefix=prefix))


def serve(port: int, *, prefix: str = PREFIX) -> None:
    """Serve the metrics of this process by HTTP on a port of this machine, once: later calls change nothing.

    Raises: Unavailable where the port is taken.
    """
    with _starting:
        if port not in _serving:
            registry = CollectorRegistry()
            try:
                server, thread = start_http_server(port, registry=registry)
            except OSError as error:
                raise Unavailable(f"metrics cannot be served on port {port}: {error}") from error
            end = export(registry, prefix=prefix)
            _serving[port] = lambda: _end(end, server, thread)


def stop(port: int) -> None:
    """End what `serve` began on a port; nothing is done where nothing is served there."""
    with _starting:
        if port in _serving:
            _serving.pop(port)()


def _end(end: Callable[[], None], server: Any, thread: threading.Thread) -> None:
    end()
    server.shutdown()
    server.server_close()
    thread.join()
