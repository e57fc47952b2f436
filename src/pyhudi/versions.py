"""What a table version means: one row for each version, one named trait for each difference.

Code asks for a trait, never for the number. So a new version is a new row of `VERSIONS`.

Spec: format/versions.md section 2. Each trait names the section that describes it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, Literal, TypeAlias

from pyhudi.errors import CorruptFile, Unsupported

TABLE_VERSION: Final = "hoodie.table.version"
LAYOUT_VERSION: Final = "hoodie.timeline.layout.version"


class CommitForm(Enum):
    """The format of the files of commits, delta commits and replace commits."""

    JSON = "JSON text"
    AVRO = "Avro container files"


class HistoryForm(Enum):
    """Where archived instants are stored."""

    LOGS = "logs, which are appended to"
    SORTED_FILES = "Parquet files by requested time, merged in levels"


class Rollback(Enum):
    """How a rollback takes back the log records of a dead or restored write."""

    COMMAND_BLOCKS = "a command block behind its log blocks"
    DELETED_FILES = "its log files are deleted"


class LogNaming(Enum):
    """The instant in the name of a log file."""

    AFTER_SLICE = "the base instant of the log's file slice"
    AFTER_WRITE = "the requested time of the delta commit that wrote the log"


class KeyGeneratorForm(Enum):
    """The form in which a table stores its key generator."""

    CLASS = "the class; partition columns bare"
    KIND = "the kind; partition columns of a custom one with their kinds"


class Merging(Enum):
    """The properties that say how rows with the same key are merged."""

    PAYLOAD = "a payload class"
    MODE_AND_PAYLOAD = "a merge mode, beside it a strategy id and a payload class"
    MODE = "a merge mode, with properties for what payload classes did"


class ShownTimes(Enum):
    """What queries show for a partition column that a key generator turns into a formatted time."""

    TEXT = "the text of its value, for the TIMESTAMP key generator alone"
    PATH = "the text of the partition, in queries of base files alone"


class LogContent(Enum):
    """The number that stands at the start of a log block's content. It tells how a delete block holds its records."""

    JAVA = 2  # deletes as objects that Java's Kryo serializer wrote
    AVRO = 3  # deletes as Avro records


class MetadataInstants(Enum):
    """The instants of the metadata table's own actions."""

    ADOPTED = "a data table's instant, also where the metadata table is made and restored; else as SUFFIXED"
    SUFFIXED = "a data table's instant and three digits that tell the action"
    ISSUED = "instants of their own"

    @property
    def have_suffixes(self) -> bool:
        return self is not MetadataInstants.ISSUED


class IndexRemoval(Enum):
    """How an index of files records that a file is gone."""

    RECORDS = "records that say so"
    DELETE_BLOCKS = "delete blocks"


IndexVersion: TypeAlias = Literal["V1", "V2"]


