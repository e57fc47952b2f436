"""Metrics for Prometheus, through `prometheus_client` (the extra `prometheus`)."""

import re
import threading
from collections.abc import Callable
from typing import Any, Final
from weakref import WeakKeyDictionary

from pyhudi.errors import Invalid, Unavailable, Unsupported
from pyhudi.metrics.events import Event
from pyhudi.metrics.listeners import subscribe, subscribe_once
from pyhudi.metrics.names import metrics_of

try:
    from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, start_http_server
except ImportError as missing:
    raise Unsupported("metrics for Prometheus need prometheus_client: pip install 'pyhudi[prometheus]'") from missing

PREFIX = "hoodie"
_LABEL = "table"
_PORTS: Final = range(1, 65_536)

_known: "WeakKeyDictionary[CollectorRegistry, dict[str, Any]]" = WeakKeyDictionary()
"""The metrics of each registry by their names there. They stay when an export ends: a counter never goes back."""

_serving: dict[int, Callable[[], None]] = {}
_starting = threading.Lock()
_making = threading.Lock()
_NO_NAME: Final = re.compile(r"[^A-Za-z0-9_:]")


class PrometheusExporter:
    """Keeps a gauge or a counter of each metric in a registry, with the table's URI as the label `table`.

    Apache Hudi's `commit.duration` is `hoodie_commit_duration` here. A counter's name ends in `_total`.
    Raises: Invalid for a prefix with which no name can begin.
    """

    def __init__(self, registry: CollectorRegistry = REGISTRY, *, prefix: str = PREFIX) -> None:
        if not isinstance(registry, CollectorRegistry):
            raise Invalid(f"registry={registry!r}: expected a prometheus_client.CollectorRegistry")
        if not isinstance(prefix, str) or prefix[:1].isdigit():
            raise Invalid(f"prefix={prefix!r}: expected a text that begins with no digit, as names for Prometheus")
        self.registry, self.prefix = registry, _NO_NAME.sub("_", prefix)

    def __call__(self, event: Event) -> None:
        for metric in metrics_of(event):
            of_table = self._metric(metric.name, is_counter=metric.is_counter).labels(event.uri)
            if metric.is_counter:
                of_table.inc(metric.value)
            else:
                of_table.set(metric.value)

    def _metric(self, name: str, *, is_counter: bool) -> Any:
        whole = f"{self.prefix}.{name}" if self.prefix else name
        shown = _NO_NAME.sub("_", whole.removesuffix(".counter"))
        with _making:
            known = _known.setdefault(self.registry, {})
            if shown not in known:
                kind = Counter if is_counter else Gauge
                known[shown] = kind(shown, f"pyhudi: {name}", [_LABEL], registry=self.registry)
            return known[shown]


def export(registry: CollectorRegistry = REGISTRY, *, prefix: str = PREFIX) -> Callable[[], None]:
    """Put the metrics of this process into a registry from now on. Returns the function that ends this.

    The metrics stay in the registry as they are then. Another export to it goes on with them; two at a time are one.
    Raises: Invalid for what is no registry, and for a prefix with which no name can begin.
    """
    exporter = PrometheusExporter(registry, prefix=prefix)
    return subscribe_once((exporter.registry, exporter.prefix), exporter)


def serve(port: int, *, prefix: str = PREFIX) -> None:
    """Serve the metrics of this process by HTTP on a port of this machine, once: later calls change nothing.

    Raises: Invalid for what is no port; Unavailable where the port is taken.
    """
    if isinstance(port, bool) or not isinstance(port, int) or port not in _PORTS:
        raise Invalid(f"port={port!r}: expected a whole number from {_PORTS[0]:,} to {_PORTS[-1]:,}")
    with _starting:
        if port not in _serving:
            registry = CollectorRegistry()
            exporter = PrometheusExporter(registry, prefix=prefix)
            try:
                server, thread = start_http_server(port, registry=registry)
            except OSError as error:
                raise Unavailable(f"metrics cannot be served on port {port}: {error}") from error
            end = subscribe(exporter)
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
