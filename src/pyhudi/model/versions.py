"""What a table version means: one row a version, one named trait a difference.

Code asks a trait and never the number, so that another version is another row of `VERSIONS`.

Spec: format/versions.md section 2; each trait names the section that it is from.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, Literal, TypeAlias

from pyhudi.errors import CorruptFile, Unsupported

TABLE_VERSION: Final = "hoodie.table.version"
LAYOUT_VERSION: Final = "hoodie.timeline.layout.version"


class CommitForm(Enum):
    """What the files of commits, delta commits and replace commits hold."""

    JSON = "JSON text"
    AVRO = "Avro container files"


class HistoryForm(Enum):
    """What archived instants lie in."""

    LOGS = "logs, which are appended to"
    SORTED_FILES = "Parquet files by requested time, merged in levels"


class Rollback(Enum):
    """How what a dead or restored write has logged is taken back."""

    COMMAND_BLOCKS = "a command block behind its log blocks"
    DELETED_FILES = "its log files are deleted"


class LogNaming(Enum):
    """Which instant the name of a log file carries."""

    AFTER_SLICE = "the base instant of the log's file slice"
    AFTER_WRITE = "the requested time of the delta commit that wrote the log"


class KeyGeneratorForm(Enum):
    """As what a table stores its key generator."""

    CLASS = "the class; partition columns bare"
    KIND = "the kind; partition columns of a custom one with their kinds"


class Merging(Enum):
    """Which properties say how rows of one key are merged."""

    PAYLOAD = "a payload class"
    MODE_AND_PAYLOAD = "a merge mode, beside it a strategy id and a payload class"
    MODE = "a merge mode, with properties for what payload classes did"


class ShownTimes(Enum):
    """What queries show of a partition column of which a key generator makes a time."""

    TEXT = "the text of its value, for the TIMESTAMP key generator alone"
    PATH = "the text of the partition, in queries of base files alone"


class MetadataInstants(Enum):
    """Which instants the metadata table's own actions have."""

    SUFFIXED = "a data table's instant and three digits that tell the action"
    ISSUED = "instants of their own"


class IndexRemoval(Enum):
    """How an index of files says that a file is no more."""

    RECORDS = "records that say so"
    DELETE_BLOCKS = "delete blocks"


IndexVersion: TypeAlias = Literal["V1", "V2"]


