"""What the calls of this process do, told as events to whoever listens, and as metrics to Prometheus and OpenTelemetry.

Nothing is measured while nobody listens. What is told never decides anything: no other room reads it.
"""

from pyhudi.metrics.events import (
    Backlog,
    Event,
    LockAsked,
    LockFreed,
    Pending,
    Replanned,
    ServiceDone,
    ServiceFailed,
    VerdictGiven,
    WriteDone,
    WriteFailed,
)
from pyhudi.metrics.listeners import subscribe
from pyhudi.metrics.names import Metric, metrics_of

__all__ = [
    "Backlog",
    "Event",
    "LockAsked",
    "LockFreed",
    "Metric",
    "Pending",
    "Replanned",
    "ServiceDone",
    "ServiceFailed",
    "VerdictGiven",
    "WriteDone",
    "WriteFailed",
    "metrics_of",
    "subscribe",
]