@dataclass(frozen=True, slots=True)
class TimelineKind:
    """The traits of a timeline layout, which several table versions share."""

    # The number in `hoodie.timeline.layout.version`. timeline.md section 1.
    number: Literal[1, 2]
    # The timeline has its own folder below `.hoodie`, and its history a folder below that. layout.md section 1.
    has_own_folder: bool
    # Names of completed files carry the completion time. Else the file's date is taken for it. timeline.md section 3.
    has_completion_times: bool
    # Completed files count, too, whose names have no completion time: older than an upgrade. timeline.md section 3.
    has_names_of_before: bool
    # The action of a pending clustering; the second one is that of other replacements, too. timeline.md section 2.
    clustering: Literal["clustering", "replacecommit"]
    # timeline.md section 4.
    commits: CommitForm
    # timeline.md sections 5 and 6.
    history: HistoryForm
    # Files of the history may lie in the timeline's own folder, too. Seen: 0.9.0 writes them there.
    may_archive_beside: bool
    # The format of commits in the history, if it is another one than in the timeline. timeline.md section 5.
    history_commits: CommitForm
    # The end in the name of a file of the history: of the instants in it the latest time of this kind.
    history_end: Literal["requested", "completed"]
    # actions.md section 5.
    rollback: Rollback
    # The folder properties that a new table stores. layout.md section 2.3.
    new_folders: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class TableVersion:
    """The traits of a table version."""

    # The number in `hoodie.table.version`, for users, messages and properties.
    number: int
    # Whether this release writes tables of this version.
    is_writable: bool
    # No release of Apache Hudi has such tables. Only a text tells of them.
    is_experimental: bool
    # timeline.md section 1.
    timeline: TimelineKind
    # A new table stores the version that it was created with. layout.md section 2.3.
    has_initial_version: bool
    # A new table stores whether its base files have several formats. layout.md section 2.3.
    has_base_format_flag: bool
    # layout.md section 4.3; timeline.md section 7.
    log_naming: LogNaming
    # The kind of marker that a writer creates for a log file. actions.md section 2.
    log_marker: Literal["CREATE", "APPEND"]
    # log-format.md section 2.
    log_content: LogContent
    # Log blocks may store the row positions of their records in the base file. log-format.md section 3.
    has_log_positions: bool
    # Log blocks may hold rows with some of the columns only. log-format.md section 6.2.
    has_partial_blocks: bool
    # layout.md section 5.
    key_generator: KeyGeneratorForm
    # A complex key of one field includes the field's name, as `id:1`. layout.md section 5.1.
    names_only_key_field: bool
    # Keys with a colon are hashed to buckets in one way by all writers; before 1.0 they were not. indexes.md section 4.
    has_stable_key_hash: bool
    # The plan of a compaction is stored a second time, in `.hoodie/.aux`. versions.md section 2.
    copies_compaction_plans: bool
    # The modes of change data are stored in lower case. Seen: 0.13.1 knows no other.
    has_low_change_modes: bool
    # log-format.md section 6.
    merging: Merging
    # The property that stores the merge strategy's id. log-format.md section 6.1.
    strategy_property: str
    # The property that stores the ordering columns. layout.md section 2.3.
    ordering_property: str
    # A table may have several ordering columns. layout.md section 2.3.
    has_many_orderings: bool
    # Tables may fill values that an update leaves out. log-format.md section 6.2.
    has_partial_update_modes: bool
    # queries.md section 1.
    shown_times: ShownTimes
    # Partition paths tell the values of partition columns. Up to version 4 `default` is a text, or no value.
    paths_tell_values: bool
    # This release knows how to read the metadata table. Else it lists the storage.
    has_known_metadata_table: bool
    # The table version that defines the metadata table's record schema. metadata-table.md section 6.
    metadata_schema: Literal[5, 6, 8, 9]
    # metadata-table.md sections 7, 8 and 11.
    metadata_instants: MetadataInstants
    # Ids of the metadata table's file groups end in a file index. Example: `files-0000-0`. metadata-table.md section 3.
    has_group_suffix: bool
    # The metadata table's logs may be merged without making base files. Seen: 0.13.1 has no such action.
    has_metadata_log_compaction: bool
    # A compaction of the metadata table makes a base file even for a group without records. Seen: 0.15.0 does not.
    compacts_empty_groups: bool
    # The indexes that the metadata table may have beside `files`. None: any kind. metadata-table.md section 3.
    indexes: frozenset[str] | None
    # Indexes are defined in a file named `index.json`. layout.md section 2.4.
    has_index_definitions: bool
    # There may be one record index for each data partition. metadata-table.md section 3.
    has_partitioned_record_index: bool
    # The prefix of expression indexes' names, if there are any. The specification's version 7 has `func_index_`.
    expression_prefix: str
    # The version of a new index definition. layout.md section 2.4.
    index_version: IndexVersion
    # metadata-table.md sections 8 and 9.
    index_removal: IndexRemoval
    # What a bootstrapped table stores of its index: a property and its value. bootstrap.md section 2.
    bootstrap_index: tuple[str, str]

    def __str__(self) -> str:
        return str(self.number)

    def has_index(self, name: str) -> bool:
        """Whether tables of this version may have this index beside `files`."""
        return self.indexes is None or name in self.indexes

    def new_timeline_properties(self) -> dict[str, str]:
        """The properties about its timeline that a new table stores. Spec: format/layout.md section 2.3."""
        initial = {"hoodie.table.initial.version": str(self.number)} if self.has_initial_version else {}
        return {**initial, LAYOUT_VERSION: str(self.timeline.number), **dict(self.timeline.new_folders)}


