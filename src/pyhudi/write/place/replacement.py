"""Replacing whole file groups: which ones a write replaces, and what must not stand in its way."""

from collections.abc import Iterable, Mapping, Sequence

from pyhudi.errors import Conflict, NotFound
from pyhudi.format.timeline.action_files import encode_requested_replace
from pyhudi.format.timeline.instant import Instant
from pyhudi.format.timeline.records import RequestedReplaceMetadata
from pyhudi.options.told_names import listed, nearest_name
from pyhudi.table.view.pending import CLUSTERINGS, FileGroup
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.write.input.source import Operation

_ENCODED_STAR = "%2A"
_SHOWN_MAX = 5


def plan_replacement(
    snapshot: Snapshot, operation: Operation, partitions: Iterable[str], pending: Mapping[FileGroup, Instant]
) -> dict[str, tuple[str, ...]] | None:
    """Partition -> ids of the file groups that are replaced; None for an operation that replaces none.

    `partitions`: those of the incoming rows, or those to be deleted. Overwriting the table adds all others.
    Seen: 1.0.2 also names partitions without file groups, with an empty list.

    Spec: format/actions.md section 4. Raises: Conflict if a pending service is about to rewrite one of the groups: it
    would bring the group's rows back.
    """
    if not operation.replaces_groups:
        return None

    existing = set(snapshot.listing.partitions())
    chosen = set(partitions) | (existing if operation is Operation.INSERT_OVERWRITE_TABLE else set())

    for (partition, file_id), instant in sorted(pending.items()):
        if partition in chosen:
            raise Conflict(
                f"partition '{partition}': {instant.action} '{instant.requested}' is pending and is about to rewrite "
                f"its file group '{file_id}'; {_way_out(instant)}, then retry"
            )

    return {
        partition: tuple(piece.file_id for piece in snapshot.slices(partition)) if partition in existing else ()
        for partition in sorted(chosen)
    }


def _way_out(instant: Instant) -> str:
    """The calls that end a pending service."""
    runs = {
        "compaction": "compact() carries it out, ", "logcompaction": "log_compact() carries it out, ",
        **dict.fromkeys(CLUSTERINGS, "run_clusterings() carries it out, "),
    }  # fmt: skip
    return f"{runs.get(instant.action, '')}rollback('{instant.requested}') takes it off the timeline"


def clustering_groups(pending: Mapping[FileGroup, Instant]) -> dict[FileGroup, Instant]:
    """File groups of pending clusterings, which must not be written to."""
    return {group: instant for group, instant in pending.items() if instant.action in CLUSTERINGS}


def requested_content(operation: Operation) -> bytes:
    """The content of an operation's requested file: nothing for a commit. Spec: format/actions.md section 4.

    Seen: 1.0.2 and 1.2.0 leave every field null, even the version. Only a deletion of partitions names itself.
    """
    if not operation.replaces_groups:
        return b""
    if operation is Operation.DELETE_PARTITION:
        return encode_requested_replace(
            RequestedReplaceMetadata(operation_type=operation.value, extra_metadata={}, version=1)
        )
    return encode_requested_replace(RequestedReplaceMetadata())


def find_partitions(existing: Sequence[str], wanted: Iterable[str]) -> tuple[str, ...]:
    """The partition paths that are asked for, each of them once.

    Raises: NotFound for a path that is no partition of the table, naming the nearest.
    """
    known = set(existing)
    chosen = tuple(dict.fromkeys(wanted))
    for path in chosen:
        if path not in known:
            near = nearest_name(path, existing)
            hint = f"; the nearest is '{near}'" if near else f"; there are {_shown(existing)}"
            raise NotFound(f"partition '{path}': expected the path of a partition as it is stored, found none{hint}")
    return chosen


def match_partitions(existing: Sequence[str], patterns: Iterable[str]) -> tuple[str, ...]:
    """The partition paths that patterns name. `*` stands for any text, with slashes; other patterns are paths as they
    are.

    Seen: 1.0.2 takes `%2A` for `*` where a pattern has no `*`.
    Raises: NotFound for a path or a pattern that is no partition of the table.
    """
    chosen: list[str] = []
    for pattern in patterns:
        star = "*" if "*" in pattern else _ENCODED_STAR
        if star not in pattern:
            chosen += find_partitions(existing, [pattern])
            continue

        parts = pattern.split(star)
        matching = [path for path in existing if has_in_order(path, parts)]
        if not matching:
            raise NotFound(
                f"partitions '{pattern}': expected at least one that matches, found none among {_shown(existing)}"
            )
        chosen += matching
    return tuple(dict.fromkeys(chosen))


def has_in_order(path: str, parts: Sequence[str]) -> bool:
    """Whether a path begins with the first text, ends with the last, and has the others between them in order.

    Takes each text at its first position. A regular expression might go back and try again for very long, and anybody
    may name partitions. Example: `a/b/c` has `a`, `b` and `c` in order.
    """
    first, *between, last = parts
    at, end = len(first), len(path) - len(last)
    if at > end or not path.startswith(first) or not path.endswith(last):
        return False
    for part in between:
        at = path.find(part, at, end)
        if at < 0:
            return False
        at += len(part)
    return True


def _shown(existing: Sequence[str]) -> str:
    return listed([f"'{path}'" for path in existing], most=_SHOWN_MAX) or "none"
