"""What a stream into a table, and a stream out of one, are asked for by options."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

from pyhudi.errors import Invalid
from pyhudi.options.read_options import AS_OF, BEGIN, END, INCREMENTAL_FORMAT, QUERY_TYPE, read_request_from_options
from pyhudi.options.values import OptionValues, count, flag

CHECKPOINT_IDENTIFIER: Final = "hoodie.datasource.write.streaming.checkpoint.identifier"
SHARED_IDENTIFIER: Final = "default_single_writer"
"""The identifier of every stream that states none, as in Apache Hudi."""

START_OFFSET: Final = "hoodie.datasource.streaming.startOffset"
_SHORT_START: Final = "startOffset"
COMMITS_MAX: Final = "maxCommitsPerTrigger"
BYTES_MAX: Final = "maxBytesPerTrigger"
EARLIEST: Final = "earliest"
LATEST: Final = "latest"


@dataclass(frozen=True, slots=True)
class StreamSinkSettings:
    """Settings of a stream into a table. The defaults are Apache Hudi's.

    `tries_max`: how often a batch is tried in all. `retry_wait_ms`: the wait before the second try; each later wait is
    twice as long. `passes_failed`: a batch that fails in every try is left out, and the stream goes on.
    `compacts`: a merge-on-read table is compacted beside the stream. `identifier`: tells the streams into one table
    apart; empty: the stream's own checkpoint does.
    """

    tries_max: int = count("hoodie.datasource.write.streaming.retry.count", 3)
    retry_wait_ms: int = count("hoodie.datasource.write.streaming.retry.interval.ms", 2_000, least=0)
    passes_failed: bool = flag("hoodie.datasource.write.streaming.ignore.failed.batch", False)
    compacts: bool = True
    identifier: str = ""

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Self:
        """Raises: Invalid for a bad value."""
        values = OptionValues(options)
        is_off = values.flag("hoodie.datasource.write.streaming.disable.compaction", False)
        is_asked = values.flag("hoodie.datasource.compaction.async.enable", True)
        return cls(
            **values.fields(cls),
            compacts=is_asked and not is_off,
            identifier=options.get(CHECKPOINT_IDENTIFIER, "").strip(),
        )


@dataclass(frozen=True, slots=True)
class StreamSourceSettings:
    """Settings of a stream out of a table.

    `start`: `earliest`, `latest`, or a time: the stream begins after it. `commits_max`, `bytes_max`: how much of the
    table's history one batch takes, in commits and in bytes that they wrote; None: all that is there. One commit is
    taken in any case. `wants_changes`: the stream is of change data. `takes_what_is_left`: as in `ReadRequest`.
    """

    start: str = EARLIEST
    commits_max: int | None = None
    bytes_max: int | None = None
    wants_changes: bool = False
    takes_what_is_left: bool = False
    metadata_enabled: bool = True

    @classmethod
    def from_options(cls, given: Mapping[str, object]) -> Self:
        """The settings that a stream reader's options ask for. Those of Spark's own are known in any case of letters.

        Raises: Invalid, Unsupported for names and values that are not known.
        """
        own = {name.lower(): name for name in (_SHORT_START, COMMITS_MAX, BYTES_MAX)}
        limits = {own[name.lower()]: str(value) for name, value in given.items() if name.lower() in own}
        options = {name: value for name, value in given.items() if name.lower() not in own}
        values = OptionValues(limits)
        start = _start(options, limits.get(_SHORT_START, ""))
        request = read_request_from_options(_as_incremental(options))
        return cls(
            start=start.lower() if start.lower() in (EARLIEST, LATEST) else start,
            commits_max=values.count(COMMITS_MAX, 0) or None,
            bytes_max=values.count(BYTES_MAX, 0) or None,
            wants_changes=request.wants_changes,
            takes_what_is_left=request.takes_what_is_left,
            metadata_enabled=request.metadata_enabled,
        )


def _start(options: Mapping[str, object], short: str) -> str:
    """Where a stream begins. Raises: Invalid for several options that say so in different ways."""
    said = {START_OFFSET: options.get(START_OFFSET), _SHORT_START: short, BEGIN: options.get(BEGIN)}
    stated = {name: str(text).strip() for name, text in said.items() if text not in (None, "")}
    if len(set(stated.values())) > 1:
        found = " and ".join(f"'{name}'='{text}'" for name, text in stated.items())
        raise Invalid(f"option '{START_OFFSET}': expected one start of the stream, found {found}")
    return next(iter(stated.values()), EARLIEST)


def _as_incremental(options: Mapping[str, object]) -> dict[str, object]:
    """The options as those of an incremental query. Raises: Invalid for what means nothing to a stream."""
    for name in (END, AS_OF):
        if options.get(name) not in (None, ""):
            raise Invalid(f"option '{name}'='{options[name]}': expected none, as a stream has no end; use spark.read")
    query = str(options.get(QUERY_TYPE) or "incremental")
    if query.lower() not in ("snapshot", "incremental"):
        raise Invalid(
            f"option '{QUERY_TYPE}'='{query}': expected 'snapshot' or 'incremental'; a stream has the rows of commits"
        )
    if query.lower() == "snapshot":  # in which the form of incremental queries means nothing
        options = {name: value for name, value in options.items() if name != INCREMENTAL_FORMAT}
    return {**options, QUERY_TYPE: "incremental", BEGIN: "000"}