LAYOUT_1: Final = TimelineKind(
    number=1,
    has_own_folder=False,
    has_completion_times=False,
    has_names_of_before=False,
    clustering="replacecommit",
    commits=CommitForm.JSON,
    history=HistoryForm.LOGS,
    may_archive_beside=False,
    history_commits=CommitForm.JSON,
    history_end="requested",
    rollback=Rollback.COMMAND_BLOCKS,
    new_folders=(("hoodie.archivelog.folder", "archived"),),
)
LAYOUT_2: Final = TimelineKind(
    number=2,
    has_own_folder=True,
    has_completion_times=True,
    has_names_of_before=True,
    clustering="clustering",
    commits=CommitForm.AVRO,
    history=HistoryForm.SORTED_FILES,
    may_archive_beside=False,
    history_commits=CommitForm.AVRO,
    history_end="requested",
    rollback=Rollback.DELETED_FILES,
    new_folders=(
        ("hoodie.timeline.path", "timeline"),
        ("hoodie.timeline.history.path", "history"),
        ("hoodie.archivelog.folder", "history"),
    ),
)
LAYOUT_TO_4: Final = replace(LAYOUT_1, may_archive_beside=True)
"""Of versions 2 to 4, which only their numbers tell from layout 1."""
LAYOUT_OF_7: Final = replace(
    LAYOUT_2,
    number=1,
    has_own_folder=False,
    has_names_of_before=False,
    clustering="replacecommit",
    history_commits=CommitForm.JSON,
    history_end="completed",
    new_folders=LAYOUT_1.new_folders,
)
"""Of the text for version 7: times in names and a sorted history, in the folders of layout 1, from which only the table
version tells it. No completed file of one layout is one of the other, so both timelines can lie in one folder.
"""

LAYOUTS: Final[Mapping[str, TimelineKind]] = {str(kind.number): kind for kind in (LAYOUT_1, LAYOUT_2)}
"""The timeline layouts, by their number in the table's properties."""

TIMELINE_KINDS: Final = (LAYOUT_1, LAYOUT_OF_7, LAYOUT_2)
"""The timeline layouts that a version which is written can have."""

_SIX: Final = TableVersion(
    number=6, is_writable=True, is_experimental=False, timeline=LAYOUT_1, has_initial_version=False,
    has_base_format_flag=False, log_naming=LogNaming.AFTER_SLICE, log_marker="APPEND", log_content=LogContent.AVRO,
    has_log_positions=False, has_partial_blocks=False, key_generator=KeyGeneratorForm.CLASS,
    names_only_key_field=False, has_stable_key_hash=False, copies_compaction_plans=False, has_low_change_modes=False,
    merging=Merging.PAYLOAD, strategy_property="hoodie.compaction.record.merger.strategy",
    ordering_property="hoodie.table.precombine.field", has_many_orderings=False, has_partial_update_modes=False,
    shown_times=ShownTimes.PATH, paths_tell_values=True,
    has_known_metadata_table=True, metadata_schema=6, metadata_instants=MetadataInstants.SUFFIXED,
    has_group_suffix=True, has_metadata_log_compaction=True, compacts_empty_groups=False,
    indexes=frozenset({"bloom_filters", "column_stats", "record_index"}), has_index_definitions=False,
    has_partitioned_record_index=False, expression_prefix="expr_index_", index_version="V1",
    index_removal=IndexRemoval.RECORDS,
    bootstrap_index=(
        "hoodie.bootstrap.index.class", "org.apache.hudi.common.bootstrap.index.hfile.HFileBootstrapIndex",
    ),
)  # fmt: skip
_FIVE: Final = replace(
    _SIX,
    number=5,
    log_content=LogContent.JAVA,
    copies_compaction_plans=True,
    has_low_change_modes=True,
    names_only_key_field=True,
    metadata_schema=5,
    metadata_instants=MetadataInstants.ADOPTED,
    has_group_suffix=False,
    has_metadata_log_compaction=False,
    indexes=frozenset({"bloom_filters", "column_stats"}),
)
_FOUR: Final = replace(
    _FIVE, number=4, is_writable=False, timeline=LAYOUT_TO_4, paths_tell_values=False, has_known_metadata_table=False,
)  # fmt: skip
_THREE: Final = replace(_FOUR, number=3)
_TWO: Final = replace(_FOUR, number=2)
_EIGHT: Final = TableVersion(
    number=8, is_writable=True, is_experimental=False, timeline=LAYOUT_2, has_initial_version=True,
    has_base_format_flag=True, log_naming=LogNaming.AFTER_WRITE, log_marker="CREATE", log_content=LogContent.AVRO,
    has_log_positions=True, has_partial_blocks=True, key_generator=KeyGeneratorForm.KIND, names_only_key_field=False,
    has_stable_key_hash=True, copies_compaction_plans=False, has_low_change_modes=False,
    merging=Merging.MODE_AND_PAYLOAD, strategy_property="hoodie.record.merge.strategy.id",
    ordering_property="hoodie.table.precombine.field", has_many_orderings=False, has_partial_update_modes=False,
    shown_times=ShownTimes.TEXT, paths_tell_values=True,
    has_known_metadata_table=True, metadata_schema=8, metadata_instants=MetadataInstants.ISSUED, has_group_suffix=True,
    has_metadata_log_compaction=True, compacts_empty_groups=True, indexes=None, has_index_definitions=True,
    has_partitioned_record_index=True, expression_prefix="expr_index_", index_version="V1",
    index_removal=IndexRemoval.DELETE_BLOCKS, bootstrap_index=("hoodie.bootstrap.index.type", "HFILE"),
)  # fmt: skip
_SEVEN: Final = replace(
    _EIGHT,
    number=7,
    is_experimental=True,
    timeline=LAYOUT_OF_7,
    has_initial_version=False,
    has_base_format_flag=False,
    has_log_positions=False,
    has_partial_blocks=False,
    key_generator=KeyGeneratorForm.CLASS,
    merging=Merging.PAYLOAD,
    strategy_property=_SIX.strategy_property,
    metadata_schema=6,
    indexes=_SIX.indexes,
    has_index_definitions=False,
    has_partitioned_record_index=False,
    expression_prefix="func_index_",
    index_removal=IndexRemoval.RECORDS,
    bootstrap_index=_SIX.bootstrap_index,
)
_NINE: Final = replace(
    _EIGHT,
    number=9,
    names_only_key_field=True,
    merging=Merging.MODE,
    ordering_property="hoodie.table.ordering.fields",
    has_many_orderings=True,
    has_partial_update_modes=True,
    metadata_schema=9,
    index_version="V2",
)
_ROWS: Final = (_TWO, _THREE, _FOUR, _FIVE, _SIX, _SEVEN, _EIGHT, _NINE)