@dataclass(frozen=True, slots=True)
class TimelineKind:
    """The traits of a timeline layout, which several table versions share."""

    # Its number in `hoodie.timeline.layout.version`. timeline.md section 1.
    number: Literal[1, 2]
    # It lies in a folder below `.hoodie`, and its history in one below that. layout.md section 1.
    has_own_folder: bool
    # Names of completed files carry the completion time; else the file's date stands for it. timeline.md section 3.
    has_completion_times: bool
    # timeline.md section 4.
    commits: CommitForm
    # timeline.md sections 5 and 6.
    history: HistoryForm
    # actions.md section 5.
    rollback: Rollback
    # What a new table says of folders. layout.md section 2.3.
    new_folders: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class TableVersion:
    """The traits of a table version."""

    # Its number in `hoodie.table.version`; for users, messages and properties.
    number: int
    # This release writes such tables.
    is_writable: bool
    # timeline.md section 1.
    timeline: TimelineKind
    # A new table says which version it is born with. layout.md section 2.3.
    has_initial_version: bool
    # A new table says whether its base files are of several formats. layout.md section 2.3.
    has_base_format_flag: bool
    # layout.md section 4.3; timeline.md section 7.
    log_naming: LogNaming
    # The kind of the marker that a writer puts for a log file. actions.md section 2.
    log_marker: Literal["CREATE", "APPEND"]
    # Log blocks may say where in the base file their rows stand. log-format.md section 3.
    has_log_positions: bool
    # Log blocks may hold rows with some of the columns. log-format.md section 6.2.
    has_partial_blocks: bool
    # layout.md section 5.
    key_generator: KeyGeneratorForm
    # A complex key names its field even where that is the only one, as `id:1`. layout.md section 5.1.
    names_only_key_field: bool
    # Buckets hash a key with a colon as all writers of today do; before 1.0 they did otherwise. indexes.md section 4.
    has_stable_key_hash: bool
    # log-format.md section 6.
    merging: Merging
    # The property of the merge strategy's id. log-format.md section 6.1.
    strategy_property: str
    # The property of the columns that order rows of one key. layout.md section 2.3.
    ordering_property: str
    # There may be several of these columns. layout.md section 2.3.
    has_many_orderings: bool
    # Tables may fill what an update leaves out. log-format.md section 6.2.
    has_partial_update_modes: bool
    # queries.md section 1.
    shown_times: ShownTimes
    # The table version whose record schema the metadata table has. metadata-table.md section 6.
    metadata_schema: Literal[6, 8, 9]
    # metadata-table.md sections 7, 8 and 11.
    metadata_instants: MetadataInstants
    # Compactions of the metadata table make a base file for a group that never had a record, too. Seen: not 0.15.0.
    compacts_empty_groups: bool
    # The only indexes beside `files` that the metadata table may have; None: of any kind. metadata-table.md section 3.
    indexes: frozenset[str] | None
    # Indexes are defined in a file, `index.json`. layout.md section 2.4.
    has_index_definitions: bool
    # The record index may be one a data partition. metadata-table.md section 3.
    has_partitioned_record_index: bool
    # What names of expression indexes begin with, where there are such; `func_index_` by the specification's version 7.
    expression_prefix: str
    # The version that a new definition of an index has. layout.md section 2.4.
    index_version: IndexVersion
    # metadata-table.md sections 8 and 9.
    index_removal: IndexRemoval

    def __str__(self) -> str:
        return str(self.number)

    def has_index(self, name: str) -> bool:
        """Whether tables of this version may have this index beside `files`."""
        return self.indexes is None or name in self.indexes

    def new_timeline_properties(self) -> dict[str, str]:
        """What a new table of this version says of its timeline. Spec: format/layout.md section 2.3."""
        initial = {"hoodie.table.initial.version": str(self.number)} if self.has_initial_version else {}
        return {**initial, LAYOUT_VERSION: str(self.timeline.number), **dict(self.timeline.new_folders)}


LAYOUT_1: Final = TimelineKind(
    number=1,
    has_own_folder=False,
    has_completion_times=False,
    commits=CommitForm.JSON,
    history=HistoryForm.LOGS,
    rollback=Rollback.COMMAND_BLOCKS,
    new_folders=(("hoodie.archivelog.folder", "archived"),),
)
LAYOUT_2: Final = TimelineKind(
    number=2,
    has_own_folder=True,
    has_completion_times=True,
    commits=CommitForm.AVRO,
    history=HistoryForm.SORTED_FILES,
    rollback=Rollback.DELETED_FILES,
    new_folders=(
        ("hoodie.timeline.path", "timeline"),
        ("hoodie.timeline.history.path", "history"),
        ("hoodie.archivelog.folder", "history"),
    ),
)
LAYOUTS: Final[Mapping[str, TimelineKind]] = {str(kind.number): kind for kind in (LAYOUT_1, LAYOUT_2)}
"""By their number in the table's properties."""

