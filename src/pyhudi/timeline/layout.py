"""The folder of a timeline and the names of its files, as one value for each layout. A table's properties choose it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_never

from pyhudi.errors import Unsupported
from pyhudi.format.timeline.action_files import decode_commit, encode_commit_avro, encode_commit_json
from pyhudi.format.timeline.instant import COMPLETED_ACTION, Instant, State
from pyhudi.format.timeline.lsm import HistoryFileName
from pyhudi.format.timeline.records import CommitMetadata
from pyhudi.versions import LAYOUT_VERSION, LAYOUTS, CommitForm, TimelineKind, is_born_with, timeline_kind

_ACTIONS = frozenset(
    {
        "commit",
        "deltacommit",
        "replacecommit",
        "compaction",
        "logcompaction",
        "clustering",
        "clean",
        "rollback",
    }
    | {"restore", "savepoint", "indexing", "schemacommit"}
)
_NAME = re.compile(r"([0-9]+)(?:_([0-9]+))?\.([a-z]+)(?:\.(requested|inflight))?")


@dataclass(frozen=True, slots=True)
class TimelineLayout:
    """One timeline layout: folders and file names.

    `kind`: the traits of the layout.
    `has_sorted_history`: the names of archived files bound the instants in them. This is not so after an upgrade from
    layout 1, which leaves files whose rows are in no order.

    Spec: format/timeline.md sections 1 to 3.
    """

    kind: TimelineKind
    folder: str
    history_folder: str
    has_sorted_history: bool = False

    @property
    def has_completion_times(self) -> bool:
        """Whether completed names carry their completion time; else the file's modification time stands for it."""
        return self.kind.has_completion_times

    def parse(self, name: str) -> Instant | None:
        """The instant and state in the name of a timeline file; None for any other name."""
        match = _NAME.fullmatch(name)
        if match is None:
            return None

        requested, completed, action, suffix = match.groups()
        if action == "inflight" and suffix is None and completed is None:
            return Instant(requested, "commit", "INFLIGHT")
        if action not in _ACTIONS or (completed is not None and suffix is not None):
            return None
        if (action in COMPLETED_ACTION and suffix is None) or (action == "commit" and suffix == "inflight"):
            return None  # completed services have another action's name; inflight commits have no action
        if completed is not None and not self.has_completion_times:
            return None

        state: State = "COMPLETED" if suffix is None else "REQUESTED" if suffix == "requested" else "INFLIGHT"
        is_legacy = state == "COMPLETED" and self.has_completion_times and completed is None
        if is_legacy and not self.kind.has_names_of_before:
            return None
        return Instant(requested, action, state, completed, is_legacy)

    def format(self, instant: Instant) -> str:
        """The name of the file that holds this instant at this state."""
        match instant.state:
            case "REQUESTED":
                return f"{instant.requested}.{instant.action}.requested"
            case "INFLIGHT":
                kind = "inflight" if instant.action == "commit" else f"{instant.action}.inflight"
                return f"{instant.requested}.{kind}"
            case "COMPLETED":
                action = COMPLETED_ACTION.get(instant.action, instant.action)
                if not self.has_completion_times or instant.is_legacy:
                    return f"{instant.requested}.{action}"
                assert instant.completed is not None
                return f"{instant.requested}_{instant.completed}.{action}"

    def path(self, instant: Instant) -> str:
        return f"{self.folder}/{self.format(instant)}"

    def encode_commit(self, metadata: CommitMetadata) -> bytes:
        """The content of a commit's file, inflight or completed. Spec: format/timeline.md section 4."""
        return _encode(metadata, self.kind.commits)

    def archived_commit(self, content: bytes, *, path: str) -> bytes:
        """The content of a commit in the history, made of that of its completed file."""
        if not content or self.kind.history_commits is self.kind.commits:
            return content
        return _encode(decode_commit(content, path=path), self.kind.history_commits)

    def history_name(self, first: Instant, last: Instant, completed: str) -> HistoryFileName:
        """The name of a file of the history. `first`, `last`: by requested time. `completed`: the latest completion."""
        end = completed if self.kind.history_end == "completed" else last.requested
        return HistoryFileName(first.requested, end, 0)


def _encode(metadata: CommitMetadata, form: CommitForm) -> bytes:
    match form:
        case CommitForm.AVRO:
            return encode_commit_avro(metadata)
        case CommitForm.JSON:
            return encode_commit_json(metadata)
    assert_never(form)


def timeline_layout(properties: Mapping[str, str]) -> TimelineLayout:
    """The layout that a table's properties name.

    Raises: Unsupported for a layout that this release does not know.
    """
    kind = timeline_kind(properties)

    if kind is None:
        raise Unsupported(
            f"{LAYOUT_VERSION}={properties.get(LAYOUT_VERSION)}: expected {' or '.join(LAYOUTS)}; the table was "
            "written by a release that this one does not know"
        )

    return layout_of(kind, properties)


def layout_of(kind: TimelineKind, properties: Mapping[str, str]) -> TimelineLayout:
    """A layout of a kind, with the folders that properties name."""
    if not kind.has_own_folder:
        archive = properties.get("hoodie.archivelog.folder") or "archived"
        return TimelineLayout(kind, ".hoodie", f".hoodie/{archive}")

    folder = f".hoodie/{properties.get('hoodie.timeline.path') or 'timeline'}"
    history = properties.get("hoodie.timeline.history.path") or "history"
    return TimelineLayout(kind, folder, f"{folder}/{history}", has_sorted_history=is_born_with(properties, kind))