VERSIONS: Final[Mapping[int, TableVersion]] = {row.number: row for row in _ROWS}
"""The versions that this release reads, by number."""

NEW_TABLE_VERSION: Final = 8
"""The version of a new table, unless the caller states another one."""

_WRITABLE: Final = tuple(str(row.number) for row in _ROWS if row.is_writable)
WRITABLE_TEXT: Final = f"{', '.join(_WRITABLE[:-1])} and {_WRITABLE[-1]}"


def table_version(properties: Mapping[str, str], *, path: str) -> TableVersion:
    """The version in a table's properties. `path` names the table in messages.

    Raises: CorruptFile for text that is no number; Unsupported for a version that this release cannot read.
    """
    text = properties.get(TABLE_VERSION, "0")
    if not (text.isascii() and text.isdigit()):
        raise CorruptFile(path, 0, expected=f"a number as {TABLE_VERSION}", found=f"'{text}'")

    found = VERSIONS.get(int(text))
    if found is None:
        way = _WAY_FROM_OLD if int(text) < min(VERSIONS) else _WAY_FROM_NEW
        raise Unsupported(f"{path}: {TABLE_VERSION}={text}: expected one of {', '.join(map(str, VERSIONS))}; {way}")
    return found


WAY_TO_FIVE: Final = "Write to it once with Apache Hudi 0.12 or 0.13, which makes it a table of version 5"
_WAY_FROM_OLD: Final = f"such tables do not say which columns are their keys and their partitions. {WAY_TO_FIVE}"
_WAY_FROM_NEW: Final = "use a release of pyhudi that knows this version"


def timeline_kind(properties: Mapping[str, str]) -> TimelineKind | None:
    """The layout of a table's timeline; None for a number that no layout has.

    The number says it, except of a version whose layout shares its number with another.
    """
    version = properties.get(TABLE_VERSION, "")
    row = VERSIONS.get(int(version)) if version.isascii() and version.isdigit() else None
    if row is not None and row.timeline not in LAYOUTS.values():
        return row.timeline
    return LAYOUTS.get(properties.get(LAYOUT_VERSION, str(LAYOUT_1.number)))


def is_born_with(properties: Mapping[str, str], kind: TimelineKind) -> bool:
    """Whether a table had this timeline layout from its first instant on, without an upgrade."""
    initial = properties.get("hoodie.table.initial.version", "")
    version = VERSIONS.get(int(initial)) if initial.isascii() and initial.isdigit() else None
    return version is not None and version.timeline == kind