_ROWS: Final = (
    TableVersion(
        number=6,
        is_writable=True,
        timeline=LAYOUT_1,
        has_initial_version=False,
        has_base_format_flag=False,
        log_naming=LogNaming.AFTER_SLICE,
        log_marker="APPEND",
        has_log_positions=False,
        has_partial_blocks=False,
        key_generator=KeyGeneratorForm.CLASS,
        names_only_key_field=False,
        has_stable_key_hash=False,
        merging=Merging.PAYLOAD,
        strategy_property="hoodie.compaction.record.merger.strategy",
        ordering_property="hoodie.table.precombine.field",
        has_many_orderings=False,
        has_partial_update_modes=False,
        shown_times=ShownTimes.PATH,
        metadata_schema=6,
        metadata_instants=MetadataInstants.SUFFIXED,
        compacts_empty_groups=False,
        indexes=frozenset({"bloom_filters", "column_stats", "record_index"}),
        has_index_definitions=False,
        has_partitioned_record_index=False,
        expression_prefix="expr_index_",
        index_version="V1",
        index_removal=IndexRemoval.RECORDS,
    ),
    TableVersion(
        number=8,
        is_writable=True,
        timeline=LAYOUT_2,
        has_initial_version=True,
        has_base_format_flag=True,
        log_naming=LogNaming.AFTER_WRITE,
        log_marker="CREATE",
        has_log_positions=True,
        has_partial_blocks=True,
        key_generator=KeyGeneratorForm.KIND,
        names_only_key_field=False,
        has_stable_key_hash=True,
        merging=Merging.MODE_AND_PAYLOAD,
        strategy_property="hoodie.record.merge.strategy.id",
        ordering_property="hoodie.table.precombine.field",
        has_many_orderings=False,
        has_partial_update_modes=False,
        shown_times=ShownTimes.TEXT,
        metadata_schema=8,
        metadata_instants=MetadataInstants.ISSUED,
        compacts_empty_groups=True,
        indexes=None,
        has_index_definitions=True,
        has_partitioned_record_index=True,
        expression_prefix="expr_index_",
        index_version="V1",
        index_removal=IndexRemoval.DELETE_BLOCKS,
    ),
    TableVersion(
        number=9,
        is_writable=True,
        timeline=LAYOUT_2,
        has_initial_version=True,
        has_base_format_flag=True,
        log_naming=LogNaming.AFTER_WRITE,
        log_marker="CREATE",
        has_log_positions=True,
        has_partial_blocks=True,
        key_generator=KeyGeneratorForm.KIND,
        names_only_key_field=True,
        has_stable_key_hash=True,
        merging=Merging.MODE,
        strategy_property="hoodie.record.merge.strategy.id",
        ordering_property="hoodie.table.ordering.fields",
        has_many_orderings=True,
        has_partial_update_modes=True,
        shown_times=ShownTimes.TEXT,
        metadata_schema=9,
        metadata_instants=MetadataInstants.ISSUED,
        compacts_empty_groups=True,
        indexes=None,
        has_index_definitions=True,
        has_partitioned_record_index=True,
        expression_prefix="expr_index_",
        index_version="V2",
        index_removal=IndexRemoval.DELETE_BLOCKS,
    ),
)

VERSIONS: Final[Mapping[int, TableVersion]] = {row.number: row for row in _ROWS}
"""Those that this release reads, by number."""

NEW_TABLE_VERSION: Final = 8
"""Of a new table of which nobody says another one."""

_WRITABLE: Final = tuple(str(row.number) for row in _ROWS if row.is_writable)
WRITABLE_TEXT: Final = f"{', '.join(_WRITABLE[:-1])} and {_WRITABLE[-1]}"


def table_version(properties: Mapping[str, str], *, path: str) -> TableVersion:
    """The version in a table's properties; `path` names the table in messages.

    Raises: CorruptFile for what is no number; Unsupported for a version that this release cannot read.
    """
    text = properties.get(TABLE_VERSION, "0")
    if not (text.isascii() and text.isdigit()):
        raise CorruptFile(path, 0, expected=f"a number as {TABLE_VERSION}", found=f"'{text}'")
    found = VERSIONS.get(int(text))
    if found is None:
        raise Unsupported(
            f"{path}: {TABLE_VERSION}={text}: expected one of {', '.join(map(str, VERSIONS))}; upgrade the table with "
            "Apache Hudi, or use a release of pyhudi that knows this version"
        )
    return found


def is_born_with(properties: Mapping[str, str], kind: TimelineKind) -> bool:
    """Whether a table had this timeline layout from its first instant on, and was not upgraded to it."""
    initial = properties.get("hoodie.table.initial.version", "")
    version = VERSIONS.get(int(initial)) if initial.isascii() and initial.isdigit() else None
    return version is not None and version.timeline == kind
