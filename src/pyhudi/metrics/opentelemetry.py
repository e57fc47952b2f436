"""Metrics for OpenTelemetry, through `opentelemetry-api` (the extra `opentelemetry`)."""

import threading
from collections.abc import Callable
from typing import Any

from pyhudi.errors import Invalid, Unsupported
from pyhudi.metrics.events import Event
from pyhudi.metrics.listeners import subscribe_once
from pyhudi.metrics.names import metrics_of

try:
    from opentelemetry.metrics import Meter, MeterProvider, get_meter, get_meter_provider
except ImportError as missing:
    raise Unsupported("metrics for OpenTelemetry need its API: pip install 'pyhudi[opentelemetry]'") from missing

PREFIX = "hoodie"
_ATTRIBUTE = "table"


class OpenTelemetryExporter:
    """Keeps a gauge or a counter of each metric on a meter, with the table's URI as the attribute `table`.

    Names are those of Apache Hudi after a prefix, such as `hoodie.commit.duration`. OpenTelemetry takes upper and lower
    case of names for the same, and its SDK shows them in lower case.
    """

    def __init__(self, meter: Meter, *, prefix: str = PREFIX) -> None:
        self._meter, self._prefix = meter, prefix
        self._known: dict[str, Any] = {}
        self._making = threading.Lock()

    def __call__(self, event: Event) -> None:
        for metric in metrics_of(event):
            instrument = self._instrument(metric.name, is_counter=metric.is_counter)
            attributes = {_ATTRIBUTE: event.uri}
            if metric.is_counter:
                instrument.add(metric.value, attributes)
            else:
                instrument.set(metric.value, attributes)

    def _instrument(self, name: str, *, is_counter: bool) -> Any:
        with self._making:
            if name not in self._known:
                make = self._meter.create_counter if is_counter else self._meter.create_gauge
                self._known[name] = make(f"{self._prefix}.{name}" if self._prefix else name)
            return self._known[name]


def export(provider: MeterProvider | None = None, *, prefix: str = PREFIX) -> Callable[[], None]:
    """Hand the metrics of this process to OpenTelemetry from now on. Returns the function that ends this.

    `provider`: whose meter keeps them; None: the global one, as the program has set it up. Two exports to one provider
    at a time are one. Raises: Invalid for what is no provider.
    """
    if provider is not None and not isinstance(provider, MeterProvider):
        raise Invalid(f"provider={provider!r}: expected a MeterProvider of OpenTelemetry, or None")
    exporter = OpenTelemetryExporter(get_meter("pyhudi", meter_provider=provider), prefix=prefix)
    return subscribe_once((provider or get_meter_provider(), prefix), exporter)
