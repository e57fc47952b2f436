"""Telling listeners of a write, and starting what its options ask for: `hoodie.metrics.*`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Concatenate, ParamSpec, Self

from pyhudi.api.auto_upgrade import upgrade_when_asked
from pyhudi.api.handle import TableHandle
from pyhudi.errors import Unsupported
from pyhudi.metrics.events import WriteDone, WriteFailed
from pyhudi.metrics.listeners import is_listening, tell
from pyhudi.metrics.measuring import WriteMeasures, measured_write
from pyhudi.options.resolve import refuse_other_operation
from pyhudi.options.values import OptionValues, count, flag
from pyhudi.write.operation import WriteResult

P = ParamSpec("P")

REPORTER = "hoodie.metrics.reporter.type"
PREFIX = "hoodie.metrics.reporter.metricsname.prefix"
PORT_MAX = 65_535
_GRAPHITE = "GRAPHITE"


@dataclass(frozen=True, slots=True)
class MetricsSettings:
    """Where metrics go that options ask for. The defaults are Apache Hudi's, but for the prefix.

    `is_on`: whether they go anywhere but to those who subscribed. `reporter`: PROMETHEUS serves them on `port` of this
    machine; INMEMORY leaves them to those who subscribed. `prefix`: of the names; Apache Hudi's default is the table's
    name, which here is a label of each metric.
    """

    is_on: bool = flag("hoodie.metrics.on", False)
    port: int = count("hoodie.metrics.prometheus.port", 9090)
    reporter: str = _GRAPHITE
    prefix: str = "hoodie"

    @classmethod
    def from_options(cls, callers: Mapping[str, str]) -> Self:
        """The settings that a caller's options ask for. The table's properties have no say: they could open a port.

        Raises: Invalid for a bad value; Unsupported for a reporter that is not there.
        """
        o, d = OptionValues(callers), cls()
        asked = cls(
            **o.fields(cls) | {"port": o.count("hoodie.metrics.prometheus.port", d.port, most=PORT_MAX)},
            reporter=callers.get(REPORTER, "").strip().upper() or d.reporter,
            prefix=callers.get(PREFIX, "").strip() or d.prefix,
        )
        if asked.is_on and asked.reporter not in ("PROMETHEUS", "INMEMORY"):
            raise Unsupported(
                f"option '{REPORTER}'='{asked.reporter}': expected PROMETHEUS, or INMEMORY for the metrics that "
                "pyhudi.metrics.subscribe gives; OpenTelemetry is reached by pyhudi.metrics.opentelemetry.export()"
            )
        return asked

    def start(self) -> None:
        """Start the reporter that is asked for, once in a process."""
        if self.is_on and self.reporter == "PROMETHEUS":
            from pyhudi.metrics.prometheus import serve  # an extra, which is loaded on use

            serve(self.port, prefix=self.prefix)


def told_write(
    write: Callable[Concatenate[TableHandle, P], WriteResult], handle: TableHandle, operation: str,
    options: Mapping[str, object] | None,
) -> Callable[P, WriteResult]:  # fmt: skip
    """`write` on a table, of which listeners are told. Raises: Invalid for options of another operation."""
    refuse_other_operation(options, operation)

    @wraps(write)
    def run(*arguments: P.args, **named: P.kwargs) -> WriteResult:
        MetricsSettings.from_options(handle.callers_options(options)).start()
        upgrade_when_asked(handle, options)
        if not is_listening():
            return write(handle, *arguments, **named)

        uri = handle.access.location.uri
        with measured_write() as measures:
            try:
                result = write(handle, *arguments, **named)
            except Exception as error:
                tell(WriteFailed(uri, handle.name, operation, type(error).__name__, measures.duration_ms))
                raise
        if result.requested is not None and result.completed is not None:
            tell(_done(uri, handle.name, result, measures))
        return result

    return run


def _done(uri: str, table: str, result: WriteResult, measures: WriteMeasures) -> WriteDone:
    assert result.requested is not None
    assert result.completed is not None
    return WriteDone(
        uri, table, result.operation, measures.action, result.requested, result.completed,
        inserted=result.inserted, updated=result.updated, deleted=result.deleted, replaced=result.replaced,
        files=result.files, size_bytes=result.size_bytes, duration_ms=measures.duration_ms,
        phases_ms=measures.phases_ms, retries=measures.retries,
    )  # fmt: skip
