"""Batches of streams that a table's commits hold: what a commit says of one, and the newest one of a stream."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pyhudi.errors import CorruptFile, Invalid
from pyhudi.format.timeline.instant import Instant
from pyhudi.options.stream_settings import CHECKPOINT_IDENTIFIER, SHARED_IDENTIFIER
from pyhudi.table.view.commits import read_commit
from pyhudi.table.view.snapshot import Snapshot

SINK_CHECKPOINT: Final = "_hudi_streaming_sink_checkpoint"
"""The key of Apache Hudi's own in a commit's metadata: JSON, checkpoint identifier -> number of the batch, as text."""

SINK_QUERY: Final = "_pyhudi_streaming_query"
"""The id of the Spark query. It tells two streams apart that state no identifier, or the same one."""


@dataclass(frozen=True, slots=True)
class SinkBatch:
    """A batch of a stream. `query`: the id of its Spark query, which its checkpoint keeps; None if nothing says it."""

    identifier: str
    number: int
    query: str | None

    def commit_texts(self) -> dict[str, str]:
        """What the batch's commit holds beside its own.

        Seen: 1.2.0 writes the first entry so, without spaces.
        """
        checkpoint = json.dumps({self.identifier: str(self.number)}, separators=(",", ":"), ensure_ascii=False)
        return {SINK_CHECKPOINT: checkpoint, **({} if self.query is None else {SINK_QUERY: self.query})}


def batches_in(texts: Mapping[str, str], *, instant: str) -> tuple[SinkBatch, ...]:
    """The batches that a commit says it holds. `texts`: its extra metadata.

    Raises: CorruptFile for an entry that is not of the form of Apache Hudi's.
    """
    text = texts.get(SINK_CHECKPOINT, "")
    if not text:
        return ()
    try:
        found = json.loads(text)
        return tuple(SinkBatch(name, int(number), texts.get(SINK_QUERY)) for name, number in found.items())
    except (ValueError, TypeError, AttributeError):
        raise CorruptFile(
            f"the commit '{instant}', entry '{SINK_CHECKPOINT}'", 0,
            expected="JSON of an identifier and a number, such as {\"a\":\"5\"}", found=text[:80],
        ) from None  # fmt: skip


def batch_text(texts: Mapping[str, str]) -> str:
    """A text that two commits have in common only if they hold the same batch of the same Spark query, or empty."""
    return f"{texts.get(SINK_CHECKPOINT, '')} {texts[SINK_QUERY]}" if SINK_QUERY in texts else ""


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream into a table. `query`: the id of its Spark query. `identifier`: stated by the user; empty: none is."""

    query: str
    identifier: str

    def batch(self, number: int) -> SinkBatch:
        return SinkBatch(self.identifier or SHARED_IDENTIFIER, number, self.query)

    def may_be_named_as(self, batch: SinkBatch) -> bool:
        """Whether a batch that is not known to be this stream's bears its name.

        Without a stated identifier streams have one name. Then only batches count of which nothing else is known.
        """
        if batch.identifier != (self.identifier or SHARED_IDENTIFIER):
            return False
        return bool(self.identifier) or batch.query is None


@dataclass(frozen=True, slots=True)
class NewestBatches:
    """`own`: the newest batch of a stream. `namesake`: the newest after it that bears the stream's name only."""

    own: SinkBatch | None = None
    namesake: SinkBatch | None = None

    def upon(self, older: "NewestBatches") -> "NewestBatches":
        """These, and where they say nothing those of older commits."""
        if self.own is not None:
            return self
        return NewestBatches(older.own, self.namesake or older.namesake)

    def has(self, number: int, stream: Stream, *, uri: str) -> bool:
        """Whether a table has a batch of the stream.

        Only the last batch of a stream is ever run again. Where Apache Hudi wrote batches of the stream's name, they
        are the stream's if the user has stated the name. Otherwise nobody knows.
        Raises: Invalid where storing the batch may store it twice, and leaving it out may lose it.
        """
        if self.own is not None and number <= self.own.number:
            return True
        other = self.namesake
        if other is None or (other.query is not None and self.own is not None):
            return False
        if other.query is None:
            if number > other.number:
                return False
            if stream.identifier and number == other.number:
                return True

        is_open = other.query is None and not stream.identifier and number == other.number
        same = f"if that is this stream, set the option '{CHECKPOINT_IDENTIFIER}' to '{other.identifier}'; if not, "
        raise Invalid(
            f"{uri}: batch {number} of a stream, and batch {other.number} with the identifier '{other.identifier}', "
            f"which is not known to be of this stream, is stored; {same if is_open else ''}each stream into a table "
            f"needs its own identifier: set the option '{CHECKPOINT_IDENTIFIER}' to another text"
        )


@dataclass
class KnownBatches:
    """The newest batches of a stream in its table. Reads each commit once. For one thread."""

    stream: Stream
    _newest: NewestBatches = NewestBatches()
    _seen: set[str] = field(default_factory=set)
    _has_read_archive: bool = False

    def look(self, snapshot: Snapshot) -> NewestBatches:
        """What the table has now.

        Requests: a get for each active commit since the last look. The first look reads the archive, too, if no active
        commit is the stream's.
        """
        timeline = snapshot.timeline
        new = self._found(snapshot, [i for i in timeline.completed_writes if i.requested not in self._seen])
        self._newest = new.upon(self._newest)
        self._seen = {i.requested for i in timeline.completed_writes}
        if self._newest.own is None and not self._has_read_archive and timeline.instants:
            self._newest = self._newest.upon(self._found(snapshot, timeline.archived_writes()))
        self._has_read_archive = True
        return self._newest

    def _found(self, snapshot: Snapshot, instants: Sequence[Instant]) -> NewestBatches:
        """The newest batches of these commits."""
        namesake = None
        for instant in reversed(instants):
            texts = read_commit(snapshot.storage, snapshot.timeline, instant).extra_metadata
            for batch in batches_in(texts, instant=instant.requested):
                if batch.query == self.stream.query:
                    return NewestBatches(batch, namesake)
                if namesake is None and self.stream.may_be_named_as(batch):
                    namesake = batch
        return NewestBatches(None, namesake)
