"""A delete in a log could win where it loses, lose where it wins, or not be seen as one.

Small tables laid down by hand, each for one rule that no table of Apache Hudi in this suite pins.
Spec: format/log-format.md section 6.
"""

from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi.format.log.block import BlockType, HeaderKey, encode_block
from tests.support.made_tables import COLUMNS, COMMIT_TIME, EVENT_TIME, MadeTable, row, t
from tests.unit.format.log.test_deletes import kryo_content

BYTES = Path(__file__).parents[1] / "bytes"
VERSIONS = pytest.mark.parametrize("version", [5, 6, 8, 9])


def logged(table: MadeTable, *blocks: bytes, first: int = 2) -> MadeTable:
    """The table with a delta commit for each block, one second after the other, upon the base file at 1."""
    for at, block in enumerate(blocks):
        table.log(t(first + at), block, base=t(1) if table.version <= 6 else None, number=at + 1)
        table.commit(t(first + at))
    return table


def based(version: int, *rows: object, columns: pa.Schema = COLUMNS, **properties: str) -> MadeTable:
    table = MadeTable(version, {**EVENT_TIME[version], **properties}, columns)
    table.base(t(1), *rows)  # type: ignore[arg-type]
    table.commit(t(1))
    return table


@VERSIONS
def test_a_delete_block_loses_to_a_greater_ordering_value_in_the_log(version: int) -> None:
    table = based(version, row("less", 1, "base"), row("equal", 1, "base"), row("more", 1, "base"))

    logged(
        table,
        table.rows(t(2), *(row(key, 10, "log") for key in ("less", "equal", "more", "none"))),
        table.deletes(t(3), ("less", 9), ("equal", 10), ("more", 11), ("none", None)),
    )

    assert table.shown() == {"less": "log"}


@pytest.mark.parametrize("version", [8, 9])
def test_a_delete_never_replaces_a_commit_time_delete(version: int) -> None:
    """Else the base row that had been deleted would come back, and a later row be lost to the second delete."""
    table = based(version, row("gone", 9, "base"), row("back", 1, "base"))

    logged(
        table,
        table.deletes(t(2), ("gone", None), ("back", None)),
        table.deletes(t(3), ("gone", 5), ("back", 5)),
        table.rows(t(4), row("back", 4, "log")),
    )

    assert table.shown() == {"back": "log"}


@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize("kind", [pa.int32(), pa.int64()], ids=["int", "long"])
def test_a_row_after_a_commit_time_delete_wins_over_it_even_when_its_ordering_value_is_negative(
    version: int, kind: pa.DataType
) -> None:
    """Such a delete is stored with the int 0, which is not to be compared. The base row is fought afterwards."""
    columns = COLUMNS.set(1, pa.field("ts", kind))
    table = based(version, row("back", -9, "base"), row("old", 9, "base"), columns=columns)

    logged(
        table,
        table.deletes(t(2), ("back", None), ("old", None), ("new", None)),
        table.rows(t(3), *(row(key, -1, "log") for key in ("back", "old", "new"))),
    )

    assert table.shown() == {"back": "log", "old": "base", "new": "log"}


def test_up_to_version_6_every_row_passes_a_delete_block_before_it_and_no_base_row_withstands_one() -> None:
    table = based(6, row("row", 1, "base"), row("base", 9, "base"))

    logged(
        table,
        table.deletes(t(2), ("row", 200), ("base", 5)),
        table.rows(t(3), row("row", 150, "log")),
    )

    assert table.shown() == {"row": "log"}


@VERSIONS
def test_by_commit_time_a_delete_wins_over_all_before_it_and_a_row_over_all_deletes_before_it(version: int) -> None:
    table = MadeTable(version, COMMIT_TIME[version])
    table.base(t(1), row("gone", 9, "base"), row("back", 9, "base"), row("stays", 9, "base"))
    table.commit(t(1))

    logged(
        table,
        table.rows(t(2), row("gone", 99, "log")),
        table.deletes(t(3), ("gone", 1), ("back", None)),
        table.rows(t(4), row("back", 0, "log")),
    )

    assert table.shown() == {"back": "log", "stays": "base"}


IS_DELETED = COLUMNS.append(pa.field("_hoodie_is_deleted", pa.bool_()))


