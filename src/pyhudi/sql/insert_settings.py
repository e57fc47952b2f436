"""What session options say of INSERT: by which operation it writes, and what an overwrite replaces."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, Self, TypeAlias, cast, get_args

from pyhudi.errors import Invalid
from pyhudi.options.resolve import OPERATION
from pyhudi.options.values import OptionValues, choice, flag

InsertOperation: TypeAlias = Literal["", "insert", "upsert", "bulk_insert"]
AskedOperation: TypeAlias = Literal["", "insert", "upsert", "bulk_insert", "insert_overwrite", "insert_overwrite_table"]
OverwriteMode: TypeAlias = Literal["", "STATIC", "DYNAMIC"]
InsertMode: TypeAlias = Literal["", "upsert", "strict", "non-strict"]

OVERWRITE_MODE: Final = "hoodie.datasource.overwrite.mode"
DUPLICATES: Final = "hoodie.datasource.insert.dup.policy"


@dataclass(frozen=True, slots=True)
class InsertSettings:
    """Settings of INSERT; the defaults are Apache Hudi's.

    `operation`: of INSERT INTO; empty: upsert into a table with key and ordering columns, insert into others.
    `overwrite_mode`: of INSERT OVERWRITE without values for partitions; empty: as Spark's own setting says.
    `is_bulk`, `mode`: the older way to say the operation, which counts where `operation` is empty.
    """

    operation: InsertOperation = choice(
        "hoodie.spark.sql.insert.into.operation", "", ("insert", "upsert", "bulk_insert")
    )
    overwrite_mode: OverwriteMode = choice(OVERWRITE_MODE, "", ("STATIC", "DYNAMIC"))
    is_bulk: bool = flag("hoodie.sql.bulk.insert.enable", False)
    mode: InsertMode = choice("hoodie.sql.insert.mode", "", ("upsert", "strict", "non-strict"))

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Self:
        """The settings that options ask for. Raises: Invalid for a bad value, naming the option."""
        return cls(**OptionValues(options).fields(cls))

    def operation_for(self, *, has_keys: bool, has_ordering: bool, drops: bool, combines: bool) -> InsertOperation:
        """The operation of an INSERT INTO a table. `drops`: rows of stored keys are to be dropped or refused.
        `combines`: rows of one key are to be combined first.

        Seen: 1.0.2 upserts into a table with key and ordering columns, and inserts into others; what is to drop or
        refuse stored keys is an insert there. 1.2.0 upserts by mode `upsert` where rows are combined.
        Raises: Invalid for a bulk insert in strict mode into a table with keys, as in 1.2.0.
        """
        if has_keys and self.is_bulk and self.mode == "strict" and not self.operation:
            raise Invalid(
                "option 'hoodie.sql.insert.mode'='strict': expected an insert that looks its keys up, found "
                "'hoodie.sql.bulk.insert.enable'='true', which stores a key twice; leave one of them out"
            )
        asked = self.operation or self._older()
        if not asked:
            upserts = has_ordering or (combines and self.mode == "upsert")
            asked = "upsert" if has_keys and upserts else "insert"
        return "insert" if asked == "upsert" and (drops or not has_keys) else asked

    def duplicates(self) -> dict[str, str]:
        """What the older option asks of rows whose key is stored."""
        return {DUPLICATES: "fail"} if self.mode == "strict" and not self.operation and not self.is_bulk else {}

    def _older(self) -> InsertOperation:
        if self.is_bulk:
            return "bulk_insert"
        return "" if self.mode in ("", "upsert") else "insert"


OF_SQL: Final = frozenset(field.metadata["option"] for field in InsertSettings.__dataclass_fields__.values())
"""The names of these options. A write does not know them."""


def asked_operation(options: Mapping[str, str]) -> AskedOperation:
    """The operation that a session, or a call, states by the option of every write. It counts before those of SQL.

    Empty: none is stated. Seen: 1.2.0 obeys it in INSERT INTO and INSERT OVERWRITE, not as a property of the table.
    Raises: Invalid for one that stores no new rows.
    """
    asked = options.get(OPERATION, "").strip().lower()
    if asked not in get_args(AskedOperation):
        known = ", ".join(filter(None, get_args(AskedOperation)))
        raise Invalid(f"option '{OPERATION}'='{asked}' for an INSERT: expected one of {known}")
    return cast(AskedOperation, asked)
