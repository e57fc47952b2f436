"""What a reader asks for by options, in the form that `spark.read.format("hudi")` takes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Self, TypeAlias

from pyhudi.errors import Invalid
from pyhudi.options.entries import Kind
from pyhudi.options.resolve import check_value, option_texts
from pyhudi.options.table_facts import parse_flag
from pyhudi.options.values import OptionValues
from pyhudi.options.verdicts import find_entry

QueryType: TypeAlias = Literal["snapshot", "read_optimized", "incremental"]

QUERY_TYPE = "hoodie.datasource.query.type"
AS_OF = "as.of.instant"
BEGIN = "hoodie.datasource.read.begin.instanttime"
END = "hoodie.datasource.read.end.instanttime"
INCREMENTAL_FORMAT = "hoodie.datasource.query.incremental.format"
METADATA = "hoodie.metadata.enable"
DATA_SKIPPING = "hoodie.enable.data.skipping"
DATA_SKIPPING_FAILURE = "hoodie.fileIndex.dataSkippingFailureMode"
FALLBACK = "hoodie.datasource.read.incr.fallback.fulltablescan.enable"
SOURCE_FOLDER = "hoodie.bootstrap.base.path"
"""Where the files are now that a table was bootstrapped from; without it, where the table says."""
WHERE = "pyhudi.where"
"""An option of pyhudi's own: the predicate of a query. Spark's readers have no option for it."""


@dataclass(frozen=True, slots=True)
class SkippingOptions:
    """`is_on`: whether queries skip what indexes rule out. `falls_back`: a damaged index is ignored, not an error.

    Apache Hudi falls back unless told otherwise. Here, a damaged index is an error unless the caller asks to fall back.
    """

    is_on: bool = True
    falls_back: bool = False

    @classmethod
    def from_options(cls, texts: Mapping[str, str]) -> Self:
        """Raises: Invalid for a value that is not allowed."""
        values = OptionValues(texts)
        mode = values.choice(DATA_SKIPPING_FAILURE, "strict", ("strict", "fallback"))
        return cls(values.flag(DATA_SKIPPING, True), mode == "fallback")


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """What a reader asks for.

    `as_of`: the time of a snapshot; None for the newest. `start`, `end`: the range of an incremental query, after
    `start` and up to `end`. Times are texts as the caller gave them. `metadata_enabled`: files may be listed from the
    metadata table. `takes_what_is_left`: if files of the range were cleaned away, give the rows that are left.
    `wants_changes`: an incremental query gives change data, not rows as they are at the end.
    """

    query_type: QueryType = "snapshot"
    as_of: str | None = None
    start: str | None = None
    end: str | None = None
    metadata_enabled: bool = True
    takes_what_is_left: bool = False
    wants_changes: bool = False


def read_request_from_options(options: Mapping[str, object]) -> ReadRequest:
    """The request that a reader's options make. Options for writers are accepted and ignored.

    As in Apache Hudi, begin and end count for incremental queries only. Spec: format/queries.md section 1.

    Raises: Invalid for unknown names and for requests that make no sense.
    """
    texts = option_texts(options)
    for name, text in texts.items():
        entry = find_entry(name)
        if entry.kind in (Kind.READ, Kind.READ_PROMISE):
            check_value(name, text, entry)

    SkippingOptions.from_options(texts)
    metadata_enabled = parse_flag(METADATA, texts.get(METADATA, "") or "true")
    query, as_of = texts.get(QUERY_TYPE, "") or "snapshot", texts.get(AS_OF) or None

    match query.lower():
        case "snapshot":
            return ReadRequest("snapshot", as_of=as_of, metadata_enabled=metadata_enabled)
        case "read_optimized":
            return ReadRequest("read_optimized", as_of=as_of, metadata_enabled=metadata_enabled)
        case "incremental":
            start, end = texts.get(BEGIN) or None, texts.get(END) or None
            if start is None:
                raise Invalid(
                    f"option '{QUERY_TYPE}'='{query}': expected option '{BEGIN}', found none; '000' is the beginning"
                )
            if as_of is not None:
                raise Invalid(f"option '{AS_OF}'='{as_of}': expected none with '{QUERY_TYPE}'='{query}'; use '{END}'")
            form = OptionValues(texts).choice(INCREMENTAL_FORMAT, "latest_state", ("latest_state", "cdc"))
            return ReadRequest(
                "incremental", start=start, end=end, metadata_enabled=metadata_enabled,
                takes_what_is_left=parse_flag(FALLBACK, texts.get(FALLBACK, "") or "false"),
                wants_changes=form == "cdc",
            )  # fmt: skip
        case "cdc":
            raise Invalid(
                f"option '{QUERY_TYPE}'='{query}': expected 'incremental', with option '{INCREMENTAL_FORMAT}'='cdc'"
            )
        case _:
            raise Invalid(f"option '{QUERY_TYPE}'='{query}': expected snapshot, read_optimized or incremental")
