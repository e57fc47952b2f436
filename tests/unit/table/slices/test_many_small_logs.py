"""A scan could pay for each small log what a large one costs, or mix the rows of blocks that it reads together."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.errors import CorruptFile
from pyhudi.format.avro.decode import RowDecoder
from pyhudi.format.log import delete
from pyhudi.storage.open import open_storage, parse_location
from pyhudi.table.slices.log_merge import JOINED_ROWS
from pyhudi.testing.counting import CountingStorage

LOGS = 12
FORMAT = "hoodie.logfile.data.block.format"


def table_with_logs(path: Path, *, formats: tuple[str, ...] = ("",)) -> HudiTable:
    """Each log has key `a` and a key of its own; the last ones delete two keys and change one column of another."""
    keys = ["a", *(f"k{number:02}" for number in range(LOGS))]
    table = HudiTable.create(path, name="t", record_key="id", ordering="ts", table_type="MERGE_ON_READ")
    table.bulk_insert(pa.table({"id": keys, "ts": [0] * len(keys), "v": ["old"] * len(keys), "w": keys}))
    for number in range(LOGS):
        rows = {"id": ["a", f"k{number:02}"], "ts": [number + 1] * 2, "v": [f"v{number}"] * 2, "w": ["new"] * 2}
        table.upsert(pa.table(rows), options={FORMAT: formats[number % len(formats)]})
    table.delete(pa.table({"id": ["k00", "k01"], "ts": [99, 0]}))  # the second one loses
    table.upsert(pa.table({"id": ["k02"], "ts": [99], "v": ["part"]}))
    return table


@pytest.mark.parametrize("formats", [("",), ("parquet",), ("avro", "parquet", "hfile", "avro")])
def test_rows_of_many_small_logs_are_merged_in_their_order(tmp_path: Path, formats: tuple[str, ...]) -> None:
    rows = table_with_logs(tmp_path / "t", formats=formats).scan(meta_fields=False).to_arrow().to_pylist()

    found = {row["id"]: (row["ts"], row["v"], row["w"]) for row in rows}
    expected = {f"k{number:02}": (number + 1, f"v{number}", "new") for number in range(1, LOGS)}
    expected["a"] = (LOGS, f"v{LOGS - 1}", "new")
    expected["k02"] = (99, "part", "new")
    assert (len(rows), found) == (len(expected), expected)


def test_a_small_log_is_one_request_and_its_rows_are_decoded_with_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table_with_logs(tmp_path / "t")
    counting = CountingStorage(open_storage(parse_location(str(tmp_path / "t"), None)))
    scan = HudiTable.open(str(tmp_path / "t"), storage=counting).scan()
    decoded: list[str] = []
    decode = RowDecoder.decode

    def noting(self: RowDecoder, *of: Any, **more: Any) -> pa.RecordBatch:
        decoded.append(more["path"])
        return decode(self, *of, **more)

    monkeypatch.setattr(RowDecoder, "decode", noting)

    counting.reset()
    delete._decoded.clear()
    assert scan.to_arrow().num_rows == LOGS

    assert counting.counts["get"] == LOGS + 2  # a log each, deletes and partial rows among them
    assert len(list(filter(None, decoded))) == 3  # whole rows, deletes, rows of some columns


@pytest.mark.parametrize("byte", [-30, -1])
def test_a_damaged_block_among_others_is_named(tmp_path: Path, byte: int) -> None:
    """Of one whose last row is cut, and of one with a byte too many, the rows of the next would be read askew."""
    table = table_with_logs(tmp_path / "t")
    log = sorted(tmp_path.glob("t/.*.log.*"), key=lambda file: file.name.partition("_")[2])[LOGS // 2]
    content = log.read_bytes()
    head = content.index((2).to_bytes(4, "big"), content.index(b'"fields"') + 200)
    at = content.index((3).to_bytes(4, "big") + (2).to_bytes(4, "big"), head - 8)
    size = int.from_bytes(content[at + 8 : at + 12], "big") + (1 if byte == -1 else byte)
    log.write_bytes(content[: at + 8] + size.to_bytes(4, "big") + content[at + 12 :])

    with pytest.raises(CorruptFile, match=log.name):
        table.scan().to_arrow()


def test_waiting_rows_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyhudi.table.slices.log_merge.JOINED_ROWS", 3)
    monkeypatch.setattr("pyhudi.table.slices.log_merge.JOINED_BYTES", 1)
    assert JOINED_ROWS > 3
    assert table_with_logs(tmp_path / "t").scan().to_arrow().num_rows == LOGS
