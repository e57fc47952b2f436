"""A log with changed bytes could crash the process, run without end, or fill its memory.

Thousands of changed logs, the same ones in each run: each ends in rows, or in an error that is pyhudi's own.
"""

import random
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import HudiError, HudiTable
from pyhudi.storage.local import LocalStorage

ROUNDS, ROUNDS_LONG = 150, 4_000
SECONDS_MAX = 5.0
EXTREMES = (0, 1, 0x7F, 0x80, 0xFE, 0xFF)
INSERTED = (b"\xff" * 10, b"#HUDI#", b"\x7f\xff\xff\xff", b"\x00" * 64, b"9" * 30)


def rows(*keys: str, ts: int = 1) -> pa.Table:
    return pa.table({"id": list(keys), "n": [ts] * len(keys), "ts": [ts] * len(keys)})


@pytest.fixture(scope="module", params=["avro", "parquet"])
def logged(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> tuple[Path, dict[Path, bytes]]:
    """A table with a log of rows and one of deletes."""
    path = tmp_path_factory.mktemp(request.param) / "t"
    options = {"hoodie.logfile.data.block.format": request.param}
    table = HudiTable.create(path, name="t", record_key="id", ordering="ts", table_type="MERGE_ON_READ")
    table.bulk_insert(rows("a", "b", "c", "d"), options=options)
    table.upsert(rows("a", "b", ts=2), options=options)
    table.delete(rows("c", ts=3), options=options)
    logs = {file: file.read_bytes() for file in path.rglob(".*.log.*") if ".hoodie" not in file.parts}
    assert len(logs) == 2
    return path, logs


def changed(content: bytes, seed: str) -> bytes:
    """The content with some bytes set, cut out, put in or moved."""
    choose, made = random.Random(seed), bytearray(content)
    for _ in range(choose.choice((1, 1, 2, 5))):
        at = choose.randrange(len(made))
        match choose.randrange(6):
            case 0 | 1 | 2:
                made[at] = choose.choice((*EXTREMES, choose.randrange(256)))
            case 3:
                made[at : at + 4] = choose.choice((b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x00\x00\x00\x00"))
            case 4:
                made[at:at] = choose.choice(INSERTED)
            case 5:
                del made[at : at + choose.choice((1, 8, len(made)))]
                made += b"" if made else b"#"
    return bytes(made)


def outcomes(path: Path, logs: dict[Path, bytes], count: int) -> Iterator[bool]:
    """Of each changed log, whether the table was read with it."""
    files = sorted(logs)
    for number in range(count):
        file = files[number % len(files)]
        file.write_bytes(changed(logs[file], f"{file.name[-12:]} {number}"))
        started = time.monotonic()
        try:
            read = HudiTable.open(path).scan().to_arrow()
            read.validate(full=True)
            yield True
        except HudiError:
            yield False
        finally:
            file.write_bytes(logs[file])
        assert time.monotonic() - started < SECONDS_MAX, number


def test_a_changed_log_ends_in_rows_or_an_error(logged: tuple[Path, dict[Path, bytes]]) -> None:
    path, logs = logged
    ends = list(outcomes(path, logs, ROUNDS))
    assert {True, False} == set(ends)


@pytest.mark.long
def test_thousands_of_changed_logs_end_so(logged: tuple[Path, dict[Path, bytes]]) -> None:
    path, logs = logged
    assert len(list(outcomes(path, logs, ROUNDS_LONG))) == ROUNDS_LONG


def test_a_text_of_a_parquet_log_that_is_not_utf_8_is_damage(tmp_path: Path) -> None:
    """Such a text cannot be shown, and Arrow's own check of rows refuses it."""
    options = {"hoodie.logfile.data.block.format": "parquet", "hoodie.parquet.compression.codec": "uncompressed"}
    table = HudiTable.create(tmp_path, name="t", record_key="id", ordering="ts", table_type="MERGE_ON_READ")
    told = rows("a").append_column("note", pa.array(["seldom"]))
    table.bulk_insert(told, options=options)
    table.upsert(told, options=options)
    (log,) = (file for file in tmp_path.rglob(".*.log.*") if ".hoodie" not in file.parts)
    content = log.read_bytes()
    assert b"seldom" in content

    log.write_bytes(content.replace(b"seldom", b"se\xffdom"))

    with pytest.raises(HudiError, match=re.escape(log.name)):
        HudiTable.open(tmp_path).scan().to_arrow()


def test_a_file_larger_than_any_memory_is_told_before_it_is_read(logged: tuple[Path, dict[Path, bytes]]) -> None:
    """A hole in a file costs whoever makes it nothing."""
    path, _ = logged
    properties = path / ".hoodie/hoodie.properties"
    commit = max((path / ".hoodie/timeline").glob("*_*.deltacommit"))
    for file in (properties, commit):
        before = file.read_bytes()
        with file.open("r+b") as opened:
            opened.truncate(1 << 43)
        try:
            with pytest.raises(HudiError, match=rf"{file.name}.*expected at most"):
                HudiTable.open(path).scan().to_arrow()
        finally:
            file.write_bytes(before)
    assert LocalStorage(str(path)).get(".hoodie/hoodie.properties")