@VERSIONS
def test_a_row_that_is_marked_as_deleted_is_a_delete_with_its_ordering_value(version: int) -> None:
    rows = [row(key, 10, "base", _hoodie_is_deleted=False) for key in ("late", "due", "log", "null")]
    table = based(version, *rows, columns=IS_DELETED)

    logged(
        table,
        table.rows(t(2), row("log", 20, "log", _hoodie_is_deleted=False)),
        table.rows(
            t(3),
            row("late", 9, "deleted", _hoodie_is_deleted=True),
            row("due", 10, "deleted", _hoodie_is_deleted=True),
            row("log", 19, "deleted", _hoodie_is_deleted=True),
            row("null", 11, "log", _hoodie_is_deleted=None),
            row("new", 1, "deleted", _hoodie_is_deleted=True),
        ),
    )

    assert table.shown() == {"late": "base", "log": "log", "null": "log"}


@pytest.mark.parametrize("operation", ["D", "-U"])
def test_a_row_whose_operation_is_a_delete_is_one(operation: str) -> None:
    columns = COLUMNS.append(pa.field("_hoodie_operation", pa.string()))
    table = based(8, row("gone", 1, "base"), row("stays", 1, "base"), columns=columns)

    logged(
        table,
        table.rows(
            t(2),
            row("gone", 2, "deleted", _hoodie_operation=operation),
            row("stays", 2, "log", _hoodie_operation="+U"),
        ),
    )

    assert table.shown() == {"stays": "log"}


@VERSIONS
def test_a_row_that_the_delete_field_marks_is_a_delete(version: int) -> None:
    prefix = "hoodie.record.merge.property." if version >= 9 else ""
    names = {f"{prefix}hoodie.payload.delete.field": "op", f"{prefix}hoodie.payload.delete.marker": "D"}
    columns = COLUMNS.append(pa.field("op", pa.string()))
    table = based(version, *(row(key, 10, "base") for key in ("gone", "late", "other")), columns=columns, **names)

    logged(
        table,
        table.rows(t(2), row("gone", 11, "x", op="D"), row("late", 9, "x", op="D"), row("other", 11, "log", op="d")),
    )

    assert table.shown() == {"late": "base", "other": "log"}


@pytest.mark.parametrize(
    "kind, shown",
    [(pa.int32(), {"back": "log"}), (pa.int64(), {"zero": "base"})],
    ids=["int", "long"],
)
def test_a_marked_row_is_a_commit_time_delete_where_its_ordering_value_is_the_int_zero(
    kind: pa.DataType, shown: dict[str, str]
) -> None:
    """Not where it is the long zero, which is a value like any other."""
    columns = IS_DELETED.set(1, pa.field("ts", kind))
    table = based(8, row("zero", 9, "base"), row("back", 1, "base"), columns=columns)

    logged(
        table,
        table.rows(t(2), row("zero", 0, "x", _hoodie_is_deleted=True), row("back", 5, "x", _hoodie_is_deleted=True)),
        table.rows(t(3), row("back", 0, "x", _hoodie_is_deleted=True)),
        table.rows(t(4), row("back", 4, "log")),
    )

    assert table.shown() == shown


def kryo_block(by: str, *deletes: tuple[str, str, tuple[str, int] | None], content_version: int = 2) -> bytes:
    content = kryo_content(list(deletes), version=content_version)
    return encode_block(BlockType.DELETE, {HeaderKey.INSTANT_TIME: by}, content)


def test_deletes_in_kryo_form_count_among_rows_on_a_table_that_came_from_version_5() -> None:
    """An upgrade from 5 to 6 leaves data and logs as they are."""
    keys = ("default", "less", "more", "bare", "back", "stays")
    table = based(6, *(row(key, 1, "base") for key in keys))

    logged(
        table,
        table.rows(t(2), *(row(key, 10, "log") for key in keys)),
        kryo_block(
            t(3),
            *(("", "default", ("int", 0)), ("", "less", ("long", 9)), ("", "more", ("long", 11))),
            ("", "back", ("long", 99)),
        ),
        kryo_block(t(4), ("", "bare", None), content_version=1),
        table.rows(t(5), row("back", 12, "log")),
    )

    assert table.shown() == {"less": "log", "back": "log", "stays": "log"}


def test_rows_and_deletes_of_the_classes_of_0131_are_merged() -> None:
    """Rows k0 and k1, then the delete of k1, as one delta commit wrote them."""
    first, by = "20240101000000000", "20240101000000001"
    columns = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("v", pa.int64())])
    table = MadeTable(6, EVENT_TIME[6], columns)
    table.base(first, *({"id": key, "ts": None, "v": 7} for key in ("k0", "k1", "k2")))
    table.commit(first)

    table.log(by, (BYTES / "data_and_deletes_h0131.log").read_bytes(), base=first)
    table.commit(by)

    assert table.shown() == {"k0": 0, "k2": 7}
