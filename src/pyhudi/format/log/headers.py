"""The header entries of a log block, as values."""

import base64
import binascii
from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np

from pyhudi.errors import CorruptFile, Invalid
from pyhudi.format.log.block import ROLLBACK_COMMAND, BlockType, HeaderKey, LogBlock
from pyhudi.format.roaring import Positions, decode_roaring, encode_roaring

_TRUE: Final = "true"
_PASSED_OVER: Final = "pyhudi:"  # put before an instant, so that no base file has that instant


def instant_time(block: LogBlock) -> str:
    """The requested time of the action that wrote the block."""
    return _required(block, HeaderKey.INSTANT_TIME)


def schema_text(block: LogBlock) -> str:
    """The Avro schema of the block's records, meta fields included."""
    return _required(block, HeaderKey.SCHEMA)


def rolled_back_instant(block: LogBlock) -> str:
    """The instant whose blocks before this command block are to be dropped."""
    assert block.type is BlockType.COMMAND
    command = _required(block, HeaderKey.COMMAND_BLOCK_TYPE)
    if command != ROLLBACK_COMMAND:
        hint = "A newer release may have written it."
        raise _corrupt(block, f"the command {ROLLBACK_COMMAND}, a rollback", f"'{command:.60}'", hint)
    return _required(block, HeaderKey.TARGET_INSTANT_TIME)


def compacted_instants(block: LogBlock) -> tuple[str, ...]:
    """The instants whose blocks a log compaction merged into this block, in no promised order. Other blocks: none."""
    text = block.header.get(HeaderKey.COMPACTED_BLOCK_TIMES, "")
    return tuple(one for part in text.split(",") if (one := part.strip()))


def merged_instants(blocks: Iterable[LogBlock]) -> tuple[str, ...]:
    """The instants that a block merged from these blocks replaces, ascending.

    These are the blocks' own instants, and the instants of the blocks that were merged into them before.
    """
    found: set[str] = set()
    for block in blocks:
        found.update((*compacted_instants(block), instant_time(block)))
    return tuple(sorted(found))


def block_identifier(block: LogBlock) -> tuple[int, int] | None:
    """The attempt that wrote the block, and the block's number in the attempt, as releases 0.14 wrote them; or None."""
    text = block.header.get(HeaderKey.BLOCK_IDENTIFIER)
    if text is None:
        return None
    attempt, comma, number = text.partition(",")
    if not comma or not _is_number(attempt) or not _is_number(number):
        raise _corrupt(block, "a block identifier of attempt and number", f"'{text:.60}'")
    return int(attempt), int(number)


def is_partial(block: LogBlock) -> bool:
    """Whether the records hold only some of the table's columns."""
    return block.header.get(HeaderKey.IS_PARTIAL, "").lower() == _TRUE


def positions_base_instant(block: LogBlock) -> str | None:
    """The instant of the base file whose rows the block's positions count; None if the block has no positions."""
    if HeaderKey.RECORD_POSITIONS not in block.header:
        return None
    text = block.header.get(HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS)
    return None if text is None else text.removeprefix(_PASSED_OVER)


def record_positions(block: LogBlock, row_count: int) -> Positions | None:
    """The row position in the base file of each of the block's rows or deletes, in their order; None without positions.

    The positions are valid only for the base file of `positions_base_instant`. Order: ascending, as the rows are.
    Spec: format/log-format.md section 3. Raises: CorruptFile unless there is one position for each row.
    """
    text = block.header.get(HeaderKey.RECORD_POSITIONS)
    if text is None:
        return None
    try:
        positions = decode_roaring(base64.b64decode(text, validate=True), count_max=row_count)
    except (ValueError, binascii.Error) as error:
        raise _corrupt(block, f"{row_count:,} record positions", str(error)) from error
    if positions.size != row_count:
        raise _corrupt(block, f"{row_count:,} record positions, one a row", f"{positions.size:,}")
    return positions


def data_header(
    *,
    instant_time: str,
    schema_text: str | None,
    positions: Positions | None = None,
    positions_base_instant: str | None = None,
    is_partial: bool = False,
    compacted_instants: Iterable[str] = (),
) -> dict[HeaderKey, str]:
    """The header of a data or delete block. The entries are in the order of their numbers.

    `positions`: each row's position in the base file of `positions_base_instant`; positions and rows ascend.
    Raises: Invalid for positions that do not ascend, or without the instant of their base file.
    """
    header = {HeaderKey.INSTANT_TIME: instant_time}
    if schema_text is not None:
        header[HeaderKey.SCHEMA] = schema_text
    if compacted := ",".join(compacted_instants):
        header[HeaderKey.COMPACTED_BLOCK_TIMES] = compacted

    if (positions is None) != (positions_base_instant is None):
        raise Invalid("log block: expected record positions together with the instant of their base file")
    if positions is not None:
        header[HeaderKey.RECORD_POSITIONS] = encode_positions(positions)

    if is_partial:
        header[HeaderKey.IS_PARTIAL] = _TRUE
    if positions_base_instant is not None:
        header[HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS] = positions_base_instant
    return header


def with_positions_passed_over(header: Mapping[HeaderKey, str]) -> dict[HeaderKey, str]:
    """The header, changed so that Apache Hudi ignores its record positions and merges by key. For Parquet blocks.

    The instant of the base file gets a prefix, so Apache Hudi takes the positions for those of another base file.

    Seen: if a query filters by record key and Apache Hudi 1.2.0 uses the positions of a Parquet block, the query
    returns replaced rows, too: as if it skipped rows of the block, and counted positions as though it had not.
    """
    base = HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS
    return {key: f"{_PASSED_OVER}{text}" if key is base else text for key, text in header.items()}


def encode_positions(positions: Positions) -> str:
    """Record positions as a header holds them. Raises: Invalid unless they ascend."""
    try:
        return base64.b64encode(encode_roaring(np.asarray(positions))).decode()
    except ValueError as error:
        raise Invalid(f"log block, record positions: {error}; sort rows and positions, or leave both out") from error


def check_positions(header: Mapping[HeaderKey, str], row_count: int) -> None:
    """Raise Invalid if a header that is to be written has record positions, but not one for each row."""
    text = header.get(HeaderKey.RECORD_POSITIONS)
    if text is None:
        return
    try:
        count = decode_roaring(base64.b64decode(text), count_max=row_count).size
    except ValueError as error:
        raise Invalid(f"log block, record positions of {row_count:,} rows: {error}") from error
    if count != row_count:
        raise Invalid(f"log block: expected {row_count:,} record positions, one a row, found {count:,}")


def _required(block: LogBlock, key: HeaderKey) -> str:
    text = block.header.get(key)
    if text is None:
        found = f"a {block.type.name} block with {', '.join(one.name for one in block.header) or 'no header'}"
        raise _corrupt(block, f"a header {key.name}", found)
    return text


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _corrupt(block: LogBlock, expected: str, found: str, hint: str = "") -> CorruptFile:
    return CorruptFile(block.path, block.offset, expected=expected, found=found, hint=hint)
